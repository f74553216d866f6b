package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// PutHistory moves the position, and the checkpoint to a cursor.
func PutHistory(ctx context.Context, tx pgx.Tx, next ledger.HistoryPosition, cursor ledger.HistoryCursor) error {
	if err := queries.HistoryPositionPut(ctx, tx, dbsqlc.HistoryPositionPutParams(next)); err != nil {
		return fmt.Errorf("move the position in the transaction history: %w", err)
	}
	checkpoint := dbsqlc.HistoryCheckpointParams{Stream: tables.StreamTransactions}
	if cursor != "" {
		id := string(cursor)
		checkpoint.EventID = &id
	}
	if err := queries.HistoryCheckpoint(ctx, tx, checkpoint); err != nil {
		return fmt.Errorf("store the checkpoint of the transaction history: %w", err)
	}
	return nil
}
