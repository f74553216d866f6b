package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// refill reads again what is stored in a scope that lacks something of the one in force: downwards, one window after
// the other, because the sink takes them in this order only, and the carried snapshot last. A run that ended continues
// where it was, except for the snapshot, which it begins again. From and To say what history is filled in below; this
// is done whatever they say, and before that.
func (r *fillRun) refill(ctx context.Context) error {
	earlier, err := r.Sink.EarlierScope(ctx)
	if err != nil || len(earlier) == 0 {
		return err
	}
	all := earlier[len(earlier)-1].To - earlier[0].From
	r.Logger.InfoContext(ctx, "reading again what was stored before the scope was changed", "stream", "backfill",
		"from", int64(earlier[0].From), "up_to", int64(earlier[len(earlier)-1].To))
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "backfill", Unit: "updates", End: int64(all)}, r.Progress)
	defer meter.Idle()
	for i := range earlier {
		e := &earlier[len(earlier)-1-i]
		source, err := r.In(ctx, e.Scope)
		if err != nil {
			return err
		}
		again := refilling{fillRun: r, source: source, scope: e.Scope, changes: source.Changes()}
		if e.Snapshot {
			err = again.snapshot(ctx, e.From)
		} else {
			err = again.updates(ctx, e.Range, func(to ledger.Offset, updates int) {
				meter.Add(ctx, int64(earlier[len(earlier)-1].To-to), updates)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type refilling struct {
	*fillRun
	source  ScopedSource
	scope   ledger.Scope
	changes int64 // of the source when the fork was last looked for
}

func (r *refilling) updates(ctx context.Context, all ledger.Range, did func(to ledger.Offset, updates int)) error {
	todo := plan{sizes: &r.sizes, missing: []ledger.Range{all}, newestFirst: true}
	for {
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
		if err := r.sameLedger(ctx); err != nil {
			return err
		}
		if err := r.Sink.Refill(context.WithoutCancel(ctx), r.scope, page); err != nil {
			return err
		}
		todo.take(window)
		r.retry.Worked()
		r.filled.Changed += int64(window.To - window.From)
		r.filled.Updates += int64(len(page.Updates))
		did(window.From, len(page.Updates))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (r *refilling) snapshot(ctx context.Context, at ledger.Offset) error {
	r.Logger.InfoContext(ctx, "reading the carried snapshot again, because the scope was changed", "stream", "backfill",
		"offset", int64(at))
	for before, next := int64(0), (ledger.Token{}); ; {
		page, err := r.source.ReadSnapshot(ctx, at, next)
		if err != nil {
			return notRefilled(at, err)
		}
		if err := r.sameLedger(ctx); err != nil {
			return err
		}
		if err := r.Sink.RefillSnapshot(context.WithoutCancel(ctx), r.scope, at, before, page); err != nil {
			return err
		}
		r.retry.Worked()
		if page.Last || ctx.Err() != nil {
			return ctx.Err()
		}
		before, next = before+int64(len(page.Entries)), page.Next
	}
}

// notRefilled replaces the cure of ledger.ErrPruned by the one for a snapshot.
func notRefilled(at ledger.Offset, err error) error {
	var p *ledger.Problem
	if !errors.Is(err, ledger.ErrPruned) || !errors.As(err, &p) {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the snapshot at offset %d can't be read again in the scope in force: %s", at, p.What),
		Err:  errors.New(p.Error()),
		Do: "what is missing are the contracts of what was added that were active there. Fill in from a replica of the " +
			"participant that still has it; or prune to a later offset when all that is stored is complete: go back to the " +
			"scope before with --change-scope, run `indexer prune`, and change it then",
	}
}

// sameLedger looks for a fork if another server may have answered.
func (r *refilling) sameLedger(ctx context.Context) error {
	now := r.source.Changes()
	if now == r.changes {
		return nil
	}
	bounds, _, err := r.Sink.Bounds(ctx)
	if err != nil {
		return err
	}
	if err := r.fork.begin(ctx, bounds.Watermark, nil); err != nil {
		return err
	}
	r.changes = now
	return nil
}

// readWhole reads all of a window, as one page, or its beginning where that is too much to be held.
func (r *refilling) readWhole(ctx context.Context, window ledger.Range) (ledger.Page, error) {
	whole := ledger.Page{From: window.From, To: window.From}
	for whole.To < window.To && (whole.Bytes < bytesInFlight || window.To == window.From+1) {
		asked := ledger.Range{From: whole.To, To: window.To}
		page, err := r.sizes.Read(ctx, r.Logger, r.source.ReadUpdates, asked)
		if err != nil {
			return whole, fmt.Errorf("read the updates after offset %d up to %d: %w", asked.From, asked.To, err)
		}
		if page.From != asked.From || page.To <= page.From || page.To > asked.To {
			return whole, fmt.Errorf("read the updates after offset %d up to %d: the page covers offsets after %d up to %d",
				asked.From, asked.To, page.From, page.To)
		}
		r.sizes.learn(&page, page.To < window.To)
		whole.To, whole.Bytes, whole.Updates = page.To, whole.Bytes+page.Bytes, append(whole.Updates, page.Updates...)
	}
	return whole, nil
}
