package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
)

// ImportRedactions notes what was redacted in the database of an export, so that it does not come back. Those that are noted stay.
func (l *UpdatesWriter) ImportRedactions(ctx context.Context, list []ExportRedaction) error {
	if len(list) == 0 {
		return nil
	}
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for _, r := range list {
			err := l.store.db.Queries.ImportRedaction(ctx, tx, dbsqlc.ImportRedactionParams{
				Redaction: r.Number, Kind: r.Kind, ID: r.ID, OfUpdate: r.OfUpdate, RedactedAt: pgtype.Timestamptz{Time: r.At, Valid: true},
				RedactedBy: r.By, Reason: r.Reason, Erased: r.Erased,
			})
			if err != nil {
				return fmt.Errorf("redaction %d: %w", r.Number, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note what was redacted: %w", err)
	}
	return nil
}

// ImportPruned says of a database that begins with a snapshot that pruning made this snapshot, and up to where the updates were pruned.
func (l *UpdatesWriter) ImportPruned(ctx context.Context, carried ExportSnapshotMark, to ledger.Offset) error {
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var mixed *bool
		if carried.Mixed {
			mixed = &carried.Mixed
		}
		err := l.store.db.Queries.ImportPrunedSnapshot(ctx, tx, dbsqlc.ImportPrunedSnapshotParams{SnapshotOffset: int64(carried.At), Mixed: mixed})
		if err != nil {
			return fmt.Errorf("the snapshot: %w", err)
		}
		if err := l.store.db.Queries.ImportPrunedFloors(ctx, tx, int64(to)); err != nil {
			return fmt.Errorf("the floors: %w", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note that the database is as it was pruned up to offset %d: %w", to, err)
	}
	return nil
}
