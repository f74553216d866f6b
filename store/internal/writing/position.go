package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
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

// ClearRecords removes all records of the transaction history and what follows from them. Its caller holds the
// position, or excludes its writer. Rows are deleted and no table is emptied: running queries keep theirs, and nobody
// waits.
func ClearRecords(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition,
	reason string) (next ledger.TransactionsPosition, err error) {
	for _, table := range tables.In(tables.Records, tables.Totals) {
		if _, err := tx.Exec(ctx, table.Delete("true")); err != nil {
			return at, fmt.Errorf("remove the rows of %s: %w", table.Name, err)
		}
	}
	if err := queries.BalanceRoundsCompute(ctx, tx); err != nil {
		return at, fmt.Errorf("note that the rounds of the records are not known: %w", err)
	}
	next = ledger.TransactionsPosition{Revision: at.Revision + 1, Rereading: true}
	if err := PutPosition(ctx, tx, next, nil); err != nil {
		return at, err
	}
	if err := Unseal(ctx, tx, tables.StreamTransactions, 0); err != nil {
		return at, err
	}
	return next, NoteRewrite(ctx, tx, tables.StreamTransactions, 0, at.LastSeq, reason)
}
