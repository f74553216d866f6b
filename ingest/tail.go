package ingest

import (
	"context"

	"golang.org/x/sync/semaphore"

	"ledgerindexer/ledger"
)

// tail reads and writes near the ledger's end: one goroutine reads page after page, and another one writes what has come
// meanwhile, facts, coverage, projection and watermark in one transaction.
type tail struct {
	*updatesRun
	meter *Meter
	at    ledger.Offset // the watermark
	end   ledger.Offset // of the ledger, as the reader knows it; valid when run has returned
}

// fetched is a page on its way from the reader to the writer.
type fetched struct {
	page     ledger.Page
	weight   int64
	answered bool // by the server; a page that only says "current" was not read from it
	current  bool // the ledger had nothing more when it was read
}

// run works until something fails; errFarBehind is such an error.
func (t *tail) run(ctx context.Context) error {
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	pages := make(chan fetched, pagesAhead)
	inFlight := semaphore.NewWeighted(bytesInFlight)
	r := reader{updatesRun: t.updatesRun, at: t.at, agreed: t.fork.last.offset, meter: t.meter}
	w := writer{updatesRun: t.updatesRun, meter: t.meter, at: t.at}
	read := make(chan error, 1)
	go func() {
		defer close(pages)
		read <- t.read(reading, &r, pages, inFlight)
	}()
	err := w.run(ctx, pages, inFlight)
	stopReading()
	// Whatever ended the reader: after an error of the writer it is not known where the watermark stands.
	if ended := <-read; err == nil {
		err = ended
	}
	t.at, t.end = w.at, r.end
	return err
}

// read fetches page after page. A page that another server may have answered is used once it is certain that it is of the
// same history.
func (t *tail) read(ctx context.Context, r *reader, pages chan<- fetched, inFlight *semaphore.Weighted) error {
	for {
		began := t.Source.Changes()
		next, err := r.next(ctx)
		switch {
		case err == nil:
			err = t.fork.accept(ctx, began, &next.page)
		case Lasting(err): // it may be another server that can't go on
			if changed := t.fork.stuck(ctx); changed != nil {
				err = changed
			}
		}
		if err != nil {
			return err
		}
		next.weight = min(next.page.Bytes, bytesInFlight)
		if err := inFlight.Acquire(ctx, next.weight); err != nil {
			return err
		}
		select {
		case pages <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.at = next.page.To
	}
}
