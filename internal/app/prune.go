package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// RunPrune says what pruning removes and, if it is to be applied, removes it. The daemon may run meanwhile. The error
// is a *ledger.Problem if another process prunes, or if it can't be pruned.
func RunPrune(ctx context.Context, cfg config.Database, before store.PruneBefore, apply bool,
	logger *slog.Logger) (store.PrunePlan, error) {
	plan, _, err := runPrune(ctx, cfg, pruning{before: &before}, apply, logger)
	return plan, err
}

// RunPruneExported is RunPrune for what the export in a place holds: whole ranges, and nothing else. Without before
// (nil) it goes as far as something stays. The error is a *ledger.Problem also where the files are not whole, or not of
// what is stored.
func RunPruneExported(
	ctx context.Context, cfg config.Database, before *store.PruneBefore, from string, apply bool, logger *slog.Logger,
) (plan store.PrunePlan, held export.Held, err error) {
	place, err := export.Open(from, false)
	if err != nil {
		return plan, held, &config.UsageError{Err: err}
	}
	return runPrune(ctx, cfg, pruning{before: before, exported: place}, apply, logger)
}

func runPrune(ctx context.Context, cfg config.Database, p pruning, apply bool,
	logger *slog.Logger) (plan store.PrunePlan, held export.Held, err error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return plan, held, err
	}
	defer db.Close()
	p.db, p.network = db, cfg.OfNetwork()
	plan, held, err = p.plan(ctx)
	if err != nil || !apply || plan.Empty() {
		return plan, held, err
	}
	leader, err := leadNow(ctx, db, store.LeasePruning, db.LeadPruning,
		"wait until it is done: it prunes")
	if err != nil {
		return plan, held, err
	}
	defer leader.Close()
	return plan, held, p.prune(ctx, leader, plan, held)
}

// pruning is what is to go.
type pruning struct {
	db       *store.Store
	network  bool               // it holds the updates of a network
	before   *store.PruneBefore // nil, with an export: as far as something stays
	exported export.Place       // an export that has to hold what goes; nil: none is asked
}

// plan says what goes and, if an export is asked, how much that holds.
func (p *pruning) plan(ctx context.Context) (plan store.PrunePlan, held export.Held, err error) {
	if p.before != nil {
		if plan, err = p.db.PlanPrune(ctx, *p.before); err != nil || plan.Empty() || p.exported == nil {
			return plan, held, err
		}
	}
	asked := plan.Floor
	if held, err = export.Holds(ctx, p.db, p.exported, p.network, asked); err != nil {
		return plan, held, err
	}
	if p.before == nil || held.To < asked {
		plan, err = p.db.PlanPrune(ctx, store.PruneBefore{Offset: new(held.To + 1)})
	}
	return plan, held, err
}

// prune removes what was planned. The leader keeps others from pruning.
func (p *pruning) prune(ctx context.Context, leader *store.PruningWriter, plan store.PrunePlan,
	held export.Held) error {
	if p.exported == nil {
		return leader.Prune(ctx, plan.Floor)
	}
	return leader.PruneExported(ctx, plan.Floor, held.To, held.Change)
}

// pruneEvery is how often the daemon looks for what is older than --retain.
const pruneEvery = 24 * time.Hour

// startPruning starts the task that prunes what is older than --retain, if that is given. Where the export of one
// ledger has to hold what goes, nothing goes of the other ledger if it has none.
func (x *indexer) startPruning(ctx context.Context, b *background, leader *store.UpdatesWriter) {
	from, other := x.cfg.RetainExported, x.cfg.RetainExportedNetwork
	if x.schemas == config.NetworkSchemas {
		from, other = other, from
	}
	if x.cfg.Retain == 0 || from == "" && other != "" {
		return
	}
	b.start(ingest.TaskPruning, func() error {
		report := x.report(ingest.TaskPruning, leader.Leader)
		report.Finish = b.current
		return ingest.RunEvery(ctx, report, pruneEvery, func(ctx context.Context) error { return x.prune(ctx, from) })
	})
}

// prune prunes what is older than --retain and, if a place is given, in the export there. It does nothing while more
// rows would have to be copied than go: later there is more that goes. So at most twice as much is stored as is to be
// retained, and each row is copied few times. An export that has stopped is an error, after what it has was pruned.
func (x *indexer) prune(ctx context.Context, from string) error {
	p := pruning{db: x.store, network: x.schemas == config.NetworkSchemas,
		before: &store.PruneBefore{Age: time.Duration(x.cfg.Retain)}}
	if from != "" {
		place, err := export.Open(from, false)
		if err != nil {
			return err
		}
		p.exported = place
	}
	plan, held, err := p.plan(ctx)
	if err != nil {
		return err
	}
	if plan.Worthwhile() {
		if err := x.pruneNow(ctx, &p, plan, held); err != nil {
			return err
		}
	} else if held.Why != "" {
		x.logger.InfoContext(ctx, "what is older than --retain stays: too little of it lies in whole ranges of the export",
			"why", held.Why)
	}
	if held.Behind {
		return &ledger.Problem{
			What: fmt.Sprintf("what is older than --retain stays, after offset %d, because the export has stopped, or does "+
				"not keep up: %s", held.To, held.Why),
			Do: "see that `indexer export` runs for this place and works, and that this is the place it writes; where its " +
				"first range is not full yet, let it write smaller ones (--updates)",
		}
	}
	return nil
}

// pruneNow prunes what was planned, unless another process prunes.
func (x *indexer) pruneNow(ctx context.Context, p *pruning, plan store.PrunePlan, held export.Held) error {
	leader, ok, err := x.store.LeadPruning(ctx)
	if err != nil {
		return err
	}
	if !ok {
		x.logger.WarnContext(ctx, "nothing is pruned now: another process prunes")
		return nil
	}
	defer leader.Close()
	started := time.Now()
	if err := p.prune(ctx, leader, plan, held); err != nil {
		return err
	}
	x.logger.InfoContext(ctx, "pruned what is older than --retain", "after", int64(plan.From), "up_to", int64(plan.Floor),
		"rows", plan.Rows(),
		"bytes", plan.Bytes(), "contracts_kept", plan.Active, "duration", time.Since(started).Round(time.Millisecond))
	return nil
}
