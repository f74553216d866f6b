package app

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// Reanchor is the configuration of a reanchoring.
type Reanchor struct {
	config.Database
	config.Ledger
	config.RequestLimits
	// From says from where on is compared; nil: from the first update that is stored.
	From  *store.PruneBefore `kong:"-"`
	Apply bool               `env:"-" help:"Remove what is after the last offset in common. Without this flag nothing is changed."`
}

// Reanchored says where participant and database part, and what came of it.
type Reanchored struct {
	audit.Divergence
	To    ledger.Offset      `json:"to,omitempty"`    // the offset to go back to, if they part
	Reset *store.ResetReport `json:"reset,omitempty"` // nil: nothing was changed
}

// RunReanchor finds where a participant that was restored from a backup and the database part and, if that is to be
// applied, resets the database to there, in one transaction. The error is a *ledger.Problem if that can't be had from
// the participant again, or if another process writes the database.
func RunReanchor(ctx context.Context, cfg Reanchor, logger *slog.Logger) (done Reanchored, err error) {
	if cfg.OfNetwork() {
		return done, &ledger.Problem{
			What: "an offset of the updates of a network is made of a migration id and a record time, so no restored server " +
				"gives other ones",
			Do: "where the Scan service shows another history, `indexer run` names the last offset in common: go back to " +
				"there with `indexer reset --network --to-offset`, and --apply",
		}
	}
	db, err := cfg.Open(ctx, logger)
	if err != nil {
		return done, err
	}
	defer db.Close()
	if !cfg.Apply {
		return part(ctx, db, &cfg, logger)
	}
	leader, err := leadNow(ctx, db, store.LeaseUpdates, db.LeadUpdates, "stop it before reanchoring")
	if err != nil {
		return done, err
	}
	defer leader.Close()
	if done, err = part(ctx, db, &cfg, logger); err != nil || !done.Parted {
		return done, err
	}
	report, err := leader.Reset(ctx, done.To)
	if err != nil {
		return done, err
	}
	done.Reset = &report
	return done, nil
}

// part finds where participant and database part, and whether the database can be reset to there.
func part(ctx context.Context, db *store.Store, cfg *Reanchor, logger *slog.Logger) (done Reanchored, err error) {
	scope, indexed, err := db.Scope(ctx)
	if err != nil {
		return done, err
	}
	if !indexed {
		return done, db.CheckReset(ctx, 0)
	}
	open := func(scope ledger.Scope, seen observation) (source, error) {
		return newParticipantSource(cfg.Ledger, cfg.RequestLimits, scope, logger, seen)
	}
	from, err := open(scope, observation{})
	if err != nil {
		return done, err
	}
	defer from.Close()
	err = audit.Retry(ctx, logger, func() error {
		_, err := checkSameLedger(ctx, db, from)
		return err
	})
	if err != nil {
		return done, err
	}
	var since ledger.Offset
	if cfg.From != nil {
		if since, err = db.OffsetBefore(ctx, *cfg.From); err != nil {
			return done, err
		}
	}
	stored := newSourceByScope(db, from, scope,
		func(earlier ledger.Scope) (source, error) { return open(earlier, observation{reached: true}) })
	defer stored.Close()
	report, end := meterSteps(ctx, logger)
	defer end()
	if done.Divergence, err = audit.FindForkPoint(ctx, stored, db, since, report, logger); err != nil {
		return done, fmt.Errorf("compare the updates of the participant with those that are stored: %w", err)
	}
	if !done.Parted {
		return done, nil
	}
	if done.To, err = done.Target(); err != nil {
		return done, err
	}
	return done, db.CheckReset(ctx, done.To)
}
