package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
)

// LastUpdate returns the last stored update at or below an offset. at is 0 where there is none, and the id is empty
// where none could be read of an update of an unknown kind.
func (s *Store) LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error) {
	row, err := queries.UpdateLast(ctx, s.db.Pool, int64(upTo))
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", s.db.Unusable(fmt.Errorf("read the last stored update up to offset %d: %w", upTo, err))
	}
	return ledger.Offset(row.LedgerOffset), row.UpdateID, nil
}

// OfNetwork reports whether the pair of schemas is that of the updates of a network.
func (s *Store) OfNetwork() bool { return s.db.Config.Schemas.OfNetwork() }

// OfNetwork is Store.OfNetwork.
func (l *Leader) OfNetwork() bool { return l.store.OfNetwork() }

// LastUpdate is Store.LastUpdate.
func (l *Leader) LastUpdate(ctx context.Context, upTo ledger.Offset) (at ledger.Offset, updateID string, err error) {
	return l.store.LastUpdate(ctx, upTo)
}

// RecordTime returns the record time of the last stored update at or below an offset that has one; zero where none has.
func (s *Store) RecordTime(ctx context.Context, upTo ledger.Offset) (time.Time, error) {
	return s.recordTime(ctx, s.db.Pool, upTo)
}

func (s *Store) recordTime(ctx context.Context, db dbsqlc.DBTX, upTo ledger.Offset) (_ time.Time, err error) {
	defer pg.Wrap(&err, "read the record time of the last stored update up to offset %d", upTo)
	recordTime, err := queries.UpdateRecordTime(ctx, db, int64(upTo))
	return recordTime.Time, err
}

// UpdateOffset returns the offset of a stored update, whatever text its id is. ok is false where none has it.
func (s *Store) UpdateOffset(ctx context.Context, updateID string) (at ledger.Offset, ok bool, err error) {
	if !rows.TextHolds(updateID) {
		return 0, false, nil
	}
	offset, err := queries.UpdateOffset(ctx, s.db.Pool, updateID)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for update %s: %w", updateID, err)
	}
	return ledger.Offset(offset), true, nil
}

// UpdateRefs returns the first stored updates of a range, projected or not, in order, at most limit.
func (s *Store) UpdateRefs(ctx context.Context, within ledger.Range, limit int) (_ []ledger.UpdateRef, err error) {
	defer pg.Wrap(&err, "read which updates are stored after offset %d up to %d", within.From, within.To)
	found, err := queries.UpdateRefs(ctx, s.db.Pool, dbsqlc.UpdateRefsParams{After: int64(within.From),
		UpTo: int64(within.To), Most: int64(limit)})
	list := make([]ledger.UpdateRef, len(found))
	for i, row := range found {
		list[i] = updateRef(row)
	}
	return list, err
}

// UpdateRefsByID returns the stored updates after an offset whose id is one of ids, in no order.
func (s *Store) UpdateRefsByID(ctx context.Context, ids []string,
	after ledger.Offset) (_ []ledger.UpdateRef, err error) {
	defer pg.Wrap(&err, "look for %d updates by their ids", len(ids))
	found, err := queries.UpdateRefsByID(ctx, s.db.Pool, dbsqlc.UpdateRefsByIDParams{UpdateIds: ids, After: int64(after)})
	list := make([]ledger.UpdateRef, len(found))
	for i, row := range found {
		list[i] = updateRef(dbsqlc.UpdateRefsRow(row))
	}
	return list, err
}

func updateRef(row dbsqlc.UpdateRefsRow) ledger.UpdateRef {
	u := ledger.UpdateRef{
		Offset: ledger.Offset(row.LedgerOffset), UpdateKey: ledger.UpdateKey{ID: row.UpdateID,
			SynchronizerID: row.SynchronizerID},
	}
	if row.RecordTime.Valid {
		u.RecordTime = row.RecordTime.Time.UTC()
	}
	return u
}
