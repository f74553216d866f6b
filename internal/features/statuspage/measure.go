package statuspage

import (
	"cmp"
	"context"
	"sync"
	"time"

	"ledgerindexer/internal/features/admin"
	"ledgerindexer/store"
)

// Run measures until ctx ends. A ledger whose database or source does not answer delays no other one.
func (p *Page) Run(ctx context.Context) {
	var running sync.WaitGroup
	for i, l := range p.cfg.Ledgers {
		running.Go(func() {
			ticker := time.NewTicker(sampleEvery)
			defer ticker.Stop()
			for n := 0; ; n++ {
				p.measure(ctx, l, p.ledgers[i])
				p.release(ctx, l, p.ledgers[i])
				if n%int(sizesEvery/sampleEvery) == 0 {
					p.measureSize(ctx, l, p.ledgers[i])
				}
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		})
	}
	running.Wait()
}

func (p *Page) measure(ctx context.Context, l Ledger, m *measured) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, s := range l.Streams { // before the heads are read, or there would always be something behind it
		m.streams[i].behind.ask(ctx, s)
	}
	heads, err := l.Store.Heads(ctx)
	now := time.Now()
	known := err == nil
	var updates int64
	if known && !m.headsAt.IsZero() && heads.Frontier > m.heads.Frontier {
		if updates, err = l.Store.UpdatesBetween(ctx, m.heads.Frontier, heads.Frontier); err != nil {
			known = false
		}
	}
	for i, s := range l.Streams {
		sample := Sample{At: now.UTC(), Lag: unknown, PerSecond: unknown}
		var lag admin.Lag
		if known {
			if lag = s.Lag(); !lag.Leads {
				lag = m.streams[i].behind.lag(heads, now)
			}
			if lag.Known {
				sample.Lag = Measured(lag.Seconds)
			}
			sample.PerSecond = m.rate(s.Kind, heads, updates, now)
		}
		p.mu.Lock()
		lag.End = max(lag.End, m.streams[i].lag.End)
		m.streams[i].lag = lag
		if known {
			m.streams[i].at, m.streams[i].was = now.UTC(), sample.Lag
		}
		m.streams[i].samples = withLast(m.streams[i].samples, sample, samplesKept)
		p.mu.Unlock()
	}
	m.headsAt = time.Time{}
	if known {
		m.heads, m.headsAt = heads, now
	}
}

// rate returns how many updates or records came per second since the measurement before. After a reset it is not known.
func (m *measured) rate(kind string, heads store.Heads, updates int64, now time.Time) Measured {
	seconds := now.Sub(m.headsAt).Seconds()
	switch {
	case m.headsAt.IsZero() || seconds <= 0:
		return unknown
	case kind == store.StreamTransactions:
		if heads.Seq < m.heads.Seq {
			return unknown
		}
		updates = heads.Seq - m.heads.Seq
	case heads.Frontier < m.heads.Frontier:
		return unknown
	}
	return Measured(float64(updates) / seconds)
}

func (p *Page) measureSize(ctx context.Context, l Ledger, m *measured) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sizes, err := l.Store.DiskUse(ctx)
	if err != nil { // the page says so
		return
	}
	l.Sized(sizes)
	p.mu.Lock()
	defer p.mu.Unlock()
	m.sizes = withLast(m.sizes, sized{time.Now(), sizes.Ledger}, sizesKept)
}

func (p *Page) release(ctx context.Context, l Ledger, m *measured) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, s := range l.Streams {
		release := s.Version(ctx)
		p.mu.Lock()
		m.streams[i].version = cmp.Or(release, m.streams[i].version)
		p.mu.Unlock()
	}
}
