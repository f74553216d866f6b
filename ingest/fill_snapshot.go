package ingest

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
)

// carry reads the snapshot at the lower end, where one is asked for and tells something new. It comes before the history that
// leads on from it: what can't be had is known soon.
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
		r.Logger.WarnContext(ctx, "dropping the snapshot that was begun at another offset", "stream", "history", "offset", int64(begun.At),
			"entries", begun.Entries, "now", int64(at))
	}
	changes := r.Source.Changes()
	snapshot, err := r.Snapshot.run(ctx, &at)
	var refused *ledger.Problem
	if errors.As(err, &refused) && !r.anew && snapshot.Entries > 0 {
		r.anew = true
		r.Logger.WarnContext(ctx, "the snapshot that was begun can't be gone on with: it is read anew", "stream", "history", "offset", int64(at), "error", err)
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
	// Another server may have answered: what it showed counts only if it has the history that is stored.
	if err := r.fork.begin(ctx, bounds.Watermark, nil); err != nil {
		if Lasting(err) {
			err = errors.Join(err, r.Snapshot.Sink.DropSnapshot(ctx))
		}
		return err
	}
	return nil
}

// notCarried says of a snapshot that can't be had what to do here: history can do without it. That it is pruned is not what
// counts, because reassignments in flight are told in the same way.
func notCarried(at ledger.Offset, err error) error {
	var p *ledger.Problem
	if !errors.As(err, &p) {
		return err
	}
	do := p.Do + "; or leave out --with-snapshot"
	if errors.Is(err, ledger.ErrPruned) {
		do = "choose another offset with --from: not below the one up to which the participant is pruned, and one at which no contract is on its " +
			"way from one synchronizer to another; or leave out --with-snapshot: then history is filled in, and what was active stays known from where it was"
	}
	refused := &ledger.Problem{What: fmt.Sprintf("the snapshot at offset %d can't be carried: %s", at, p.What), Do: do}
	if p.Err != nil {
		refused.Err = errors.New(p.Err.Error())
	}
	return refused
}
