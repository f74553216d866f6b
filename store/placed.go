package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
)

// PlacedUpdates are the next stored updates in a range, shown or not, in order, at most so many.
func (s *Store) PlacedUpdates(ctx context.Context, within ledger.Range, most int) ([]ledger.PlacedUpdate, error) {
	rows, err := s.db.Queries.UpdatesPlaced(ctx, s.db.Pool, dbsqlc.UpdatesPlacedParams{After: int64(within.From), UpTo: int64(within.To), Most: int64(most)})
	if err != nil {
		return nil, fmt.Errorf("read which updates are stored after offset %d up to %d: %w", within.From, within.To, err)
	}
	list := make([]ledger.PlacedUpdate, len(rows))
	for i, row := range rows {
		list[i] = placed(row)
	}
	return list, nil
}

// NamedUpdates are the stored updates after an offset that have one of some ids, in no order.
func (s *Store) NamedUpdates(ctx context.Context, ids []string, after ledger.Offset) ([]ledger.PlacedUpdate, error) {
	rows, err := s.db.Queries.UpdatesNamed(ctx, s.db.Pool, dbsqlc.UpdatesNamedParams{UpdateIds: ids, After: int64(after)})
	if err != nil {
		return nil, fmt.Errorf("look for %d updates by their ids: %w", len(ids), err)
	}
	list := make([]ledger.PlacedUpdate, len(rows))
	for i, row := range rows {
		list[i] = placed(dbsqlc.UpdatesPlacedRow(row))
	}
	return list, nil
}

func placed(row dbsqlc.UpdatesPlacedRow) ledger.PlacedUpdate {
	u := ledger.PlacedUpdate{
		Offset: ledger.Offset(row.LedgerOffset), UpdateKey: ledger.UpdateKey{ID: row.UpdateID, SynchronizerID: row.SynchronizerID},
	}
	if row.RecordTime.Valid {
		u.RecordTime = row.RecordTime.Time.UTC()
	}
	return u
}

// OffsetBefore is the offset before what a limit names: what lies up to there is earlier.
func (s *Store) OffsetBefore(ctx context.Context, before PruneBefore) (at ledger.Offset, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := held.Read(ctx, s.db, tx)
		if err != nil {
			return err
		}
		at, err = s.pruneFloor(ctx, tx, &extent, before)
		return err
	})
	return at, err
}
