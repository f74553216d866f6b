package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/statuspage"
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
	// Changes, if set, calls apply with a configuration that has changed since the start, until ctx ends. apply returns the names of the
	// settings that are in force from then on; the others need a restart.
	Changes func(ctx context.Context, apply func(now Indexer) (applied []string)) `kong:"-"`
	// Show, if set, is called with the progress of long work, about four times a second.
	Show func(ledger.Progress) `kong:"-"`

	lookAgain time.Duration // replaces lookAgainAfter in tests; 0: lookAgainAfter
}

// indexer is a running daemon, as far as it writes one pair of schemas: what the streams of the pair share.
type indexer struct {
	*daemon
	cfg     Indexer
	logger  *slog.Logger
	schemas store.Schemas
	store   *store.Store
	metrics *admin.Metrics
}

// daemon is what all streams share.
type daemon struct {
	health  *admin.Health
	streams []*stream
	rates   rates

	mu       sync.Mutex
	failures map[*stream]error // of the streams that can't continue
}

// RunIndexer reads the updates of a participant, the transaction history and the updates of a network, or some of these, concurrently,
// until ctx ends (nil; transactions under way are finished), or no stream can continue. A stream that fails for good does not end the other, and is tried again after a while. With
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
	journal := &statuspage.Journal{}
	logger = slog.New(journal.Handler(logger.Handler()))
	x := &indexer{daemon: &daemon{failures: map[*stream]error{}}, cfg: cfg, logger: logger, metrics: admin.NewMetrics()}
	x.metrics.Build(build)
	x.rates.set(cfg)
	if err := x.open(cfg.Schemas.Domain()); err != nil {
		return err
	}
	defer func() { waitOrAbandon(x.store.Close) }()
	checks, closeSources, err := x.addStreams()
	defer closeSources()
	if err != nil {
		return err
	}
	var names []string
	for _, s := range x.streams {
		names = append(names, s.title)
		s.metrics.Leading(s.name(), false)
		s.metrics.StreamState(s.name(), admin.Waits)
	}
	x.health = admin.NewHealth(names, checks...)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if cfg.Changes != nil {
		group.Go(func() error {
			cfg.Changes(ctx, x.change)
			return nil
		})
	}
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
	add := func(s *stream, check admin.Check, closeOne func()) {
		x.streams, checks, closes = append(x.streams, s), append(checks, check), append(closes, closeOne)
	}
	transactions := x.cfg.ScanHistory.Transactions() && len(x.cfg.ScanURL) > 0
	if own := config.NetworkSchemas.Tables; x.cfg.Schemas.Domain().Tables == own && (x.cfg.LedgerURL != "" || transactions) {
		return nil, closeAll, &config.UsageError{Err: fmt.Errorf("schema %s is for the updates of a network: name another pair of schemas for what else is read", own)}
	}
	if x.cfg.LedgerURL != "" {
		p, err := newParticipantUpdates(x)
		if err != nil {
			return nil, closeAll, err
		}
		u := &updates{indexer: x, origin: p, start: p.start, open: p.ofScope}
		add(&stream{indexer: x, role: store.RoleUpdates, title: "updates", source: "the participant", work: u},
			admin.Check{Name: "ledger", Try: p.ping}, p.Close)
	}
	if transactions {
		h, err := newTransactions(x)
		if err != nil {
			return nil, closeAll, err
		}
		add(&stream{indexer: x, role: store.RoleTransactions, title: "transactions", source: "the Scan service", work: h},
			admin.Check{Name: "scan", Try: h.ping}, h.service.Close)
	}
	if x.cfg.ScanHistory.Updates() && len(x.cfg.ScanURL) > 0 {
		n, err := newNetworkUpdates(x)
		if err != nil {
			return nil, closeAll, err
		}
		u := &updates{indexer: n.indexer, origin: n}
		network := &stream{indexer: n.indexer, role: store.RoleUpdates, title: "network", source: "the Scan service", work: u, over: make(chan struct{})}
		add(network, admin.Check{Name: "network", Try: n.ping}, n.Close)
		derived := newDerivedHistory(n.store, nil)
		if x.cfg.UntilCurrent { // what follows from all updates
			derived.ready = network.over
		}
		x.streams = append(x.streams, &stream{
			indexer: n.indexer, role: store.RoleTransactions, title: "movements", source: "the stored updates", beside: true,
			work: newDerivedTransactions(n.indexer, derived),
		})
	}
	if len(x.streams) == 0 {
		return nil, closeAll, &config.UsageError{Err: errors.New("--scan-history=none leaves nothing to be read without --ledger-url")}
	}
	return checks, closeAll, nil
}

// open opens the store of a pair of schemas.
func (x *indexer) open(schemas store.Schemas) (err error) {
	x.schemas = schemas
	cfg := config.StoreOf(x.cfg.DatabaseURL, schemas, x.logger)
	cfg.Observe, cfg.Wrote, cfg.Shown = x.metrics.Phase, x.metrics.Wrote, x.metrics.Shown
	if x.store, err = store.Open(cfg); err != nil {
		return &config.UsageError{Err: err}
	}
	return nil
}

// run prepares the database and runs the streams until all are done, or none can continue.
func (x *indexer) run(ctx context.Context) error {
	const state = "waiting for the database"
	err := retryUntilDone(ctx, x.logger, state, x.prepareSchemas, func(err error) {
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

// noteFailure records why a stream can't continue; nil: it can. It reports whether any can.
func (x *indexer) noteFailure(s *stream, err error) (goesOn bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		delete(x.failures, s)
	} else {
		x.failures[s] = err
	}
	return slices.ContainsFunc(x.streams, func(other *stream) bool { return !other.beside && x.failures[other] == nil })
}

// failureOf returns why a stream can't continue; nil: it can.
func (x *indexer) failureOf(s *stream) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failures[s]
}

// failure returns why streams can't continue, joined; nil: all can.
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
			err = fmt.Errorf("%s: %w", s.title, err)
		}
		if problem := (*ledger.Problem)(nil); errors.As(err, &problem) {
			do = append(do, s.title+": "+problem.Do)
		}
		if all != nil {
			err = fmt.Errorf("%w; %w", all, err)
		}
		all = err
	}
	if len(do) > 1 {
		return &ledger.Problem{What: "no stream can continue", Do: strings.Join(do, "; "), Err: all}
	}
	return all
}

// prepareSchemas prepares the schemas of all streams.
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
			return errors.New(err.Error() + " (--migrate=off waits for `indexer migrate`)") // no Problem, so that it is tried again
		}
		return err
	}
	applied, err := x.store.Migrate(ctx)
	if len(applied) > 0 {
		x.logger.InfoContext(ctx, "migrated", "migrations", applied)
	}
	return err
}
