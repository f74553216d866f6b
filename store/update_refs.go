package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
)

// UpdateRefs returns the first stored updates of a range, projected or not, in order, at most limit.
func (s *Store) UpdateRefs(ctx context.Context, within ledger.Range, limit int) ([]ledger.UpdateRef, error) {
	rows, err := s.db.Queries.UpdateRefs(ctx, s.db.Pool, dbsqlc.UpdateRefsParams{After: int64(within.From), UpTo: int64(within.To), Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("read which updates are stored after offset %d up to %d: %w", within.From, within.To, err)
	}
	list := make([]ledger.UpdateRef, len(rows))
	for i, row := range rows {
		list[i] = updateRef(row)
	}
	return list, nil
}

// UpdateRefsByID returns the stored updates after an offset whose id is one of ids, in no order.
func (s *Store) UpdateRefsByID(ctx context.Context, ids []string, after ledger.Offset) ([]ledger.UpdateRef, error) {
	rows, err := s.db.Queries.UpdateRefsByID(ctx, s.db.Pool, dbsqlc.UpdateRefsByIDParams{UpdateIds: ids, After: int64(after)})
	if err != nil {
		return nil, fmt.Errorf("look for %d updates by their ids: %w", len(ids), err)
	}
	list := make([]ledger.UpdateRef, len(rows))
	for i, row := range rows {
		list[i] = updateRef(dbsqlc.UpdateRefsRow(row))
	}
	return list, nil
}

func updateRef(row dbsqlc.UpdateRefsRow) ledger.UpdateRef {
	u := ledger.UpdateRef{
		Offset: ledger.Offset(row.LedgerOffset), UpdateKey: ledger.UpdateKey{ID: row.UpdateID, SynchronizerID: row.SynchronizerID},
	}
	if row.RecordTime.Valid {
		u.RecordTime = row.RecordTime.Time.UTC()
	}
	return u
}

// OffsetBefore returns the last offset that is earlier than a limit.
func (s *Store) OffsetBefore(ctx context.Context, before PruneBefore) (at ledger.Offset, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := held.Read(ctx, s.db, tx)
		if err != nil {
			return err
		}
		at, _, err = s.pruneFloor(ctx, tx, &extent, before)
		return err
	})
	return at, err
}
