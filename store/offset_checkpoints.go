package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/writing"
)

// keepCheckpoints keeps what the pages' checkpoints say of the synchronizers, unless something later is known of an
// offset.
func (l *Leader) keepCheckpoints(ctx context.Context, tx pgx.Tx, r names.Numbers, pages []ledger.Page) error {
	for rows := range rows.CheckpointStatements(rows.LatestTimes(r, pages)) {
		if err := l.upsertCheckpoints(ctx, tx, rows); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leader) upsertCheckpoints(ctx context.Context, tx pgx.Tx, c *rows.Checkpoints) error {
	kept, err := l.store.db.Queries.OffsetCheckpointsUpsert(ctx, tx, c.OffsetCheckpointsUpsertParams)
	if err != nil {
		return fmt.Errorf("keep offset checkpoints: %w", err)
	}
	if len(kept) == 0 {
		return nil
	}
	var before dbsqlc.CheckpointExactPayloadsForgetParams
	var exact []rows.CheckpointExactPayload
	for _, row := range kept {
		key := rows.CheckpointKey{Offset: row.LedgerOffset, SynchronizerRef: row.SynchronizerRef}
		for _, field := range rows.CheckpointFields(c.SynchronizerIDs[key]) {
			before.LedgerOffsets = append(before.LedgerOffsets, row.LedgerOffset)
			before.Fields = append(before.Fields, field)
		}
		exact = append(exact, c.Exact[key]...)
	}
	if err := l.store.db.Queries.CheckpointExactPayloadsForget(ctx, tx, before); err != nil {
		return fmt.Errorf("forget the exact values of the checkpoints before: %w", err)
	}
	return writing.CopyRows(ctx, tx, "checkpoint_exact_payloads", exact)
}
