package app

import (
	"context"
	"log/slog"

	"ledgerindexer/internal/config"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// RunRedact says what redacting erases and, if it is to be applied, erases it. The daemon may run meanwhile. The error
// is a *ledger.Problem if it is not known or is active, or if another process repairs or redacts, or writes for long.
func RunRedact(ctx context.Context, cfg config.Database, what audit.Redaction, reason string, apply bool,
	logger *slog.Logger) (audit.RedactionReport, error) {
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return audit.RedactionReport{}, err
	}
	defer db.Close()
	what.Derived = cfg.OfNetwork()
	if !apply {
		return audit.New(db).PlanRedaction(ctx, what)
	}
	take := func(ctx context.Context) (*audit.Repairer, bool, error) { return audit.LeadRepair(ctx, db) }
	repairer, err := leadNow(ctx, db, store.LeaseRepair, take, "wait until it is done: it repairs, or redacts")
	if err != nil {
		return audit.RedactionReport{}, err
	}
	defer repairer.Close()
	return repairer.Redact(ctx, what, reason)
}
