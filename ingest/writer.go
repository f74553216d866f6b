package ingest

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"ledgerindexer/ledger"
)

const (
	// A batch takes what has been fetched meanwhile, up to this many updates: more would make latency, not speed.
	batchUpdates = 2_000

	// A quiet ledger repeats its offset checkpoint with newer times about twice a second: only now and then is that
	// worth a transaction.
	repeatEvery = 10 * time.Second
)

// writer commits what has been read, in batches of what is there.
type writer struct {
	*updatesRun
	meter *Meter

	at       ledger.Offset // the watermark
	repeated time.Time     // when offset checkpoints were last written without news
	caughtUp bool
}

// run works until no page comes any more. What was read before the reader failed is committed; when the loop is to
// stop, only the batch under way.
func (w *writer) run(ctx context.Context, pages <-chan fetched, inFlight *semaphore.Weighted) error {
	for {
		batch, ok := nextBatch(pages)
		if !ok || ctx.Err() != nil {
			return nil
		}
		if w.worthwhile(batch) {
			// A batch is finished once it was begun.
			if err := w.Sink.Append(context.WithoutCancel(ctx), w.Scope, batch.pages); err != nil {
				return err
			}
			w.at = batch.to()
			if w.Watch.Committed != nil {
				w.Watch.Committed(w.at, w.at, batch.updates)
			}
			w.meter.Add(ctx, int64(w.at), batch.updates)
		}
		if batch.answered { // a server that only tells its end would be asked for more without a pause
			w.retry.Worked()
		}
		inFlight.Release(batch.weight)
		if batch.current {
			w.meter.Rest()
		}
		if batch.current && !w.caughtUp {
			w.caughtUp = true
			w.Logger.InfoContext(ctx, "caught up", "stream", "updates", "watermark", int64(w.at))
		}
		if w.target.reached(w.at, batch.current) {
			return errReached
		}
	}
}

// worthwhile tells whether a batch moves the watermark, or brings offset checkpoints that are due.
func (w *writer) worthwhile(b batch) bool {
	switch {
	case len(b.pages) == 0:
		return false
	case b.to() > w.at:
		return true
	case time.Since(w.repeated) < repeatEvery:
		return false
	}
	w.repeated = time.Now()
	return true
}

// batch is what one transaction writes.
type batch struct {
	pages    []ledger.Page
	updates  int
	weight   int64 // of its pages and of those that were empty
	answered bool  // by the server, for one of them at least
	current  bool  // the ledger had nothing more
}

func (b *batch) to() ledger.Offset { return b.pages[len(b.pages)-1].To }

// full tells whether it is enough for a transaction.
func (b *batch) full() bool { return b.updates >= batchUpdates || b.weight >= batchBytes }

func (b *batch) take(f fetched) {
	if f.page.To > f.page.From || len(f.page.Checkpoints) > 0 {
		b.pages = append(b.pages, f.page)
	}
	b.updates += len(f.page.Updates)
	b.weight += f.weight
	b.answered = b.answered || f.answered
	b.current = f.current
}

// nextBatch waits for a page and takes with it those that are there already. ok is false when no page comes any more.
func nextBatch(pages <-chan fetched) (b batch, ok bool) {
	f, open := <-pages
	if !open {
		return b, false
	}
	b.take(f)
	for !b.full() {
		select {
		case f, open := <-pages:
			if !open {
				return b, true
			}
			b.take(f)
		default:
			return b, true
		}
	}
	return b, true
}
