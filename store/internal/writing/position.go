package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// PutPosition moves the position, and the checkpoint to a cursor. derived is the offset up to which records are derived
// from updates; nil: they are served.
func PutPosition(ctx context.Context, tx pgx.Tx, next ledger.TransactionsPosition, cursor ledger.TransactionsCursor,
	derived *ledger.Offset) error {
	if err := queries.TransactionsPositionPut(ctx, tx, dbsqlc.TransactionsPositionPutParams(next)); err != nil {
		return fmt.Errorf("move the position in the transaction history: %w", err)
	}
	checkpoint := dbsqlc.TransactionsCheckpointParams{Stream: tables.StreamTransactions,
		LedgerOffset: (*int64)(derived)}
	if cursor != "" {
		id := string(cursor)
		checkpoint.EventID = &id
	}
	if err := queries.TransactionsCheckpoint(ctx, tx, checkpoint); err != nil {
		return fmt.Errorf("store the checkpoint of the transaction history: %w", err)
	}
	return nil
}
