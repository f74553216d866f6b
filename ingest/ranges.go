package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

// Ranges reads ranges of updates in requests that the server can answer. A server searches all offsets of a range,
// however few updates it finds, and gives up when that takes too long. Ranges then halves the range, and widens it
// again as the server answers. The zero value is ready. It is safe for concurrent use.
type Ranges struct {
	mu     sync.Mutex
	widest float64 // the limit on the offsets of one request, since one failed; 0: none
}

// tooMuch is the least time after which a request can fail because its range is too wide. Servers give up after 20 s.
const tooMuch = 5 * time.Second

// ReadRange reads updates after an offset, as far as one request brings, at most up to `to`.
type ReadRange = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error)

// Read reads the beginning of a range, in one page. If the server gives up, Read asks for less at once.
func (r *Ranges) Read(ctx context.Context, logger *slog.Logger, read ReadRange,
	wanted ledger.Range) (ledger.Page, error) {
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

func (r *Ranges) ask(ctx context.Context, read ReadRange, asked ledger.Range) (ledger.Page, error) {
	began := time.Now()
	page, err := read(ctx, asked.From, asked.To)
	if err != nil && ctx.Err() == nil && !Lasting(err) && !errors.Is(err, ledger.ErrByteLimit) {
		r.failed(asked.To-asked.From, time.Since(began))
	}
	return page, err
}

// failed halves the limit after a request that failed late: its range may have been too wide.
func (r *Ranges) failed(offsets ledger.Offset, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if took > tooMuch {
		r.widest = max(1, float64(offsets)/2)
	}
}

// answered raises the limit to twice the offsets that a request covered.
func (r *Ranges) answered(covered ledger.Offset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.widest > 0 {
		r.widest = max(r.widest, 2*float64(covered))
	}
}

// clamp limits a number of offsets to what one request may ask for.
func (r *Ranges) clamp(offsets ledger.Offset) ledger.Offset {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.widest > 0 && r.widest < float64(offsets) {
		return ledger.Offset(r.widest)
	}
	return offsets
}

// inRanges is an UpdateReader that reads through Ranges.
type inRanges struct {
	UpdateReader
	ranges *Ranges
	logger *slog.Logger
}

func (s inRanges) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	return s.ranges.Read(ctx, s.logger, s.UpdateReader.ReadUpdates, ledger.Range{From: after, To: to})
}
