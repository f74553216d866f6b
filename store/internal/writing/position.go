package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// PutPosition moves the position, and the checkpoint to its record. derived is the offset up to which records are
// derived from updates; nil: they are served.
func PutPosition(ctx context.Context, tx pgx.Tx, next ledger.TransactionsPosition, derived *ledger.Offset) error {
	if err := queries.TransactionsPositionPut(ctx, tx, dbsqlc.TransactionsPositionPutParams(next)); err != nil {
		return fmt.Errorf("move the position in the transaction history: %w", err)
	}
	checkpoint := dbsqlc.TransactionsCheckpointParams{Stream: tables.StreamTransactions,
		LedgerOffset: (*int64)(derived), LastSeq: next.LastSeq}
	if err := queries.TransactionsCheckpoint(ctx, tx, checkpoint); err != nil {
		return fmt.Errorf("store the checkpoint of the transaction history: %w", err)
	}
	return nil
}

// RemoveDerived removes the records that follow from updates, so that they are derived again; but for those of updates
// that were pruned. It returns the position then. See RemoveRecords.
func RemoveDerived(ctx context.Context, tx pgx.Tx, extent *bounds.Extent, at ledger.TransactionsPosition,
	reason string) (next ledger.TransactionsPosition, err error) {
	left, err := bounds.RecordsKept(ctx, tx, extent, at)
	if err != nil {
		return at, err
	}
	next = BackTo(at, left)
	return next, RemoveRecords(ctx, tx, at, next, &extent.HistoryFloor, reason)
}

// BackTo returns the position behind the record with a seq, after those beyond it were removed.
func BackTo(at ledger.TransactionsPosition, left int64) ledger.TransactionsPosition {
	at.Revision, at.LastSeq = at.Revision+1, left
	return at
}

// Cleared returns the position after all records were removed, to be read again.
func Cleared(at ledger.TransactionsPosition) ledger.TransactionsPosition {
	return ledger.TransactionsPosition{Revision: at.Revision + 1, Rereading: true}
}

// RemoveRecords removes the records of the transaction history after those of the position next, which has another
// revision, and makes it the position; derived is as for PutPosition. Its caller holds the position, or excludes its
// writer. Rows are deleted and no table is emptied: running queries keep theirs, and nobody waits.
func RemoveRecords(ctx context.Context, tx pgx.Tx, at, next ledger.TransactionsPosition, derived *ledger.Offset,
	reason string) error {
	for _, table := range tables.In(tables.Records, tables.Totals) {
		if !table.OfRecords() {
			continue
		}
		if _, err := tx.Exec(ctx, table.Delete("s.seq > $1 OR s.seq <= 0"), next.LastSeq); err != nil {
			return fmt.Errorf("remove the rows of %s of records after seq %d: %w", table.Name, next.LastSeq, err)
		}
	}
	return RecordsRemoved(ctx, tx, at, next, derived, reason)
}

// RecordsRemoved is RemoveRecords after the records were removed: it computes again what follows from the others.
func RecordsRemoved(ctx context.Context, tx pgx.Tx, at, next ledger.TransactionsPosition, derived *ledger.Offset,
	reason string) error {
	for _, step := range []func(context.Context, dbsqlc.DBTX) error{
		queries.BalancesForget, queries.BalanceTotalsCompute, queries.BalanceRoundsCompute,
	} {
		if err := step(ctx, tx); err != nil {
			return fmt.Errorf("add up the balance changes of the records up to seq %d: %w", next.LastSeq, err)
		}
	}
	if err := PutPosition(ctx, tx, next, derived); err != nil {
		return err
	}
	if err := Unseal(ctx, tx, tables.StreamTransactions, next.LastSeq); err != nil {
		return err
	}
	return NoteRewrite(ctx, tx, tables.StreamTransactions, next.LastSeq, at.LastSeq, reason)
}
