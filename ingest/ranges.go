package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// tooMuch is how long a request takes at least that fails because its range is too wide. Servers give up after 20 s.
const tooMuch = 5 * time.Second

// Ranges reads ranges of updates in requests that the server can answer. A server looks through all offsets of a range, however
// few updates it finds, and gives up when that takes too long. Then half as many are asked for, and more again as it answers. The
// zero value is ready. It is safe for concurrent use.
type Ranges struct {
	mu     sync.Mutex
	widest float64 // offsets that are asked for in one request at most since one failed; 0: any number
}

// ReadRange reads updates after an offset, as far as one request brings, at most up to `to`.
type ReadRange = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)

// Read reads the beginning of a range, up to r.To or less far. Where the server gives up on it, less is asked for at once: a
// range that is read again from its beginning after each failure would never come to its end.
func (r *Ranges) Read(ctx context.Context, logger *slog.Logger, read ReadRange, wanted ledger.Range) (ledger.Page, error) {
	var page ledger.Page
	asked := wanted
	retry := Retry{
		Logger: logger.With("stream", "updates"), Most: 1 + triesInPlace,
		Final: func(err error) bool { return Lasting(err) || r.clamp(asked.To-asked.From) == asked.To-asked.From },
	}
	err := retry.Do(ctx, func(ctx context.Context) (err error) {
		asked.To = asked.From + r.clamp(wanted.To-wanted.From)
		if page, err = r.ask(ctx, read, asked); err == nil {
			r.answered(page.To - page.From)
		}
		return err
	})
	return page, err
}

// ask does one request, and learns from its failure.
func (r *Ranges) ask(ctx context.Context, read ReadRange, asked ledger.Range) (ledger.Page, error) {
	began := time.Now()
	page, err := read(ctx, asked.From, asked.To)
	if err != nil && ctx.Err() == nil && !Lasting(err) && !errors.Is(err, ledger.ErrNoRoom) {
		r.failed(asked.To-asked.From, time.Since(began))
	}
	return page, err
}

// failed halves what is asked for next after a range was not read though the server had some time: it may have been too
// much, because all of it has to be looked through, however little is found.
func (r *Ranges) failed(offsets ledger.Offset, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if took > tooMuch {
		r.widest = max(1, float64(offsets)/2)
	}
}

// answered lets the next request ask for more than one that covered so many offsets.
func (r *Ranges) answered(covered ledger.Offset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.widest > 0 {
		r.widest = max(r.widest, 2*float64(covered))
	}
}

// clamp limits a number of offsets to what may be asked for in one request.
func (r *Ranges) clamp(offsets ledger.Offset) ledger.Offset {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.widest > 0 && r.widest < float64(offsets) {
		return ledger.Offset(r.widest)
	}
	return offsets
}

// inRanges is a participant whose ranges are read by Ranges.
type inRanges struct {
	UpdateReader
	ranges *Ranges
	logger *slog.Logger
}

// ReadUpdates is as UpdateReader has it.
func (s inRanges) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return s.ranges.Read(ctx, s.logger, s.UpdateReader.ReadUpdates, ledger.Range{From: after, To: to})
}
