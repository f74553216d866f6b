package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// keepCheckpoints keeps what the pages' checkpoints say of the synchronizers, unless something later is known of an
// offset.
func (l *Leader) keepCheckpoints(ctx context.Context, tx pgx.Tx, r *names.References, pages []ledger.Page) error {
	for rows := range rows.CheckpointStatements(rows.LatestTimes(r, pages)) {
		err := queries.OffsetCheckpointsUpsert(ctx, tx, rows.OffsetCheckpointsUpsertParams)
		if err != nil {
			return fmt.Errorf("keep offset checkpoints: %w", err)
		}
	}
	return nil
}
