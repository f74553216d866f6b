package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
)

// MoveWatermark shows what was written ahead: it moves the watermark from one offset to another, up to which everything
// is stored, with what follows from the events for the active set. Long ranges take several transactions, each of which
// moves the watermark; it never moves without what follows.
//
// Errors: ErrNotLeader, ErrWatermarkMoved, or the database's; where something in the range is not stored in this scope,
// the watermark stays before it. After any error read Watermark again.
func (l *UpdatesWriter) MoveWatermark(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error {
	for from < to {
		reach, err := l.projectNext(ctx, scope, from, to)
		if err != nil {
			return fmt.Errorf("move the watermark from offset %d to %d: %w", from, to, session.Refused(err))
		}
		from = reach
	}
	return nil
}

// projectNext moves the watermark as far as one transaction should, and returns where to.
func (l *UpdatesWriter) projectNext(ctx context.Context, scope ledger.Scope, from,
	to ledger.Offset) (ledger.Offset, error) {
	parts, upTo, known := l.pending.After(int64(from), int64(to))
	if !known {
		if err := l.refuseUncovered(ctx, scope, from, ledger.Offset(upTo)); err != nil {
			return 0, err
		}
		events, reach, err := l.readStepEvents(ctx, int64(from), upTo, l.pending.Enough)
		if err != nil {
			return 0, err
		}
		parts, upTo = [][]rows.Effect{events}, reach
	}
	step := active.NewStep(parts...)
	if err := l.term.Partitions.Ensure(ctx, "lifetimes", step.DeactivatedOffsets()); err != nil {
		return 0, err
	}
	reach := ledger.Offset(upTo)
	var recordTime time.Time
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.moveWatermark(ctx, tx, from, reach); err != nil {
			return err
		}
		if err := l.project(ctx, tx, step); err != nil {
			return err
		}
		var err error
		if recordTime, err = l.store.recordTime(ctx, tx, reach); err != nil {
			return err
		}
		return l.mergeCoverage(ctx, tx, scope, from, reach)
	})
	if err != nil {
		return 0, err
	}
	l.pending.Forget(upTo)
	l.store.db.Config.Shown(recordTime)
	return reach, nil
}

// refuseUncovered refuses a range that is not stored as a whole, before its facts are read: coverage commits with its
// facts, so what is covered is there.
func (l *UpdatesWriter) refuseUncovered(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error {
	covered, err := queries.CoverageWithin(ctx, l.term.Pool, dbsqlc.CoverageWithinParams{
		Stream: StreamUpdates, Scope: scope.Hash(), FromExclusive: int64(from), ToInclusive: int64(to),
	})
	if err != nil {
		return fmt.Errorf("read what is covered: %w", err)
	}
	if covered < int64(to-from) {
		return fmt.Errorf("offsets after %d up to %d: %w", from, to, errNotCovered)
	}
	return nil
}

// readBackUpdates is how many updates are read back at once, at most: the server sorts what it reads.
const readBackUpdates = 10_000

// readStepEvents reads the events of a range that change the active set or use it back from the facts, in order: those
// of whole updates, about as many as are enough for one transaction. reach is how far they go.
func (l *Leader) readStepEvents(ctx context.Context, from, to int64,
	enough int) (events []rows.Effect, reach int64, err error) {
	last, err := queries.VerificationUpdatesEnd(ctx, l.term.Pool, dbsqlc.VerificationUpdatesEndParams{
		FromExclusive: from, ToInclusive: to, Skip: readBackUpdates - 1,
	})
	if err != nil {
		return nil, 0, fmt.Errorf("look for the updates after offset %d up to %d: %w", from, to, err)
	}
	if len(last) > 0 {
		to = last[0]
	}
	for atMost := int64(enough); ; atMost *= 2 {
		list, err := queries.StepEvents(ctx, l.term.Pool, dbsqlc.StepEventsParams{FromExclusive: from,
			ToInclusive: to, AtMost: atMost})
		if err != nil {
			return nil, 0, fmt.Errorf("read events after offset %d up to %d: %w", from, to, err)
		}
		if int64(len(list)) < atMost {
			return active.StoredEffects(list), to, nil
		}
		// There may be more of the last update.
		unsure := list[len(list)-1].LedgerOffset
		whole, _ := slices.BinarySearchFunc(list, unsure,
			func(r dbsqlc.StepEvents, offset int64) int { return cmp.Compare(r.LedgerOffset, offset) })
		if whole > 0 {
			return active.StoredEffects(list[:whole]), unsure - 1, nil
		}
	}
}
