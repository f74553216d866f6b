package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

// CompareCoverage compares what the database holds of the updates with the ledger's end, which is nil where it is not
// known, and looks for holes in it. found is called for each difference. holes are the ranges up to the watermark that
// are not covered: only the ledger knows what belongs there. Everything is read in one read-only snapshot.
//
// The end has to be one that was asked for after a watermark was seen beyond it: a daemon continues while this
// compares.
//
// What contradicts itself is for CompareHeld. A ledger that ends before indexing began is a *ledger.Problem.
func (s *Stored) CompareCoverage(ctx context.Context, end *ledger.Offset,
	found Found) (holes []ledger.Range, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := s.extentBefore(ctx, tx, end)
		if err != nil || !extent.Started {
			return err
		}
		upTo := extent.Watermark
		if end != nil && *end < upTo {
			upTo = *end
			d := derivedDifference(Altered, "checkpoints", "stream "+tables.StreamUpdates)
			d.Column, d.Stored, d.Wanted = "ledger_offset", textOf(int64(extent.Watermark)), textOf(int64(upTo))
			found(d)
		}
		covered, err := bounds.Covered(ctx, tx, math.MaxInt64)
		if err != nil {
			return err
		}
		holes = covered.Missing(ledger.Range{From: extent.HistoryFloor, To: upTo})
		for _, hole := range holes {
			found(uncovered(hole))
		}
		return nil
	})
	return holes, err
}

// uncovered is the difference of a hole.
func uncovered(hole ledger.Range) Difference {
	return derivedDifference(Missing, "coverage", fmt.Sprintf("from_exclusive %d, to_inclusive %d", hole.From, hole.To))
}

// extentBefore returns how much the database holds. The error is a *ledger.Problem where the ledger ends before it.
func (s *Stored) extentBefore(ctx context.Context, tx pgx.Tx, end *ledger.Offset) (bounds.Extent, error) {
	extent, err := bounds.Read(ctx, tx)
	if err == nil && extent.Started && end != nil && *end < extent.HistoryFloor {
		err = &ledger.Problem{
			What: fmt.Sprintf("the ledger ends at offset %d, before offset %d, where indexing into database %s began", *end,
				extent.HistoryFloor, s.db.Address()),
			Do: "correct --ledger-url or --database-url: this is not the ledger that the database was written from, " +
				"or its participant was set up again from nothing, which needs a new database",
		}
	}
	return extent, err
}

// RepairCoverage lowers the watermark to the ledger's end, nil where that is not known. Holes stay: writing their
// updates closes them. No facts are removed. If the watermark was lowered, the leaders of the updates and of the
// backfill begin a new term.
//
// A ledger that ends before indexing began, and one that ends before updates that are stored, are *ledger.Problem.
func (r *Repairer) RepairCoverage(ctx context.Context, end *ledger.Offset) (err error) {
	defer pg.Wrap(&err, "repair the coverage")
	leases := []session.Lease{session.LeasePruning, session.LeaseUpdates}
	return r.repair(ctx, leases, func(ctx context.Context, tx pgx.Tx) error {
		extent, err := r.stored.extentBefore(ctx, tx, end)
		if err != nil || !extent.Started || end == nil || *end >= extent.Watermark {
			return err
		}
		if err := r.lowerWatermark(ctx, tx, extent.Watermark, *end); err != nil {
			return err
		}
		return r.term.EndTerms(ctx, tx, leases...)
	})
}

// lowerWatermark puts the watermark at the ledger's end, unless updates are stored beyond it: then it is the ledger
// that is another one.
func (r *Repairer) lowerWatermark(ctx context.Context, tx pgx.Tx, watermark, end ledger.Offset) error {
	last, err := queries.LastUpdateWithin(ctx, tx, dbsqlc.LastUpdateWithinParams{After: int64(end),
		UpTo: int64(watermark)})
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
	if _, err := queries.ResetCoverage(ctx, tx, int64(end)); err != nil {
		return fmt.Errorf("remove coverage after offset %d: %w", end, err)
	}
	if err := queries.ResetCoverageCut(ctx, tx, int64(end)); err != nil {
		return fmt.Errorf("end the coverage at offset %d: %w", end, err)
	}
	if err := queries.CheckpointSet(ctx, tx, dbsqlc.CheckpointSetParams{Stream: tables.StreamUpdates,
		LedgerOffset: int64(end)}); err != nil {
		return fmt.Errorf("set the checkpoint: %w", err)
	}
	return nil
}
