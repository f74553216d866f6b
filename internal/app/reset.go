package app

import (
	"context"
	"log/slog"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// RunReset removes everything of the updates after an offset, so that the daemon resumes from there. The error is a *ledger.Problem
// if another process writes the database, or if the database can't be reset to the offset.
func RunReset(ctx context.Context, cfg config.Database, to ledger.Offset, logger *slog.Logger) (store.ResetReport, error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return store.ResetReport{}, err
	}
	defer db.Close()
	leader, err := leadNow(ctx, db, store.RoleUpdates, db.LeadUpdates, "stop it before resetting")
	if err != nil {
		return store.ResetReport{}, err
	}
	defer leader.Close()
	return leader.Reset(ctx, to)
}
