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

// MovedUpdates reads the next atMost updates after an offset, up to the watermark, and returns those that move amulets,
// in order. It has read up to through, which is after if there are no further updates.
func (s *Store) MovedUpdates(ctx context.Context, after ledger.Offset,
	atMost int) (list []ledger.MovedUpdate, through ledger.Offset, err error) {
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

// BeforeLast returns the offset after which the last so many updates up to the watermark follow, and the watermark. The
// offset is not below above; all reports that it is no higher than that or than where the stored history begins, so
// that no earlier update is left.
func (s *Store) BeforeLast(ctx context.Context, above ledger.Offset,
	updates int) (before, watermark ledger.Offset, all bool, err error) {
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

// movedBounds returns the offsets between which all updates are stored.
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

// RecordOrigin returns the offset of the update from which the record with a seq follows, and the version of the rules
// that derived it. stored is false if the record or the update is not stored.
func (s *Store) RecordOrigin(ctx context.Context, seq int64) (at ledger.Offset, rules int32, stored bool, err error) {
	return held.RecordOrigin(ctx, s.db, s.db.Pool, seq)
}
