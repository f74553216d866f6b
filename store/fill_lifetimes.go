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
// the beginning of the ledger, or to a snapshot that was read, the lifetimes that ended before indexing began are computed from
// it, step by step, with a set of active contracts of its own: fill_active. Then the state floor goes to there too, and the
// snapshot takes the place of the one that indexing began with.
//
// Where indexing began without a snapshot, what was active there is missing in active_contracts as well: it is followed on
// through what the leader of the updates has written, up to the watermark, and added there while that leader waits.

// FillState goes a step towards a lower state floor, where history is filled in from the beginning of the ledger on, or from a
// LowerSnapshot on. It says up to where it has come, and where it ends for now; done is true where the state floor is there, or
// can't be because history begins later. It continues where it was, after an error too.
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

// stateFill computes lifetimes from an offset on where it is known what was active.
type stateFill struct {
	leader   *BackfillWriter
	start    int64 // the beginning of the ledger, or the snapshot's offset
	snapshot bool
	began    int64 // what was activated later is in active_contracts and lifetimes already
	known    bool  // and so is what was active here

	reached, end int64
	done         bool
	contradicted bool // the snapshot is, by what else is stored
}

// choose says where to begin; ok is false where history leads from nowhere to where what was active is known. The snapshot comes
// first: what was begun without it was dropped when it became complete.
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
		if !s.known { // a reset, or a change of the scope, that is under way has found nothing to begin again, and changes what would be read
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
		if !s.known { // first: a reset waits for the place while it holds the writes
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
	// Behind the floors, and in a statement of its own: one that waits for a sealer does not see what that has sealed meanwhile.
	if err := writing.Unseal(ctx, tx, findings.SealedSnapshot, 0); err != nil {
		return err
	}
	// Where that is the beginning of the ledger, a snapshot that waits is not needed any more.
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

// read is the next step, and how far it goes. Behind the place where indexing began it says only what ends.
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

// advance moves the place. It fails where what was read behind it was changed since: then lifetimes are computed from the beginning again.
func (s *stateFill) advance(ctx context.Context, tx pgx.Tx, from, to int64) error {
	moved, err := s.leader.store.db.Queries.FillLifetimesAdvance(ctx, tx, dbsqlc.FillLifetimesAdvanceParams{FromOffset: from, ToOffset: to})
	if err == nil && moved == 0 {
		err = ErrWatermarkMoved
	}
	return err
}

// apply is to fill_active what Leader.project is to active_contracts.
func (s *stateFill) apply(ctx context.Context, tx pgx.Tx, step *active.Step, from, to int64) error {
	if err := s.advance(ctx, tx, from, to); err != nil {
		return err
	}
	return s.leader.apply(ctx, tx, s.leader.store.fillActive(), step)
}
