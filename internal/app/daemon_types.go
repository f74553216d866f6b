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

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/tracing"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Indexer is the configuration of the daemon.
type Indexer struct {
	config.Database
	config.Sources
	config.Scope
	config.Run
	config.RequestLimits
	config.Profile
	config.Traces

	lookAgain   time.Duration // replaces lookAgainAfter in tests; 0: lookAgainAfter
	flushTraces time.Duration // replaces how long the end waits for a collector, in tests; 0: that
	sealWindow  int64         // replaces how many updates or records a full window of seals has, in tests; 0: that
}

// indexer is the part of a running daemon that writes one pair of schemas. The streams of the pair share it.
type indexer struct {
	*daemon
	cfg     Indexer
	logger  *slog.Logger
	schemas store.Schemas
	store   *store.Store
	metrics *admin.Metrics
	tracer  *tracing.Tracer // nil: nothing is traced
}

type daemon struct {
	health *admin.Health

	mu       sync.Mutex
	streams  []*stream
	failures map[*stream]error // of the streams that can't continue
}

func (x *indexer) open(schemas store.Schemas) (err error) {
	x.schemas = schemas
	cfg := config.StoreOf(x.cfg.DatabaseURL, schemas, x.logger)
	cfg.Observe, cfg.Wrote, cfg.Shown = x.metrics.Phase, x.metrics.Wrote, x.metrics.Shown
	if x.store, err = store.Open(cfg); err != nil {
		return &config.UsageError{Err: err}
	}
	return nil
}

// noteFailure records why a stream can't continue; nil: it can. It reports whether any stream can.
func (x *indexer) noteFailure(s *stream, err error) (anyContinues bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		delete(x.failures, s)
	} else {
		x.failures[s] = err
	}
	return slices.ContainsFunc(x.streams, func(other *stream) bool { return x.failures[other] == nil })
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
		if problem, ok := errors.AsType[*ledger.Problem](err); ok {
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

const scanService = "the Scan service"

// stream is one of the streams of a daemon. Each is led, waits and fails independently of the others: another process
// may lead it.
type stream struct {
	*indexer
	lease      store.Lease
	title      string // its name in health and messages, which no other stream of the process has
	sourceName string // what it is read from, for messages
	work       streamWork

	outcome outcome         // guarded by mu
	retry   ingest.Retry    // between terms that failed
	stands  time.Time       // since when this process stands by; zero: it does not
	closing <-chan struct{} // closed when the leader of the last term is closed; nil: it is closed
}

// streamWork is what differs between the streams.
type streamWork interface {
	// connect asks the source who it is, and checks that the database belongs to it. It is tried until it succeeds, before
	// everything else.
	connect(ctx context.Context) error
	// release returns the release of the source; empty: not known.
	release(ctx context.Context) string
	// blocker returns what keeps every process from writing the stream, and whether a process that waits for it counts as
	// ready; an empty state: nothing.
	blocker(ctx context.Context) (state string, ready bool, err error)
	// take tries once to take the lead; ok is false if another process has it. run reads and writes as the leader until
	// ctx ends or nothing is left to do (done), or something fails. If it returns without either, the next term begins at
	// once.
	take(ctx context.Context) (leader *store.Leader, run func(ctx context.Context, s *stream) (done bool, err error),
		ok bool, err error)
}

// name returns the stream's name in the checkpoints and metrics of its pair of schemas, which is that of its lease.
func (s *stream) name() string { return string(s.lease) }

// begin makes the stream one of the process's, for metrics and health.
func (s *stream) begin() {
	s.health.Add(s.title)
	s.metrics.Leading(s.name(), false)
	s.metrics.StreamState(s.name(), admin.Waits)
}

// set reports the stream's state in this process to metrics and health, and whether that counts as ready.
func (s *stream) set(state admin.State, ready bool, text string) (changed bool) {
	s.metrics.StreamState(s.name(), state)
	if state != admin.Stopped {
		s.noteOutcome(func(o *outcome) { o.state = text })
	}
	return s.health.Set(s.title, state, ready, text)
}

// outcome is how far a stream has come of a process that ends when it is current.
type outcome struct {
	state   string // what it last reported of itself
	done    bool   // it has committed what was current at the start
	missing error  // what is left to do beside it; nil: nothing
}

// noteOutcome sets what is known of the stream for the outcome.
func (s *stream) noteOutcome(set func(*outcome)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(&s.outcome)
}

func (x *indexer) report(task string, leader *store.Leader) ingest.TaskReport {
	return ingest.TaskReport{Name: task, Sink: leader, Logger: x.logger, Watch: x.watchTask(task)}
}

func (x *indexer) watchTask(name string) ingest.TaskWatch {
	return ingest.TaskWatch{
		Retrying: func() { x.metrics.TaskRetrying(name) },
		Failing:  func(failing bool) { x.metrics.TaskFailing(name, failing) },
	}
}
