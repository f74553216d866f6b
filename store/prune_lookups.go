package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
)

// findLookups looks for places for look-ups: where the contract has a look-up already, it moves there with its answer, which the
// participant may not give again.
func (p *pruning) findLookups(ctx context.Context, tx pgx.Tx, after, upTo int64) error {
	rows, err := tx.Query(ctx, "SELECT contract_id, ledger_offset, node_id FROM lookups_after_pruning($1, $2, $3)", after, upTo, p.floor)
	if err == nil {
		var contract string
		var offset int64
		var node int32
		_, err = pgx.ForEachRow(rows, []any{&contract, &offset, &node}, func() error {
			p.lookups.ContractIds = append(p.lookups.ContractIds, contract)
			p.lookups.LedgerOffsets = append(p.lookups.LedgerOffsets, offset)
			p.lookups.NodeIds = append(p.lookups.NodeIds, node)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("look for contracts whose look-up or creation goes: %w", err)
	}
	return nil
}

// moveLookups writes what findLookups has found, and removes the other look-ups up to the floor.
func (p *pruning) moveLookups(ctx context.Context, db dbsqlc.DBTX, floor int64) error {
	p.lookups.Floor = floor
	if err := p.leader.store.db.Queries.PruneMoveLookups(ctx, db, p.lookups); err != nil {
		return err
	}
	return p.leader.store.db.Queries.PruneForgetLookups(ctx, db, floor)
}
