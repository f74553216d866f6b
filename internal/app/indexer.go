package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/version"
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
	// Show, if set, is called with the progress of long work, about four times a second.
	Show func(ledger.Progress) `kong:"-"`

	lookAgain time.Duration // replaces lookAgainAfter in tests; 0: lookAgainAfter
}

// indexer is a running daemon: what its streams share.
type indexer struct {
	cfg     Indexer
	logger  *slog.Logger
	store   *store.Store
	metrics *admin.Metrics
	health  *admin.Health
	streams []*stream

	mu       sync.Mutex
	failures map[*stream]error // of the streams that can't go on
}

// RunIndexer reads the updates, the transaction history, or both concurrently, until ctx ends (nil; transactions under way are
// finished), or no stream can go on. A stream that fails for good does not end the other, and is tried again after a while. With
// UntilCurrent it ends when each stream has committed what was current at the start (nil), or has failed.
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
	x := &indexer{cfg: cfg, logger: logger, metrics: admin.NewMetrics(), failures: map[*stream]error{}}
	x.metrics.Build(build)
	x.store, err = store.Open(store.Config{
		URL: cfg.DatabaseURL, Schemas: cfg.Schemas.Domain(), Logger: logger, Holder: config.Holder(), Observe: x.metrics.Phase, Wrote: x.metrics.Wrote, Shown: x.metrics.Shown,
	})
	if err != nil {
		return &config.UsageError{Err: err}
	}
	defer func() { waitOrAbandon(x.store.Close) }()
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
		h, err := newTransactions(x)
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
		x.metrics.StreamState(s.name(), admin.Waits)
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

// run prepares the database and runs the streams until all are done, or none can go on.
func (x *indexer) run(ctx context.Context) error {
	const state = "waiting for the database"
	err := retryUntilDone(ctx, x.logger, state, x.prepareSchema, func(err error) {
		for _, s := range x.streams {
			s.set(admin.Waits, false, state+": "+err.Error())
		}
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, s := range x.streams {
		group.Go(func() error { return s.run(groupCtx) })
	}
	if err := group.Wait(); err != nil || ctx.Err() != nil {
		return err
	}
	return x.failure()
}

// noteFailure records why a stream can't go on; nil: it can. It reports whether any can.
func (x *indexer) noteFailure(s *stream, err error) (goesOn bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		delete(x.failures, s)
	} else {
		x.failures[s] = err
	}
	return len(x.failures) < len(x.streams)
}

// failureOf returns why a stream can't go on; nil: it can.
func (x *indexer) failureOf(s *stream) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failures[s]
}

// failure returns why streams can't go on, joined; nil: all can.
func (x *indexer) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all error
	var do []string
	for _, s := range x.streams {
		err := x.failures[s]
		switch {
		case err == nil:
			continue
		case len(x.streams) > 1:
			err = fmt.Errorf("%s: %w", s.name(), err)
		}
		if problem := (*ledger.Problem)(nil); errors.As(err, &problem) {
			do = append(do, s.name()+": "+problem.Do)
		}
		if all != nil {
			err = fmt.Errorf("%w; %w", all, err)
		}
		all = err
	}
	if len(do) > 1 {
		return &ledger.Problem{What: "no stream can go on", Do: strings.Join(do, "; "), Err: all}
	}
	return all
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
