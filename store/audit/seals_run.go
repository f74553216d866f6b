package audit

import (
	"context"
	"time"

	"ledgerindexer/ingest"
)

// Run works until ctx ends (nil), all is sealed after Finish (nil), or something fails. It may be called again after an
// error.
func (s *Seals) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		last := ingest.Finishing(s.Finish)
		sealed, err := s.step(ctx, last)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if s.Working != nil {
			s.Working()
		}
		switch {
		case sealed:
		case !last:
			ingest.SleepOr(ctx, lookEvery, s.Finish, nil)
		default: // what has to wait is for the next run
			return nil
		}
	}
	return nil
}

// step seals a window, or compares a part of it, in the next stream that has one. It reports whether there was one.
// With last, a window that is not full waits for nothing.
func (s *Seals) step(ctx context.Context, last bool) (bool, error) {
	for range s.streams {
		stream := s.streams[s.turn%len(s.streams)]
		s.turn++
		m := stream.memory()
		if time.Now().Before(m.waitTill) {
			continue
		}
		w, err := stream.window(ctx)
		if err != nil {
			return false, err
		}
		if w == nil || !w.Full && !last && time.Since(m.shortAt) < longestOpen {
			continue
		}
		sealing, ok, err := stream.seal(ctx, *w)
		if err != nil {
			return false, err
		}
		if m.partly {
			return true, nil
		}
		if !ok {
			m.waitTill = time.Now().Add(longestOpen)
			continue
		}
		if !w.Again {
			m.known = sealing.From
		}
		m.again = max(m.again, sealing.To) // this run has compared everything up to here
		if !w.Full && sealing.To == w.To {
			m.shortAt = time.Now()
		}
		s.report(ctx, sealing)
		return true, nil
	}
	return false, nil
}

// AddUpdates adds a participant's updates, and the carried snapshot.
func (s *Seals) AddUpdates(source UpdateSource, database SealDatabase) {
	source = &inRanges{UpdateSource: source, logger: s.Logger}
	s.streams = append(s.streams, &snapshotSeals{Seals: s, source: source, database: database},
		&updateSeals{Seals: s, source: source, database: database})
}

// AddTransactions adds the transaction history.
func (s *Seals) AddTransactions(source ingest.TransactionsSource, database SealDatabase) {
	s.streams = append(s.streams, &recordSeals{Seals: s, source: source, database: database})
}
