package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ledgerindexer/ledger"
)

// fill fills in what is missing of the range. Several readers each take a window from the end where the work is, and read it
// page by page; what they have read is written by others, in any order.
func (r *fillRun) fill(ctx context.Context, seen *recognition) error {
	if r.filled.Range.From >= r.filled.Range.To {
		return nil
	}
	missing, err := r.Sink.Unfilled(ctx, r.filled.Range)
	if err != nil || len(missing) == 0 {
		return err
	}
	w := fillWork{fillRun: r, seen: seen, missing: missing, room: semaphore.NewWeighted(bytesInFlight), batches: make(chan batch)}
	w.turn = sync.NewCond(&w.mu)
	for _, m := range missing {
		w.offsets += int64(m.To - m.From)
	}
	r.Logger.InfoContext(ctx, "filling in history", "stream", "history", "after", int64(r.filled.Range.From), "up_to", int64(r.filled.Range.To),
		"missing_offsets", w.offsets)
	w.meter = NewMeter(r.Logger, ledger.Progress{Stream: "history", Unit: "updates", End: w.offsets}, r.Progress)
	defer w.meter.Rest()
	group, groupCtx := errgroup.WithContext(ctx)
	readers, readersCtx := errgroup.WithContext(groupCtx)
	defer context.AfterFunc(readersCtx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.turn.Broadcast()
	})()
	for range r.limit.most {
		readers.Go(func() error { return w.read(readersCtx) })
	}
	group.Go(func() error {
		defer close(w.batches)
		return readers.Wait()
	})
	for range writers {
		group.Go(func() error { return w.write(ctx) })
	}
	return group.Wait()
}

// fillWork is a try at work.
type fillWork struct {
	*fillRun
	seen    *recognition
	meter   *Meter
	offsets int64               // that are missing in all
	room    *semaphore.Weighted // of bytes of JSON that requests may bring, or pages hold
	batches chan batch

	mu      sync.Mutex // of all that follows, and of sizes and limit
	turn    *sync.Cond
	missing []ledger.Range // that nobody reads yet, in order
	reading int            // readers that have a window
	done    int64          // offsets that were written
}

// read reads windows until none is left.
func (w *fillWork) read(ctx context.Context) error {
	for {
		window, ok := w.take(ctx)
		if !ok {
			return ctx.Err()
		}
		err := w.readWindow(ctx, window)
		w.mu.Lock()
		w.reading--
		w.turn.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// take waits for its turn to read, and says what; ok is false where nothing is left.
func (w *fillWork) take(ctx context.Context) (window ledger.Range, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.limit.allows(w.reading) && ctx.Err() == nil {
		w.turn.Wait()
	}
	if ctx.Err() != nil || len(w.missing) == 0 {
		return window, false
	}
	w.reading++
	width := ledger.Offset(max(1, w.sizes.nextWidth()*max(1, batchUpdates/w.sizes.aim())))
	i := 0
	if w.NewestFirst {
		i = len(w.missing) - 1
	}
	window = w.missing[i]
	switch {
	case width >= window.To-window.From:
		w.missing = slices.Delete(w.missing, i, i+1)
	case w.NewestFirst:
		window.From = window.To - width
		w.missing[i].To = window.From
	default:
		window.To = window.From + width
		w.missing[i].From = window.To
	}
	return window, true
}

// readWindow reads a window to its end, and hands over what is enough for a transaction.
func (w *fillWork) readWindow(ctx context.Context, window ledger.Range) error {
	var b batch
	hand := func() error {
		if len(b.pages) == 0 {
			return nil
		}
		select {
		case w.batches <- b:
			b = batch{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	least, tries := int64(leastRoom), 0
	for at := window.From; at < window.To; {
		rest := ledger.Range{From: at, To: window.To}
		room := min(bytesInFlight, max(least, w.expects(rest)))
		if !w.room.TryAcquire(room) { // what it holds itself may be in the way
			if err := hand(); err != nil {
				return err
			}
			if err := w.room.Acquire(ctx, room); err != nil {
				return err
			}
		}
		page, err := w.readPage(ctx, rest, room)
		if err != nil {
			w.room.Release(room)
			tries++
			switch {
			case errors.Is(err, ledger.ErrNoRoom) && room < bytesInFlight:
				least = min(bytesInFlight, 4*room)
			case ctx.Err() != nil || tries > triesInPlace || Lasting(err) || errors.Is(err, errAnotherHistory):
				return err
			default:
				w.pause(ctx, err)
			}
			continue
		}
		tries = 0
		kept := min(page.Bytes, room)
		w.room.Release(room - kept)
		b.take(fetched{page: page, weight: kept, answered: true})
		if at = page.To; b.full() {
			if err := hand(); err != nil {
				return err
			}
		}
	}
	return hand()
}

// pause lets some time go by after a request that failed and may be repeated.
func (w *fillWork) pause(ctx context.Context, err error) {
	w.mu.Lock()
	w.limit.failed()
	pause := w.wait.retrying(ctx, w.Logger, "history", err)
	w.mu.Unlock()
	Sleep(ctx, pause)
}

// expects is how many bytes a page of a range may bring.
func (w *fillWork) expects(r ledger.Range) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 2 * min(w.sizes.expectBytes(r.To-r.From), int64(w.sizes.bytesEach()*w.sizes.fullPage()))
}

// readPage reads one page of a range, which is of the history that is stored.
func (w *fillWork) readPage(ctx context.Context, r ledger.Range, room int64) (page ledger.Page, err error) {
	changes, began := w.Source.Changes(), time.Now()
	if room < bytesInFlight {
		page, err = w.Source.ReadUpdatesWithin(ctx, r.From, r.To, room)
	} else { // nothing else is in memory
		page, err = w.Source.ReadUpdates(ctx, r.From, r.To)
	}
	if err != nil {
		if Lasting(err) { // it may be another server that can't go on
			if changed := w.seen.stuck(ctx); changed != nil {
				err = changed
			}
		}
		return page, err
	}
	took := time.Since(began)
	w.mu.Lock()
	w.sizes.learn(&page, page.To < r.To)
	if float64(len(page.Updates)) >= w.sizes.aim()/2 { // small ones come sooner
		w.limit.answered(took, !w.limit.allows(w.reading))
	}
	w.mu.Unlock()
	return page, w.seen.accept(ctx, changes, &page)
}

// write writes what was read, until no more comes. When the loop is to stop, only the transaction under way is finished.
func (w *fillWork) write(ctx context.Context) error {
	for b := range w.batches {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.Sink.Fill(context.WithoutCancel(ctx), w.Scope, b.pages); err != nil {
			return err
		}
		w.room.Release(b.weight)
		w.mu.Lock()
		w.wait.Reset()
		w.done += int64(b.to() - b.pages[0].From)
		w.filled.Updates += int64(b.updates)
		done := w.done
		w.mu.Unlock()
		w.meter.Add(ctx, done, b.updates)
	}
	return nil
}
