package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

// RepairCoverage lowers the watermark to the ledger's end, nil where that is not known. Holes stay: writing their
// updates closes them. No facts are removed. If the watermark was lowered, the leaders of the updates and of the
// backfill begin a new term.
//
// A ledger that ends before indexing began, and one that ends before updates that are stored, are *ledger.Problem.
func (r *Repairer) RepairCoverage(ctx context.Context, end *ledger.Offset) error {
	roles := []session.Role{session.RolePruning, session.RoleUpdates}
	err := r.repair(ctx, roles, func(ctx context.Context, tx pgx.Tx) error {
		extent, err := r.stored.extentBefore(ctx, tx, end)
		if err != nil || !extent.Started || end == nil || *end >= extent.Watermark {
			return err
		}
		if err := r.lowerWatermark(ctx, tx, extent.Watermark, *end); err != nil {
			return err
		}
		return r.term.EndTerms(ctx, tx, roles...)
	})
	if err != nil {
		return fmt.Errorf("repair the coverage: %w", err)
	}
	return nil
}

// lowerWatermark puts the watermark at the ledger's end, unless updates are stored beyond it: then it is the ledger
// that is another one.
func (r *Repairer) lowerWatermark(ctx context.Context, tx pgx.Tx, watermark, end ledger.Offset) error {
	q := r.stored.db.Queries
	last, err := q.LastUpdateWithin(ctx, tx, dbsqlc.LastUpdateWithinParams{After: int64(end), UpTo: int64(watermark)})
	if err != nil {
		return fmt.Errorf("look for the last update after offset %d: %w", end, err)
	}
	if last > 0 {
		what := fmt.Sprintf("the ledger ends at offset %d, and database %s holds updates up to offset %d", end,
			r.stored.db.Address(), last)
		if r.stored.db.Config.Schemas.OfNetwork() {
			return &ledger.Problem{What: what, Do: fmt.Sprintf("check --scan-url: a service that lags behind ends too early; "+
				"if it was restored from an older backup, and that is to stay, run `indexer reset --network --to-offset %d "+
				"--apply`", end)}
		}
		return &ledger.Problem{What: what, Do: "check --ledger-url: a replica that lags behind ends too early; if the " +
			"participant was restored from an older backup, and that is to stay, run `indexer reanchor`"}
	}
	if _, err := q.ResetCoverage(ctx, tx, int64(end)); err != nil {
		return fmt.Errorf("remove coverage after offset %d: %w", end, err)
	}
	if err := q.ResetCoverageCut(ctx, tx, int64(end)); err != nil {
		return fmt.Errorf("end the coverage at offset %d: %w", end, err)
	}
	if err := q.CheckpointSet(ctx, tx, dbsqlc.CheckpointSetParams{Stream: tables.StreamUpdates,
		LedgerOffset: int64(end)}); err != nil {
		return fmt.Errorf("set the checkpoint: %w", err)
	}
	return nil
}
