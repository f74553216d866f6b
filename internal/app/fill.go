package app

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/scan"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Fill is the configuration of a history backfill.
type Fill struct {
	config.Database
	config.Ledger
	config.Scope
	config.Fill
	config.Pace
	config.Profile
	// Show, if set, is called with the progress, about four times a second.
	Show func(ledger.Progress) `kong:"-"`

	files *scan.Files // of a network; nil: none
}

// NetworkFill is the configuration of a history backfill of a network.
type NetworkFill struct {
	config.Database
	config.Scan
	config.Fill
	config.Files
	config.Pace
	config.Profile
	// Show, if set, is called with the progress, about four times a second.
	Show func(ledger.Progress) `kong:"-"`
}

// RunFill reads the updates below the history floor. A daemon may write the same database meanwhile. When ctx ends,
// RunFill finishes the transactions under way and returns ctx's error: the next run resumes there.
func RunFill(ctx context.Context, cfg Fill, logger *slog.Logger) (ingest.Filled, error) {
	if err := refuseNetworkSchemas(cfg.Schemas); err != nil {
		return ingest.Filled{}, err
	}
	open := func(scope ledger.Scope) (source, error) {
		return newParticipantSource(cfg.Ledger, cfg.Pace, scope, logger, observation{})
	}
	return fillIn(ctx, open, cfg, logger)
}

// RunNetworkFill is RunFill for the updates of a network.
func RunNetworkFill(ctx context.Context, cfg NetworkFill, logger *slog.Logger) (ingest.Filled, error) {
	if err := requireScan(cfg.Scan); err != nil {
		return ingest.Filled{}, err
	}
	logger = networkLogger(logger)
	cfg.Schemas.Network = true
	open := func(ledger.Scope) (source, error) { return newNetwork(cfg.Scan, logger, observation{}) }
	var files *scan.Files
	if cfg.Files.Files != "" {
		var err error
		if files, err = fetchFiles(ctx, cfg.Scan, cfg.Files.Files, nil, logger); err != nil {
			return ingest.Filled{}, err
		}
	}
	return fillIn(ctx, open, Fill{Database: cfg.Database, Fill: cfg.Fill, Pace: cfg.Pace, Profile: cfg.Profile,
		Show: cfg.Show, files: files}, logger)
}

// fillIn fills in history from a source of a scope. Of the configuration all counts but what the source is made of.
func fillIn(ctx context.Context, open func(ledger.Scope) (source, error), cfg Fill,
	logger *slog.Logger) (ingest.Filled, error) {
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return ingest.Filled{}, err
	}
	defer endPprof()
	from, err := open(cfg.Scope.Domain())
	if err != nil {
		return ingest.Filled{}, err
	}
	defer from.Close()
	f := fill{cfg: cfg, logger: logger}
	f.db, err = store.Open(cfg.Store(logger))
	if err != nil {
		return ingest.Filled{}, &config.UsageError{Err: err}
	}
	defer f.db.Close()
	known, err := awaitBoth(ctx, f.db, from, logger)
	if err != nil {
		return ingest.Filled{}, err
	}
	if err := checkFilesOf(cfg.files, known.id); err != nil {
		return ingest.Filled{}, err
	}
	f.past = newPast(f.db, from, known.scope, open)
	defer f.past.Close()
	if f.scope, err = f.db.ScopeBelow(ctx, known.scope); err != nil {
		return ingest.Filled{}, err
	}
	if f.from, err = f.past.in(ctx, f.scope); err != nil {
		return ingest.Filled{}, err
	}
	finish := fmt.Sprintf("run `%s` again, which continues where it was: history is filled in below a finished snapshot",
		f.db.Commands().Backfill)
	if err := refuseUnfinished(ctx, f.db, finish); err != nil {
		return ingest.Filled{}, err
	}
	if err := resume(ctx, f.db, from); err != nil {
		return ingest.Filled{}, err
	}
	return f.run(ctx)
}

// fill is a running history backfill.
type fill struct {
	cfg    Fill
	logger *slog.Logger
	from   source
	past   *past
	scope  ledger.Scope // in which the history below is read; see store.ScopeBelow
	db     *store.Store
}

func (f *fill) run(ctx context.Context) (filled ingest.Filled, err error) {
	j := job[*store.BackfillWriter]{
		db: f.db, role: store.RoleBackfill, take: f.db.LeadBackfill, busy: "wait until it is done; one history backfill at " +
			"a time fills in a database",
		stream: "backfill", logger: f.logger, show: f.cfg.Show,
	}
	err = j.run(ctx, func(ctx context.Context, leader *store.BackfillWriter, report func(ledger.Progress)) (err error) {
		before := filled // by earlier terms
		filled, err = f.term(ctx, leader, report)
		filled.Updates += before.Updates
		filled.Changed += before.Changed
		if before.Range.From < before.Range.To {
			filled.Range = before.Range
		}
		return err
	})
	return filled, err
}

func (f *fill) term(ctx context.Context, leader *store.BackfillWriter,
	report func(ledger.Progress)) (ingest.Filled, error) {
	loop := ingest.Fill{
		Source: f.from, Past: f.past, In: func(ctx context.Context, scope ledger.Scope) (ingest.ScopedSource, error) {
			return f.past.in(ctx, scope)
		}, Sink: fillSink{leader, audit.New(f.db), audit.NewRefiller(f.db, leader), f.db}, Scope: f.scope,
		From: (*ledger.Offset)(f.cfg.From), To: (*ledger.Offset)(f.cfg.To),
		PrunedToo: f.cfg.PrunedToo, NewestFirst: f.cfg.NewestFirst, MaxRequests: f.cfg.MaxRequests, Logger: f.logger,
		Progress: report,
		Check: func(ctx context.Context) error {
			_, err := checkSameLedger(ctx, f.db, f.past.source)
			return err
		},
	}
	if f.cfg.files != nil {
		loop.Files = f.cfg.files
	}
	if f.cfg.WithSnapshot {
		loop.Snapshot = &ingest.Snapshot{Source: f.from, Sink: leader.LowerSnapshot(), Scope: f.scope, Logger: f.logger,
			Progress: report}
	}
	return loop.Run(ctx)
}
