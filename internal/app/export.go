package app

import (
	"context"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/store"
)

// Export says what is exported, and to where.
type Export struct {
	config.Database
	To      string // a folder, or s3://bucket/prefix
	Options export.Options
	Check   bool // read every file that is there first
	Follow  bool // continue until the context ends
}

// exportEvery is how often an export that follows looks for what was verified.
const exportEvery = 10 * time.Second

// waitsForVerified says what an export that follows waits for, so that nobody waits in vain.
const waitsForVerified = "waiting for updates that fill a range and were compared with the ledger, which `indexer " +
	"run` does unless its verification is off"

// RunExport exports what is not exported yet. The daemon may run meanwhile. The error is a *ledger.Problem if another
// export is at work there, and if what is there is damaged, or does not fit the database.
func RunExport(ctx context.Context, cfg Export, logger *slog.Logger) error {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer db.Close()
	place, err := export.Open(cfg.To, true)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	cfg.Options.Full, cfg.Options.OfNetwork = cfg.Follow, cfg.OfNetwork()
	if !cfg.Follow {
		return exportTo(ctx, cfg, db, place, logger)
	}
	return retryUntilDone(ctx, logger,
		"exporting", func(ctx context.Context) error { return exportTo(ctx, cfg, db, place, logger) }, func(error) {})
}

// exportTo begins with what is there: after an error it is not known what of the last range is.
func exportTo(ctx context.Context, cfg Export, db *store.Store, place export.Place, logger *slog.Logger) error {
	e, unlock, err := export.Begin(ctx, db, place, cfg.Options)
	if err != nil {
		return err
	}
	defer unlock()
	if cfg.Check {
		if err := e.Check(ctx); err != nil {
			return err
		}
	}
	for logged := false; ; {
		wrote, err := e.Next(ctx)
		if cfg.Follow && ctx.Err() != nil {
			return nil // it was stopped: what is not whole is not there
		}
		if err != nil || !wrote && !cfg.Follow {
			return err
		}
		if wrote {
			continue
		}
		if !logged {
			logger.InfoContext(ctx, waitsForVerified)
			logged = true
		}
		ingest.Sleep(ctx, exportEvery)
	}
}
