package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// How often a recorder, which records the progress of work in the database, does so.
const (
	// How often the progress is recorded in the database, and the time limit for the last record when the leader's term
	// ends.
	recordEvery = 10 * time.Second
	lastRecord  = time.Second
)

// recorder records the progress of a leader's work in the database. The work never waits for it.
type recorder struct {
	write  func(context.Context, ledger.Progress) error
	logger *slog.Logger

	mu       sync.Mutex
	news     map[string]ledger.Progress // the progress that is not recorded yet, by stream
	underWay map[string]bool            // whether work was under way at the last report, by stream
	turned   chan struct{}              // of capacity 1: work has begun or ended, which is recorded at once
	running  sync.WaitGroup
}

// startRecording starts to record the progress that report is called with. write is Leader.RecordProgress. end records
// the last report and stops.
func startRecording(
	ctx context.Context, write func(context.Context, ledger.Progress) error, logger *slog.Logger,
) (report func(ledger.Progress), end func()) {
	r := &recorder{
		write: write, logger: logger,
		news: map[string]ledger.Progress{}, underWay: map[string]bool{}, turned: make(chan struct{}, 1),
	}
	ctx, stop := context.WithCancel(ctx)
	r.running.Go(func() { r.run(ctx) })
	return r.report, func() {
		stop()
		r.running.Wait()
	}
}

func (r *recorder) report(p ledger.Progress) {
	r.mu.Lock()
	turned := r.underWay[p.Stream] == p.Ended
	r.news[p.Stream], r.underWay[p.Stream] = p, !p.Ended
	r.mu.Unlock()
	if turned {
		select {
		case r.turned <- struct{}{}:
		default:
		}
	}
}

func (r *recorder) run(ctx context.Context) {
	ticker := time.NewTicker(recordEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.record(context.WithoutCancel(ctx), lastRecord)
			return
		case <-ticker.C:
		case <-r.turned:
		}
		r.record(ctx, noteFor)
	}
}

// record writes what is new. What can't be written is kept for the next time, unless there is newer progress by then:
// nothing follows the report that the work has ended.
func (r *recorder) record(ctx context.Context, patience time.Duration) {
	r.mu.Lock()
	news := r.news
	r.news = map[string]ledger.Progress{}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range news {
		if err := r.write(ctx, p); err != nil {
			r.logger.DebugContext(ctx, "the progress could not be recorded", "stream", p.Stream, "error", err)
			r.keep(p)
		}
	}
}

// keep keeps a report that could not be written.
func (r *recorder) keep(p ledger.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, newer := r.news[p.Stream]; !newer {
		r.news[p.Stream] = p
	}
}
