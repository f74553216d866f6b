package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// carry reads the snapshot at the lower end of the range, if one is requested and lowers the state floor. It comes
// before the updates, so that a snapshot that can't be read is known early.
func (r *fillRun) carry(ctx context.Context, bounds ledger.Bounds) error {
	at := r.filled.Range.From
	if r.Snapshot == nil || at == 0 || bounds.StateFloor != nil && at >= *bounds.StateFloor {
		return nil
	}
	begun, err := r.Snapshot.Sink.LatestSnapshot(ctx)
	if err != nil {
		return err
	}
	if begun != nil && begun.At != at {
		r.Logger.WarnContext(ctx, "dropping the snapshot that was begun at another offset", "stream", "backfill",
			"offset", int64(begun.At),
			"entries", begun.Entries, "now", int64(at))
	}
	changes := r.Source.Changes()
	snapshot, err := r.Snapshot.run(ctx, &at)
	if _, ok := errors.AsType[*ledger.Problem](err); ok && !r.restarted && snapshot.Entries > 0 {
		r.restarted = true
		r.Logger.WarnContext(ctx, "the unfinished snapshot can't be continued: reading it from the beginning", "stream",
			"backfill", "offset", int64(at), "error", err)
		if err := r.Snapshot.Sink.DropSnapshot(ctx); err != nil {
			return err
		}
		snapshot, err = r.Snapshot.run(ctx, &at)
	}
	if err != nil {
		return notCarried(at, err)
	}
	r.filled.Snapshot = &snapshot
	if r.Source.Changes() == changes {
		return nil
	}
	// Another server may have answered: its snapshot counts only if it has the stored updates.
	if err := r.fork.begin(ctx, bounds.Watermark, nil); err != nil {
		if Lasting(err) {
			err = errors.Join(err, r.Snapshot.Sink.DropSnapshot(ctx))
		}
		return err
	}
	return nil
}

// notCarried replaces the cure of a snapshot that can't be read by the one for a Fill, which can do without it. The
// result is no ledger.ErrPruned, because a participant answers in the same way while a reassignment is in flight.
func notCarried(at ledger.Offset, err error) error {
	p, ok := errors.AsType[*ledger.Problem](err)
	if !ok {
		return err
	}
	do := p.Do + "; or leave out --with-snapshot"
	if errors.Is(err, ledger.ErrPruned) {
		do = "choose another offset with --from: not below the one up to which the participant is pruned, and one at which " +
			"no contract is on its way from one synchronizer to another; or leave out --with-snapshot: then history is filled " +
			"in, and what was active stays known from where it was"
	}
	refused := &ledger.Problem{What: fmt.Sprintf("the snapshot at offset %d can't be carried: %s", at, p.What), Do: do}
	if p.Err != nil {
		refused.Err = errors.New(p.Err.Error())
	}
	return refused
}
