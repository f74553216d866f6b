package app

import (
	"context"
	"log/slog"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/export"
)

// exportEvery is how often an export that follows looks for what was verified.
const exportEvery = 10 * time.Second

// Export says what is exported, and to where.
type Export struct {
	config.Database
	To      string // a folder
	Options export.Options
	Check   bool // read every file that is there first
	Follow  bool // go on until the context ends
}

// RunExport exports what is not exported yet. The daemon may run meanwhile. The error is a *ledger.Problem if another export is at work there, and
// if what is there is damaged, or does not fit the database.
func RunExport(ctx context.Context, cfg Export, logger *slog.Logger) error {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer db.Close()
	place, err := export.Open(cfg.To)
	if err != nil {
		return err
	}
	cfg.Options.Full = cfg.Follow
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
	for {
		wrote, err := e.Next(ctx)
		if cfg.Follow && ctx.Err() != nil {
			return nil // it was stopped: what is not whole is not there
		}
		if err != nil || !wrote && !cfg.Follow {
			return err
		}
		if !wrote {
			ingest.Sleep(ctx, exportEvery)
		}
	}
}
