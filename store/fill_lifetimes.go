package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// What was active at an offset is in active_contracts, and in lifetimes that ended later. Once history is filled in to
// the beginning of the ledger, or to a snapshot that was read, the lifetimes that ended before indexing began are
// computed from it, step by step, with a set of active contracts of its own: fill_active. Then the state floor goes to
// there too, and the snapshot takes the place of the one that indexing began with.
//
// Where indexing began without a snapshot, active_contracts also lacks the contracts that were active there. They are
// followed through the updates that the leader has written since, up to the watermark, and those that are still active
// are added while that leader waits.

// FillState takes a step towards a lower state floor, if history is filled in from the beginning of the ledger, or from
// a LowerSnapshot. It returns the offset that it has reached, and the one at which it ends for now. done is true if the
// state floor can't be lowered any further. The next call continues from the offset that was reached, also after an
// error.
func (l *BackfillWriter) FillState(ctx context.Context) (at, end ledger.Offset, done bool, err error) {
	place, err := l.store.db.Queries.FillPlace(ctx, l.term.Pool)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, true, nil
	}
	if err != nil {
		return 0, 0, false, l.store.db.Unusable(fmt.Errorf("read how far history is filled in: %w", err))
	}
	s := stateFill{leader: l, began: place.ProjectedFrom, known: place.StateFloor != nil}
	if ok, err := s.choose(ctx, place); err != nil || !ok {
		return 0, 0, err == nil, err
	}
	if place.LifetimesTo == nil {
		place.LifetimesTo = &s.start
		err = s.begin(ctx)
	}
	if err == nil {
		err = s.step(ctx, *place.LifetimesTo)
	}
	if s.contradicted {
		return 0, 0, false, errors.Join(err, l.LowerSnapshot().DropSnapshot(ctx))
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("compute lifetimes after offset %d: %w", *place.LifetimesTo, session.Refused(err))
	}
	return ledger.Offset(s.reached), ledger.Offset(s.end), s.done, nil
}

// stateFill computes lifetimes from an offset at which the active set is known.
type stateFill struct {
	leader   *BackfillWriter
	start    int64 // the beginning of the ledger, or the snapshot's offset
	snapshot bool
	began    int64 // where indexing began: later activations are in active_contracts and lifetimes already
	known    bool  // and so are the contracts that were active there

	reached, end int64
	done         bool
	contradicted bool // what else is stored contradicts the snapshot
}

// choose chooses where to begin. ok is false if there is no such place: neither a snapshot nor the beginning of the
// ledger with all updates from there on. A finished snapshot comes first: lifetimes that were computed without it were
// dropped when it was finished.
func (s *stateFill) choose(ctx context.Context, place dbsqlc.FillPlaceRow) (ok bool, err error) {
	snapshot, err := s.leader.store.lowerSnapshot(ctx, s.leader.term.Pool)
	if err != nil {
		return false, err
	}
	at := ledger.Offset(s.began)
	if snapshot != nil && snapshot.Finished && (snapshot.At < at || snapshot.At == at && !s.known) {
		covered, err := held.Covered(ctx, s.leader.store.db, s.leader.term.Pool, s.began)
		if err != nil {
			return false, err
		}
		if len(covered.Missing(ledger.Range{From: snapshot.At, To: at})) == 0 {
			s.start, s.snapshot = int64(snapshot.At), true
			return true, nil
		}
	}
	return place.HistoryFloor == 0 && (place.StateFloor == nil || *place.StateFloor > 0), nil
}

func (s *stateFill) begin(ctx context.Context) error {
	return s.leader.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		// wait for a reset or a change of the scope that is under way: it has looked for computed lifetimes before these
		// begin
		if !s.known {
			if err := s.leader.term.Exclude(ctx, tx, RoleUpdates); err != nil {
				return err
			}
		}
		q := s.leader.store.db.Queries
		begun, err := q.FillLifetimesBegin(ctx, tx, s.start)
		if err == nil && begun == 0 {
			err = ErrWatermarkMoved
		}
		if err != nil || !s.snapshot {
			return err
		}
		if err := q.WaitingSnapshotActivate(ctx, tx, s.start); err != nil {
			return fmt.Errorf("begin with what the snapshot at offset %d has: %w", s.start, err)
		}
		return nil
	})
}

