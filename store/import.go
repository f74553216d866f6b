package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/redacted"
)

// ImportRedactions notes what was redacted in the database of an export before anything of it is stored, so that nothing brings it back. What is
// redacted only afterwards is a *ledger.Problem: it may be stored here.
func (l *UpdatesWriter) ImportRedactions(ctx context.Context, list []ExportRedaction) error {
	if len(list) == 0 {
		return nil
	}
	var contracts, updates []string
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		noted, err := l.store.db.Queries.ExportRedactions(ctx, tx)
		if err != nil {
			return err
		}
		begun, err := l.begun(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range list {
			if slices.ContainsFunc(noted, func(n dbsqlc.ExportRedactionsRow) bool { return n.Kind == r.Kind && n.ID == r.ID }) {
				continue
			}
			if begun {
				return &ledger.Problem{
					What: fmt.Sprintf("%s %s was redacted in the database of the export when database %s had been begun from it, and may be stored here with its content",
						r.Kind, r.ID, l.store.Address()),
					Do: fmt.Sprintf("redact it here too (`indexer redact --%s %s`, of a network with --network) and import again, or import into a new database", r.Kind, r.ID),
				}
			}
			if r.Kind == redacted.Contract {
				contracts = append(contracts, r.ID)
			} else {
				updates = append(updates, r.ID)
			}
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
	l.term.Redacted = l.term.Redacted.With(contracts, updates)
	return nil
}

// begun reports whether updates, or entries of a snapshot, are stored.
func (l *UpdatesWriter) begun(ctx context.Context, tx pgx.Tx) (bool, error) {
	_, started, err := held.Watermark(ctx, l.store.db, tx)
	if err != nil || started {
		return started, err
	}
	unfinished, err := held.Snapshot(l.store.db.Queries.SnapshotUnfinished(ctx, tx))
	return unfinished != nil, err
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
