package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/base/tracing"
	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/internal/features/statuspage"
	"ledgerindexer/store"
)

// RunIndexer is the daemon. It reads the configured streams concurrently: the updates of a participant, the transaction
// history, the updates of a network.
//
// A stream that fails for good does not end the others, and is tried again after lookAgainAfter. RunIndexer returns an
// error when no stream can continue, and nil when ctx has ended; transactions under way are finished first. With
// UntilCurrent it returns when each stream has committed what was current at the start and its tasks have done what is
// left, or it has failed; the error is a *config.UnfinishedError where something is left, also after the time limit.
func RunIndexer(ctx context.Context, cfg Indexer, logger *slog.Logger) error {
	endPprof, err := startPprof(ctx, cfg.Profile, logger)
	if err != nil {
		return err
	}
	defer endPprof()
	build, err := version.Read()
	if err != nil {
		return err
	}
	journal := &statuspage.Journal{}
	logger = slog.New(journal.Handler(logger.Handler()))
	x := &indexer{daemon: &daemon{failures: map[*stream]error{}}, cfg: cfg, logger: logger, metrics: admin.NewMetrics()}
	x.metrics.Build(build)
	if cfg.OTLPEndpoint != "" {
		x.tracer, err = tracing.New(ctx, tracing.Config{
			Endpoint: cfg.OTLPEndpoint, Build: build, Logger: logger, Reason: retryReason, FlushFor: cfg.flushTraces,
		})
		if err != nil {
			return &config.UsageError{Err: err}
		}
		defer x.tracer.Close()
	}
	if err := x.open(cfg.Schemas.Domain()); err != nil {
		return err
	}
	defer func() { waitOrAbandon(x.store.Close) }()
	checks, closeSources, err := x.addStreams()
	defer closeSources()
	if err != nil {
		return err
	}
	x.health = admin.NewHealth(nil, checks...)
	for _, s := range x.streams {
		s.begin()
	}

	ctx, endLimit := limited(ctx, cfg.Run)
	defer endLimit()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if err := x.serve(ctx, group, x.newPage(build, journal)); err != nil {
		stop()
		_ = group.Wait() // what listens already ends
		return err
	}
	group.Go(func() error {
		defer stop() // ends the listener
		return x.run(ctx)
	})
	return group.Wait()
}

// addStreams adds the streams that are to be read, and returns what health is to check, and what closes their sources.
func (x *indexer) addStreams() (checks []admin.Check, closeAll func(), err error) {
	var closes []func()
	closeAll = func() {
		for _, closeOne := range closes {
			closeOne()
		}
	}
	checks = []admin.Check{{Name: "database", Try: x.store.Ping}}
	ofHistory := len(x.cfg.ScanURL) > 0 && x.cfg.ScanHistory == config.ScanTransactions
	ofNetwork := len(x.cfg.ScanURL) > 0 && !ofHistory
	own := x.cfg.Schemas.Domain().Tables == config.NetworkSchemas.Tables
	if own && (x.cfg.LedgerURL != "" || ofHistory) {
		return nil, closeAll, &config.UsageError{Err: fmt.Errorf("schema %s is for the updates of a network: name "+
			"another pair of schemas for what else is read", config.NetworkSchemas.Tables)}
	}
	if x.cfg.LedgerURL != "" {
		p, err := newParticipantUpdates(x)
		if err != nil {
			return nil, closeAll, err
		}
		u := &updates{indexer: x, origin: p, start: p.start, open: p.ofScope}
		closes, checks = append(closes, p.Close), append(checks, admin.Check{Name: "ledger", Try: p.ping})
		x.streams = append(x.streams, &stream{indexer: x, lease: store.LeaseUpdates, title: "updates",
			sourceName: "the participant", work: u})
	}
	if ofHistory {
		h, err := newTransactions(x)
		if err != nil {
			return nil, closeAll, err
		}
		closes, checks = append(closes, h.service.Close), append(checks, admin.Check{Name: "scan", Try: h.ping})
		x.streams = append(x.streams, &stream{indexer: x, lease: store.LeaseTransactions, title: "transactions",
			sourceName: scanService, work: h})
	}
	if ofNetwork {
		n, err := newNetworkUpdates(x)
		if err != nil {
			return nil, closeAll, err
		}
		closes, checks = append(closes, n.Close), append(checks, admin.Check{Name: "network", Try: n.ping})
		x.streams = append(x.streams, n.streams()...)
	}
	return checks, closeAll, nil
}

// run prepares the schemas of the streams and runs these until all are done, or none can continue.
func (x *indexer) run(ctx context.Context) error {
	const state = "waiting for the database"
	err := retryUntilDone(ctx, x.logger, state, x.prepareSchemas, func(err error) {
		for _, s := range x.streams {
			s.set(admin.Waits, false, state+": "+err.Error())
		}
	})
	if err == nil && ctx.Err() == nil {
		x.tellHistoryNotRead(ctx)
		group, groupCtx := errgroup.WithContext(ctx)
		for _, s := range x.streams {
			group.Go(func() error { return s.run(groupCtx) })
		}
		err = group.Wait()
	}
	switch {
	case err != nil:
		return err
	case x.cfg.UntilCurrent:
		return x.outcome(ctx)
	case ctx.Err() != nil:
		return nil
	}
	return x.failure()
}

func (x *indexer) prepareSchemas(ctx context.Context) error {
	prepared := map[*indexer]bool{}
	for _, s := range x.streams {
		if prepared[s.indexer] {
			continue
		}
		if err := s.prepareSchema(ctx); err != nil {
			return err
		}
		prepared[s.indexer] = true
	}
	return nil
}

func (x *indexer) prepareSchema(ctx context.Context) error {
	if x.cfg.Migrate != "auto" {
		err := x.store.CheckSchema(ctx)
		if x.cfg.Migrate == "off" && errors.Is(err, store.ErrSchemaOlder) {
			// no Problem, so that it is tried again
			return errors.New(err.Error() + " (--migrate=off waits for `indexer migrate`)")
		}
		return err
	}
	applied, err := x.store.Migrate(ctx)
	if len(applied) > 0 {
		x.logger.InfoContext(ctx, "migrated", "migrations", applied)
	}
	return err
}
