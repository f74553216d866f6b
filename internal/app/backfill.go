package app

import (
	"context"
	"errors"
	"log/slog"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Backfill is the configuration of the snapshot backfill.
type Backfill struct {
	config.Database
	config.Ledger
	config.Scope
	config.Snapshot
	config.RequestLimits
	config.Profile
}

// RunBackfill seeds the database from a snapshot of active contracts. wrote, if not nil, is called after each page with
// the number of stored entries. When ctx ends, RunBackfill finishes the page under way and returns ctx's error: the
// next run resumes there.
func RunBackfill(ctx context.Context, cfg Backfill, logger *slog.Logger,
	wrote func(entries int64)) (ledger.SnapshotProgress, error) {
	if err := refuseNetworkSchemas(cfg.Schemas); err != nil {
		return ledger.SnapshotProgress{}, err
	}
	open := func(*store.Store) (seeder, error) {
		return newParticipantSource(cfg.Ledger, cfg.RequestLimits, cfg.Domain(), logger, observation{})
	}
	return seed(ctx, open, cfg.Database, cfg.Snapshot, cfg.Profile, logger, wrote)
}

// RunNetworkBackfill is RunBackfill for the updates of a network, from a snapshot of a Scan service, or one in bulk
// files.
func RunNetworkBackfill(ctx context.Context, cfg NetworkBackfill, logger *slog.Logger,
	wrote func(entries int64)) (ledger.SnapshotProgress, error) {
	logger = networkLogger(logger)
	cfg.Schemas.Network = true
	open := func(*store.Store) (seeder, error) { return newNetwork(cfg.Scan, logger, observation{}) }
	if cfg.Files.Files != "" {
		open = func(db *store.Store) (seeder, error) { return &filesSeed{cfg: cfg, db: db, logger: logger}, nil }
	} else if err := requireScan(cfg.Scan); err != nil {
		return ledger.SnapshotProgress{}, err
	}
	return seed(ctx, open, cfg.Database, cfg.Snapshot, cfg.Profile, logger, wrote)
}

func requireScan(cfg config.Scan) error {
	if len(cfg.ScanURL) == 0 {
		return &config.UsageError{Err: errors.New("--scan-url is missing")}
	}
	return nil
}

func refuseNetworkSchemas(schemas config.Schemas) error {
	if schemas.OfNetwork() {
		return &config.UsageError{Err: errors.New("these schemas are for the updates of a network: fill them with " +
			"`backfill network`")}
	}
	return nil
}

// seed seeds a database from a snapshot of a source.
func seed(
	ctx context.Context, open func(*store.Store) (seeder, error), database config.Database, snapshot config.Snapshot,
	profile config.Profile, logger *slog.Logger,
	wrote func(entries int64),
) (none ledger.SnapshotProgress, err error) {
	endPprof, err := startPprof(ctx, profile, logger)
	if err != nil {
		return none, err
	}
	defer endPprof()
	db, err := store.Open(database.Store(logger))
	if err != nil {
		return none, &config.UsageError{Err: err}
	}
	defer db.Close()
	from, err := open(db)
	if err != nil {
		return none, err
	}
	defer from.Close()
	known, err := awaitBoth(ctx, db, from, logger)
	if err != nil {
		return none, err
	}
	unfinished, err := db.UnfinishedSnapshot(ctx)
	if err != nil {
		return none, err
	}
	if unfinished == nil && !database.OfNetwork() {
		tellLeftOut(ctx, logger, known.scope)
	}
	j := job[*store.UpdatesWriter]{
		db: db, lease: store.LeaseUpdates, take: db.LeadUpdates, busy: "stop it before seeding from a snapshot",
		stream: "snapshot", logger: logger,
	}
	var progress ledger.SnapshotProgress
	err = j.run(ctx, func(ctx context.Context, leader *store.UpdatesWriter, report func(ledger.Progress)) (err error) {
		begun := progress != none // in an earlier term, so there is nothing to drop any more
		loop := ingest.Snapshot{
			Source: from, Sink: leader, Scope: known.scope, ParticipantID: known.id, At: snapshot.Offset(),
			Restart: snapshot.Restart && !begun,
			Logger:  logger, Wrote: wrote, Progress: report,
		}
		stored, err := loop.Run(ctx)
		if stored != none {
			progress = stored
		}
		return err
	})
	return progress, err
}

// awaitBoth waits until the database and the source of its updates answer, and checks that they are of the same ledger.
func awaitBoth(ctx context.Context, db *store.Store, from seeder, logger *slog.Logger) (known identity, err error) {
	err = await(ctx, logger, "waiting for the database", func(ctx context.Context) error {
		applied, err := db.Migrate(ctx)
		if len(applied) > 0 {
			logger.InfoContext(ctx, "migrated", "migrations", applied)
		}
		return err
	})
	if err != nil {
		return known, err
	}
	err = await(ctx, logger, "waiting for "+from.name(), func(ctx context.Context) (err error) {
		known, err = checkSameLedger(ctx, db, from)
		return err
	})
	return known, err
}
