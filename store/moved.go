package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/moved"
)

// MovedUpdates returns which of the next atMost updates after an offset, up to the watermark, move amulets, in order. through is how far they
// were read: no further than after, if there are none.
func (s *Store) MovedUpdates(ctx context.Context, after ledger.Offset, atMost int) (list []ledger.MovedUpdate, through ledger.Offset, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		floor, watermark, err := s.movedBounds(ctx, tx)
		if err != nil {
			return err
		}
		after = max(after, floor)
		to, err := s.db.Queries.UpdatesWindow(ctx, tx, dbsqlc.UpdatesWindowParams{
			FromExclusive: int64(after), ToInclusive: int64(max(after, watermark)), Beyond: int32(atMost - 1),
		})
		if err != nil {
			return fmt.Errorf("look for the updates after offset %d: %w", after, err)
		}
		through = ledger.Offset(to)
		list, err = moved.Updates(ctx, s.db.Queries, tx, after, through)
		return err
	})
	return list, through, err
}

// BeforeLast returns the offset before the last updates, as many as updates says, up to the watermark, none of which is at or below another
// offset, and the watermark. all reports that there are no more.
func (s *Store) BeforeLast(ctx context.Context, above ledger.Offset, updates int) (before, watermark ledger.Offset, all bool, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
		var floor ledger.Offset
		if floor, watermark, err = s.movedBounds(ctx, tx); err != nil {
			return err
		}
		above = max(above, floor)
		at, err := s.db.Queries.UpdatesBack(ctx, tx, dbsqlc.UpdatesBackParams{
			FromExclusive: int64(above), ToInclusive: int64(watermark), Beyond: int32(updates - 1),
		})
		if err != nil {
			return fmt.Errorf("look for the last updates up to offset %d: %w", watermark, err)
		}
		before, all = ledger.Offset(at), ledger.Offset(at) == above
		return nil
	})
	return before, watermark, all, err
}

// UpdateOffset returns the offset of a stored update.
func (s *Store) UpdateOffset(ctx context.Context, updateID string) (at ledger.Offset, ok bool, err error) {
	offset, err := s.db.Queries.MovedOffset(ctx, s.db.Pool, updateID)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for update %s: %w", updateID, err)
	}
	return ledger.Offset(offset), true, nil
}

// ParticipantID returns the id of the participant whose ledger is stored, or the party that operates the network; empty: not known.
func (s *Store) ParticipantID(ctx context.Context) (string, error) {
	id, err := s.db.Queries.ParticipantGet(ctx, s.db.Pool)
	if err != nil {
		return "", s.db.Unusable(fmt.Errorf("read whose ledger is stored: %w", err))
	}
	return id, nil
}

// movedBounds are the offsets between which all updates are stored.
func (s *Store) movedBounds(ctx context.Context, tx pgx.Tx) (floor, watermark ledger.Offset, err error) {
	watermark, ok, err := held.Watermark(ctx, s.db, tx)
	if err != nil || !ok {
		return 0, 0, err
	}
	floors, err := s.db.Queries.FloorsGet(ctx, tx, StreamUpdates)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, fmt.Errorf("read where the stored history begins: %w", err)
	}
	return ledger.Offset(max(floors.HistoryFloor, floors.PrunedTo)), watermark, nil
}

// RecordOrigin returns the offset of the update that the record with a seq follows from, and the version of the rules by which it does. stored is
// false where there is no such update, or no such record.
func (s *Store) RecordOrigin(ctx context.Context, seq int64) (at ledger.Offset, rules int32, stored bool, err error) {
	return s.recordOrigin(ctx, s.db.Pool, seq)
}

func (s *Store) recordOrigin(ctx context.Context, db dbsqlc.DBTX, seq int64) (at ledger.Offset, rules int32, stored bool, err error) {
	row, err := s.db.Queries.RecordOrigin(ctx, db, seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, fmt.Errorf("look for the update of the record with seq %d: %w", seq, err)
	}
	return ledger.Offset(row.LedgerOffset), row.Rules, true, nil
}
