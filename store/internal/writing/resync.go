package writing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// UnfinishedResync returns the resync that is not whole; nil: there is none.
func UnfinishedResync(ctx context.Context, db dbsqlc.DBTX) (*dbsqlc.Resyncs, error) {
	row, err := queries.ResyncUnfinished(ctx, db)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for an unfinished resync: %w", err)
	}
	return &row, nil
}

// EnsureResync attaches the partitions of what begins and ends at an offset, before its transaction begins.
func EnsureResync(ctx context.Context, set *partitions.Set, at ledger.Offset) error {
	for _, table := range append(tables.In(tables.Resynced), tables.Get(tables.Projections, "lifetimes")) {
		if err := set.Ensure(ctx, table.Name, slices.Values([]int64{int64(at)})); err != nil {
			return err
		}
	}
	return nil
}

// DropResync removes a resync that is not whole, if there is one, and what waits of it.
func DropResync(ctx context.Context, tx pgx.Tx) error {
	dropped, err := queries.ResyncDrop(ctx, tx)
	if err == nil && dropped > 0 {
		err = queries.ResyncClear(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("drop the unfinished resync: %w", err)
	}
	return nil
}

// ActiveAsOf returns what is stored as active as of an offset, at most the watermark, of some contracts.
func ActiveAsOf(ctx context.Context, tx pgx.Tx, at ledger.Offset,
	of []rows.ActiveContract) (_ map[active.Key][]dbsqlc.ActiveAsOfRow, err error) {
	defer pg.Wrap(&err, "read what is stored as active")
	asked := dbsqlc.ActiveAsOfParams{At: int64(at)}
	for i := range of {
		asked.ContractIds = append(asked.ContractIds, of[i].ContractID)
		asked.SynchronizerRefs = append(asked.SynchronizerRefs, *of[i].SynchronizerRef)
	}
	list, err := queries.ActiveAsOf(ctx, tx, asked)
	stored := make(map[active.Key][]dbsqlc.ActiveAsOfRow, len(list))
	for _, row := range list {
		key := active.Key{ContractID: row.ContractID, SynchronizerRef: row.SynchronizerRef}
		stored[key] = append(stored[key], row)
	}
	return stored, err
}

// KeyOf returns what an active contract is known by.
func KeyOf(a *rows.ActiveContract) active.Key {
	return active.Key{ContractID: a.ContractID, SynchronizerRef: *a.SynchronizerRef}
}
