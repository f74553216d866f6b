package ingest

import (
	"context"
	"fmt"

	"ledgerindexer/ledger"
)

// refill reads again, in the scope in force, what is stored in an earlier scope: downwards, one window after the other, because the sink
// takes them in this order only. A run that ended continues where it was.
func (r *fillRun) refill(ctx context.Context) error {
	earlier, err := r.Sink.EarlierScope(ctx)
	if err != nil || len(earlier) == 0 {
		return err
	}
	if r.From != nil || r.To != nil {
		return &ledger.Problem{
			What: "the scope was changed, and what was stored before is read again as a whole, from its end downwards, not in parts",
			Do:   "leave out --from and --to; it can be stopped at any time, and goes on where it was",
		}
	}
	var all ledger.Offset
	for _, e := range earlier {
		all += e.To - e.From
	}
	r.Logger.InfoContext(ctx, "reading again what was stored before the scope was changed", "stream", "backfill",
		"from", int64(earlier[0].From), "up_to", int64(earlier[len(earlier)-1].To), "offsets", int64(all))
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "backfill", Unit: "updates", End: int64(all)}, r.Progress)
	defer meter.Idle()
	todo := plan{sizes: &r.sizes, missing: earlier, newestFirst: true}
	changes := r.Source.Changes()
	for done := int64(0); ; {
		window, ok := todo.next(1)
		if !ok {
			return nil
		}
		page, err := r.readWhole(ctx, window)
		if err != nil {
			return err
		}
		if page.To < window.To {
			r.sizes.width = float64(window.To-window.From) / 2
			continue
		}
		if now := r.Source.Changes(); now != changes { // another server may have answered
			bounds, _, err := r.Sink.Bounds(ctx)
			if err != nil {
				return err
			}
			if err := r.fork.begin(ctx, bounds.Watermark, nil); err != nil {
				return err
			}
			changes = r.Source.Changes()
		}
		if err := r.Sink.Refill(context.WithoutCancel(ctx), r.Scope, page); err != nil {
			return err
		}
		todo.take(window)
		r.retry.Worked()
		done += int64(window.To - window.From)
		r.filled.Changed += int64(window.To - window.From)
		r.filled.Updates += int64(len(page.Updates))
		meter.Add(ctx, done, len(page.Updates))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// readWhole reads all of a window, as one page, or its beginning where that is too much to be held.
func (r *fillRun) readWhole(ctx context.Context, window ledger.Range) (ledger.Page, error) {
	whole := ledger.Page{From: window.From, To: window.From}
	for whole.To < window.To && (whole.Bytes < bytesInFlight || window.To == window.From+1) {
		asked := ledger.Range{From: whole.To, To: window.To}
		page, err := r.sizes.Read(ctx, r.Logger, r.Source.ReadUpdates, asked)
		if err != nil {
			return whole, fmt.Errorf("read the updates after offset %d up to %d: %w", asked.From, asked.To, err)
		}
		if page.From != asked.From || page.To <= page.From || page.To > asked.To {
			return whole, fmt.Errorf("read the updates after offset %d up to %d: the page covers offsets after %d up to %d", asked.From, asked.To, page.From, page.To)
		}
		r.sizes.learn(&page, page.To < window.To)
		whole.To, whole.Bytes, whole.Updates = page.To, whole.Bytes+page.Bytes, append(whole.Updates, page.Updates...)
	}
	return whole, nil
}
