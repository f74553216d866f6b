package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/admin"
	"ledgerindexer/internal/config"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
)

// How often a process that stands by, or waits for a snapshot, looks again.
const standbyEvery = time.Second

// Indexer is the configuration of the daemon.
type Indexer struct {
	config.Database
	config.Ledger
	config.Scope
	config.Run
}

// indexer is a daemon at work.
type indexer struct {
	cfg     Indexer
	scope   ledger.Scope
	start   ingest.Start
	logger  *slog.Logger
	store   *store.Store
	client  *participant.Client
	metrics *admin.Metrics
	health  *admin.Health

	server  atomic.Pointer[participant.Server] // who answered last at the ledger URL
	backoff ingest.Backoff                     // between terms that failed
	closing <-chan struct{}                    // closed when the leader of the last term is; nil: it is
}

// RunIndexer indexes until ctx ends (nil, the batch under way was finished), what was current at the start is
// committed (nil, where the configuration says so), or something fails that trying again can't cure.
func RunIndexer(ctx context.Context, cfg Indexer, logger *slog.Logger) error {
	x := &indexer{cfg: cfg, scope: cfg.Domain(), logger: logger, metrics: admin.NewMetrics()}
	var err error
	if x.start, err = ingest.ParseStart(cfg.Start); err != nil {
		return err
	}
	x.store, err = store.Open(store.Config{
		URL: cfg.DatabaseURL, Logger: logger, Holder: config.Holder(), Observe: x.metrics.Phase, Wrote: x.metrics.Wrote,
	})
	if err != nil {
		return &config.UsageError{Err: err}
	}
	defer func() { ending(x.store.Close) }()
	x.client, err = participant.New(participant.Config{
		URL: cfg.LedgerURL, Access: cfg.LedgerAccess.Domain("ledger"), Logger: logger, Observe: x.metrics.Request,
	}, x.scope)
	if err != nil {
		return &config.UsageError{Err: err}
	}
	defer x.client.Close()
	x.health = admin.NewHealth(x.store.Ping, x.pingLedger)

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

func (x *indexer) run(ctx context.Context) error {
	if err := x.prepare(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	for {
		done, err := x.term(ctx)
		switch {
		case ingest.Lasting(err):
			return err
		case done || ctx.Err() != nil: // whatever failed while it was told to stop
			x.logger.InfoContext(ctx, "stopped")
			return nil
		case err == nil:
			x.backoff.Reset()
		default:
			x.metrics.Retrying(store.StreamUpdates)
			x.health.Set(false, "trying again: "+err.Error())
			wait := x.backoff.Next(err)
			x.logger.WarnContext(ctx, "trying again", "error", err, "wait", wait.String())
			pause(ctx, wait)
		}
	}
}

// prepare waits for the database and the participant, and checks that they belong together.
func (x *indexer) prepare(ctx context.Context) error {
	if err := x.insist(ctx, "waiting for the database", x.prepareSchema); err != nil {
		return err
	}
	return x.insist(ctx, "waiting for the participant", x.checkIdentity)
}

// checkIdentity finds out who answers at the ledger URL, and whether the database is theirs.
func (x *indexer) checkIdentity(ctx context.Context) error {
	server, err := x.client.Discover(ctx)
	if err != nil {
		return err
	}
	x.server.Store(&server)
	return x.store.CheckIdentity(ctx, server.ParticipantID, x.scope)
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

// checkTerm is checkIdentity for a leader, which also records who answers where the database did not know it yet.
func (x *indexer) checkTerm(ctx context.Context, leader *store.Leader) error {
	if err := x.checkIdentity(ctx); err != nil {
		return err
	}
	participantID := x.server.Load().ParticipantID
	if participantID == "" {
		x.logger.WarnContext(ctx, "the participant does not tell who it is: another one behind the URL would not be noticed")
	}
	return leader.RecordIdentity(ctx, participantID, x.scope)
}

// insist tries until fn succeeds or ctx ends (nil), or the error is a lasting one.
func (x *indexer) insist(ctx context.Context, state string, fn func(context.Context) error) error {
	return insist(ctx, x.logger, state, fn, func(err error) { x.health.Set(false, state+": "+err.Error()) })
}

// term stands by until it leads, and indexes until the lead is lost. done is true when there is nothing more to do.
func (x *indexer) term(ctx context.Context) (done bool, err error) {
	unfinished, err := x.store.UnfinishedSnapshot(ctx)
	if err != nil {
		return false, err
	}
	if unfinished != nil {
		x.wait(ctx, false, fmt.Sprintf("waiting: a backfill has to finish the snapshot at offset %d (%d entries stored); run `backfill` to go on with it",
			unfinished.At, unfinished.Entries))
		return false, nil
	}
	if x.closing != nil {
		select {
		case <-x.closing:
			x.closing = nil
		default: // its lock would be taken for another process's
			x.wait(ctx, false, "waiting: the database does not let go of the last term's connections")
			return false, nil
		}
	}
	leader, ok, err := x.store.Lead(ctx, store.RoleUpdates)
	if err != nil {
		return false, err
	}
	if !ok {
		x.wait(ctx, true, "standing by: another process leads")
		return false, nil
	}
	defer func() {
		if x.closing = ending(leader.Close); x.closing != nil {
			x.logger.WarnContext(ctx, "the database does not let go of its connections; they are not waited for")
		}
	}()
	x.metrics.Leading(true)
	defer x.metrics.Leading(false)

	// A backfill may have begun, or finished, before this process got the lead.
	if unfinished, err = x.store.UnfinishedSnapshot(ctx); err != nil || unfinished != nil {
		return false, err
	}
	x.health.Set(true, "leading")
	termCtx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() {
		select {
		case <-leader.Lost():
			lose(leader.Err())
		case <-termCtx.Done():
		}
	}()
	tasks := x.startBackground(termCtx, leader)
	updates := ingest.Updates{
		Source: x.client, Sink: leader, Scope: x.scope, Start: x.start, ParticipantID: x.server.Load().ParticipantID,
		Check:        func(ctx context.Context) error { return x.checkTerm(ctx, leader) },
		UntilCurrent: x.cfg.UntilCurrent, Logger: x.logger,
		Watch: ingest.Watch{
			Resumed: func(watermark ledger.Offset) {
				x.backoff.Reset() // both sides answered
				x.metrics.Committed(int64(watermark), 0)
			},
			Committed: func(watermark ledger.Offset, n int) {
				x.metrics.Committed(int64(watermark), n)
				tasks.wake()
			},
			LedgerEnd: func(end ledger.Offset) { x.metrics.LedgerEnd(int64(end)) },
			Retrying: func(err error) {
				x.metrics.Retrying(store.StreamUpdates)
				x.health.Set(false, "leading, trying again: "+err.Error())
			},
			Recovered: func() { x.health.Set(true, "leading") },
		},
	}
	err = updates.Run(termCtx)
	lose(nil)
	if ending(tasks.running.Wait) != nil {
		x.logger.WarnContext(ctx, "a background task does not end; it is not waited for")
	}
	if lost := leader.Err(); lost != nil && ctx.Err() == nil {
		return false, lost // whatever else failed for it
	}
	return err == nil, err
}

// wait says why this process does nothing, and lets a moment pass.
func (x *indexer) wait(ctx context.Context, ready bool, state string) {
	if x.health.Set(ready, state) {
		x.logger.InfoContext(ctx, "not writing", "state", state)
	}
	pause(ctx, standbyEvery)
}

// pingLedger asks for the ledger's end; a server that does not tell it has answered too.
func (x *indexer) pingLedger(ctx context.Context) error {
	_, err := x.client.LedgerEnd(ctx)
	if errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	return err
}

// insist tries until fn succeeds or ctx ends (nil), or the error is a lasting one. failed is told of each failure.
func insist(ctx context.Context, logger *slog.Logger, state string, fn func(context.Context) error, failed func(error)) error {
	var backoff ingest.Backoff
	for {
		err := fn(ctx)
		if err == nil || ingest.Lasting(err) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		failed(err)
		wait := backoff.Next(err)
		logger.WarnContext(ctx, "trying again", "state", state, "error", err, "wait", wait.String())
		pause(ctx, wait)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