// step continues from an offset, as far as one transaction should.
func (s *stateFill) step(ctx context.Context, from int64) error {
	s.reached, s.end = from, s.began
	if from >= s.began && !s.known {
		watermark, _, err := s.leader.store.Watermark(ctx)
		if err != nil {
			return err
		}
		s.end = int64(watermark)
	}
	if from >= s.end {
		return s.finish(ctx, from)
	}
	step, reach, err := s.read(ctx, from, s.end)
	if err != nil {
		return err
	}
	s.reached = reach
	return s.leader.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := s.leader.store.db.Queries.DerivePlainly(ctx, tx); err != nil {
			return fmt.Errorf("have contracts looked up by index: %w", err)
		}
		return s.apply(ctx, tx, step, from, reach)
	})
}

// finish lowers the state floor to where the lifetimes were computed from.
func (s *stateFill) finish(ctx context.Context, from int64) error {
	err := s.leader.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if !s.known { // before advance, which locks the place: a reset excludes the writers before it locks that
			if err := s.leader.term.Exclude(ctx, tx, RoleUpdates); err != nil {
				return err
			}
		}
		if err := s.advance(ctx, tx, from, from); err != nil {
			return err
		}
		if !s.known {
			if err := s.activate(ctx, tx, from); err != nil {
				return err
			}
		}
		return s.lower(ctx, tx)
	})
	s.done = err == nil && !s.snapshot // history may reach further down
	return err
}

func (s *stateFill) lower(ctx context.Context, tx pgx.Tx) error {
	if s.snapshot {
		contradiction, err := s.leader.contradicted(ctx, tx, s.start)
		if err != nil {
			return err
		}
		if contradiction != nil {
			s.contradicted = true
			return contradiction
		}
	}
	if err := s.leader.store.db.Queries.FillStateKnown(ctx, tx, s.start); err != nil {
		return fmt.Errorf("lower the state floor to offset %d: %w", s.start, err)
	}
	// After the floors were locked, and in a statement of its own: the one that waited for a sealer does not see what that
	// has sealed.
	if err := writing.Unseal(ctx, tx, findings.SealedSnapshot, 0); err != nil {
		return err
	}
	// At the beginning of the ledger this drops a snapshot that waits: it is not needed any more.
	if err := s.leader.show(ctx, tx, s.start); err != nil {
		return err
	}
	return writing.NoteRewrite(ctx, tx, findings.SealedSnapshot, 0, s.end, writing.FilledIn)
}

// activate adds what is active at the watermark, and was activated before indexing began, to the active contracts.
func (s *stateFill) activate(ctx context.Context, tx pgx.Tx, from int64) error {
	l := s.leader
	watermark, _, err := held.Watermark(ctx, l.store.db, tx)
	if err != nil {
		return err
	}
	for s.end = int64(watermark); from < s.end; from = s.reached {
		step, reach, err := s.read(ctx, from, s.end)
		if err != nil {
			return err
		}
		if err := s.apply(ctx, tx, step, from, reach); err != nil {
			return err
		}
		s.reached = reach
	}
	if err := l.store.db.Queries.FillActivate(ctx, tx); err != nil {
		return fmt.Errorf("add what is active: %w", err)
	}
	return nil
}

// read returns the next step, and the offset up to which it goes. After the offset at which indexing began, a step has
// only deactivations.
func (s *stateFill) read(ctx context.Context, from, to int64) (*active.Step, int64, error) {
	events, reach, err := s.leader.readStepEvents(ctx, from, to, active.EventsEnough)
	if err != nil {
		return nil, 0, err
	}
	step := active.NewStep(events)
	if from >= s.began {
		step.Lifetimes, step.Activations, step.References = nil, nil, nil
		for i := range step.Deactivations {
			step.Deactivations[i].LookupOffset = 0
		}
	}
	return step, reach, s.leader.term.Partitions.Ensure(ctx, "lifetimes", step.DeactivatedOffsets())
}

// advance moves the place up to which lifetimes are computed. It fails if facts that the step may have read have
// changed since, up to that place or after it: then lifetimes are computed from the start again.
func (s *stateFill) advance(ctx context.Context, tx pgx.Tx, from, to int64) error {
	moved, err := s.leader.store.db.Queries.FillLifetimesAdvance(ctx, tx,
		dbsqlc.FillLifetimesAdvanceParams{FromOffset: from, ToOffset: to})
	if err == nil && moved == 0 {
		err = ErrWatermarkMoved
	}
	return err
}

// apply applies a step to fill_active, as UpdatesWriter.project applies one to active_contracts.
func (s *stateFill) apply(ctx context.Context, tx pgx.Tx, step *active.Step, from, to int64) error {
	if err := s.advance(ctx, tx, from, to); err != nil {
		return err
	}
	return s.leader.apply(ctx, tx, s.leader.store.fillActive(), step)
}
