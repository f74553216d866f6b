package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/export"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// pruneEvery is how often the daemon looks for what is older than --retain.
const pruneEvery = 24 * time.Hour

// RunPrune says what pruning removes and, if it is to be applied, removes it. The daemon may run meanwhile. The error is a
// *ledger.Problem if history is being filled in, if another process prunes, or if it can't be pruned.
func RunPrune(ctx context.Context, cfg config.Database, before store.PruneBefore, apply bool, logger *slog.Logger) (store.PrunePlan, error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return store.PrunePlan{}, err
	}
	defer db.Close()
	plan, err := db.PlanPrune(ctx, before)
	if err != nil || !apply || plan.Empty() {
		return plan, err
	}
	return plan, pruneNow(ctx, cfg, db, func(leader *store.BackfillWriter) error { return leader.Prune(ctx, plan.Floor) }, plan.Floor)
}

// RunPruneExported is RunPrune for what the export in a place holds: whole ranges, and nothing else. Without before (nil) it goes as far as something stays. The error is
// a *ledger.Problem also where the files are not whole, or not of what is stored.
func RunPruneExported(
	ctx context.Context, cfg config.Database, before *store.PruneBefore, from string, apply bool, logger *slog.Logger,
) (plan store.PrunePlan, held export.Held, err error) {
	place, err := export.Open(from, false)
	if err != nil {
		return plan, held, &config.UsageError{Err: err}
	}
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return plan, held, err
	}
	defer db.Close()
	if before != nil {
		if plan, err = db.PlanPrune(ctx, *before); err != nil || plan.Empty() {
			return plan, held, err
		}
	}
	asked := plan.Floor
	if held, err = export.Holds(ctx, db, place, cfg.OfNetwork(), asked); err != nil {
		return plan, held, err
	}
	if before == nil || held.To < asked {
		plan, err = db.PlanPrune(ctx, store.PruneBefore{Offset: new(held.To + 1)})
	}
	if err != nil || !apply || plan.Empty() {
		return plan, held, err
	}
	return plan, held, pruneNow(ctx, cfg, db, func(leader *store.BackfillWriter) error {
		return leader.PruneExported(ctx, plan.Floor, held.Compared, held.Change)
	}, plan.Floor)
}

// pruneNow prunes the updates up to an offset. Nobody else fills in history or prunes meanwhile.
func pruneNow(ctx context.Context, cfg config.Database, db *store.Store, prune func(*store.BackfillWriter) error, floor ledger.Offset) error {
	leader, err := leadNow(ctx, db, store.RoleBackfill, db.LeadBackfill, "wait until it is done: it fills in history, or prunes")
	if err != nil {
		return err
	}
	defer leader.Close()
	if err := refuseWithoutRecords(ctx, db, cfg.OfNetwork(), floor); err != nil {
		return err
	}
	return prune(leader)
}

// refuseWithoutRecords refuses to prune a network's updates from which records have still to follow.
func refuseWithoutRecords(ctx context.Context, db *store.Store, network bool, floor ledger.Offset) error {
	if !network {
		return nil
	}
	why, err := newDerivedHistory(db, nil).missing(ctx, floor)
	if err != nil || why == "" {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("records that follow from the updates up to offset %d have to be derived first, and could not be after pruning: %s", floor, why),
		Do: "let the daemon (`indexer run`) derive them, and prune again: where they are derived again its log says when they are shown, " +
			"else the metric derived_offset says how far it is",
	}
}

// startPruning starts the task that prunes what is older than --retain, if that is given.
func (x *indexer) startPruning(ctx context.Context, b *background, leader *store.UpdatesWriter) {
	if x.cfg.Retain == 0 {
		return
	}
	b.start(ingest.TaskPruning, func() { ingest.RunEvery(ctx, x.report(ingest.TaskPruning, leader.Leader), pruneEvery, x.prune) })
}

// prune prunes what is older than --retain, unless more rows would have to be copied than go: then the next time there is more that
// goes. So at most twice as much is stored as is to be retained, and each row is copied few times.
func (x *indexer) prune(ctx context.Context) error {
	plan, err := x.store.PlanPrune(ctx, store.PruneBefore{Age: time.Duration(x.cfg.Retain)})
	if err != nil || plan.Empty() || plan.Rows() < plan.Copied {
		return err
	}
	leader, ok, err := x.store.LeadBackfill(ctx)
	if err != nil {
		return err
	}
	if !ok {
		x.logger.WarnContext(ctx, "nothing is pruned now: another process fills in history, or prunes")
		return nil
	}
	defer leader.Close()
	started := time.Now()
	if err := refuseWithoutRecords(ctx, x.store, x.schemas == config.NetworkSchemas, plan.Floor); err != nil {
		return err
	}
	if err := leader.Prune(ctx, plan.Floor); err != nil {
		return err
	}
	x.logger.InfoContext(ctx, "pruned what is older than --retain", "after", int64(plan.From), "up_to", int64(plan.Floor), "rows", plan.Rows(),
		"bytes", plan.Bytes(), "contracts_kept", plan.Active, "duration", time.Since(started).Round(time.Millisecond))
	return nil
}
