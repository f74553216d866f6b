package app

import (
	"context"
	"log/slog"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// RunReset says what of the updates is after an offset and, if it is to be applied, removes it, so that the daemon
// resumes from there. The error is a *ledger.Problem if the database can't be reset to the offset or, where it is
// applied, if another process writes the database.
func RunReset(ctx context.Context, cfg config.Database, to ledger.Offset, apply bool,
	logger *slog.Logger) (store.ResetReport, error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return store.ResetReport{}, err
	}
	defer db.Close()
	if !apply {
		return db.PlanReset(ctx, to)
	}
	leader, err := leadNow(ctx, db, store.LeaseUpdates, db.LeadUpdates, "stop it before resetting")
	if err != nil {
		return store.ResetReport{}, err
	}
	defer leader.Close()
	return leader.Reset(ctx, to)
}
