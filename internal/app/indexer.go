package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Indexer is the configuration of the daemon.
type Indexer struct {
	config.Database
	config.Sources
	config.Scope
	config.Run
	config.Pace
	config.Profile
	// Show, if set, is told how far long work has come, about four times a second.
	Show func(ledger.Progress) `kong:"-"`
}

// indexer is a daemon at work: what its streams share.
type indexer struct {
	cfg     Indexer
	logger  *slog.Logger
	store   *store.Store
	metrics *admin.Metrics
	health  *admin.Health
	streams []*stream
}

// RunIndexer reads the updates, the transaction history, or both beside each other, until ctx ends (nil, the batches under
// way were finished), what was current at the start is committed (nil, where the configuration says so), or something
// fails that trying again can't cure.
func RunIndexer(ctx context.Context, cfg Indexer, logger *slog.Logger) error {
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return err
	}
	defer endPprof()
	x := &indexer{cfg: cfg, logger: logger, metrics: admin.NewMetrics()}
	x.store, err = store.Open(store.Config{
		URL: cfg.DatabaseURL, Logger: logger, Holder: config.Holder(), Observe: x.metrics.Phase, Wrote: x.metrics.Wrote,
	})
	if err != nil {
		return &config.UsageError{Err: err}
	}
	defer func() { ending(x.store.Close) }()
	checks := []admin.Check{{Name: "database", Try: x.store.Ping}}
	if cfg.LedgerURL != "" {
		u, err := newUpdates(x)
		if err != nil {
			return err
		}
		defer u.client.Close()
		x.streams = append(x.streams, &stream{indexer: x, role: store.RoleUpdates, source: "the participant", work: u})
		checks = append(checks, admin.Check{Name: "ledger", Try: u.ping})
	}
	if cfg.ScanURL != "" {
		h, err := newHistory(x)
		if err != nil {
			return err
		}
		defer h.service.Close()
		x.streams = append(x.streams, &stream{indexer: x, role: store.RoleTransactions, source: "the Scan service", work: h})
		checks = append(checks, admin.Check{Name: "scan", Try: h.ping})
	}
	var names []string
	for _, s := range x.streams {
		names = append(names, s.name())
		x.metrics.Leading(s.name(), false)
	}
	x.health = admin.NewHealth(names, checks...)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if cfg.Listen != "" {
		var listen net.ListenConfig
		listener, err := listen.Listen(ctx, "tcp", cfg.Listen)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		logger.InfoContext(ctx, "listening", "address", listener.Addr().String())
		group.Go(func() error { return admin.Serve(ctx, listener, x.health, x.metrics) })
	}
	group.Go(func() error {
		defer stop() // ends the listener
		return x.run(ctx)
	})
	return group.Wait()
}

// run prepares the database and lets each stream work until all are done, or one fails for good.
func (x *indexer) run(ctx context.Context) error {
	const state = "waiting for the database"
	err := insist(ctx, x.logger, state, x.prepareSchema, func(err error) {
		for _, s := range x.streams {
			x.health.Set(s.name(), false, state+": "+err.Error())
		}
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, s := range x.streams {
		group.Go(func() error {
			err := s.run(groupCtx)
			if err != nil && s.role == store.RoleTransactions && len(x.streams) > 1 {
				err = blameHistory(err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil || ctx.Err() != nil {
		return err
	}
	for _, s := range x.streams {
		if s.unmet != nil {
			return s.unmet
		}
	}
	return nil
}

func (x *indexer) prepareSchema(ctx context.Context) error {
	if !x.cfg.Migrate {
		return x.store.CheckSchema(ctx)
	}
	applied, err := x.store.Migrate(ctx)
	if len(applied) > 0 {
		x.logger.InfoContext(ctx, "migrated", "migrations", applied)
	}
	return err
}
