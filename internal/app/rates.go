package app

import "sync/atomic"

// rates are the limits that can change while the daemon runs.
type rates struct{ lookup, verify atomic.Int64 }

func (r *rates) set(cfg Indexer) {
	r.lookup.Store(int64(cfg.LookupRate))
	r.verify.Store(int64(cfg.VerifyRate))
}

func (r *rates) lookups() int       { return int(r.lookup.Load()) }
func (r *rates) verifications() int { return int(r.verify.Load()) }

// change puts in force what can change while the daemon runs, and returns the names of these settings. A task whose
// rate is or was 0 begins or ends with a restart.
func (x *indexer) change(now Indexer) (applied []string) {
	if now.LookupRate > 0 && x.rates.lookups() > 0 {
		x.rates.lookup.Store(int64(now.LookupRate))
		applied = append(applied, "lookup-rate")
	}
	if now.VerifyRate > 0 && x.rates.verifications() > 0 {
		x.rates.verify.Store(int64(now.VerifyRate))
		applied = append(applied, "verify-rate")
	}
	x.mu.Lock()
	streams := x.streams // others take their place when what is read of the Scan service is known
	x.mu.Unlock()
	for _, s := range streams {
		if u, ofUpdates := s.work.(*updates); ofUpdates {
			if p, ofParticipant := u.origin.(*participantUpdates); ofParticipant {
				p.LimitRate(now.MaxRate)
			}
		}
	}
	return append(applied, "max-rate")
}
