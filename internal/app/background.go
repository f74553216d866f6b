package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
	"ledgerindexer/verify"
)

// background is the tasks that run beside the updates while this process leads them. They never end or delay the
// stream.
type background struct {
	committed chan struct{} // of capacity 1: a batch was committed
	named     chan struct{} // likewise, for the task that reads packages
	held      chan struct{} // likewise, for the task that asks which parties are hosted
	current   chan struct{} // closed when nothing is committed any more: the tasks finish
	running   sync.WaitGroup
	tasks     []string // their names

	mu   sync.Mutex
	left map[string]error // why tasks have not done all, by their names; nil: they are at work
}

func newBackground() *background {
	return &background{
		committed: make(chan struct{}, 1), named: make(chan struct{}, 1), held: make(chan struct{}, 1),
		current: make(chan struct{}), left: map[string]error{},
	}
}

// start starts a task. run returns why it ended before all was done; nil: it was.
func (b *background) start(task string, run func() error) {
	b.tasks = append(b.tasks, task)
	b.mu.Lock()
	b.left[task] = nil
	b.mu.Unlock()
	b.running.Go(func() {
		err := run()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.left[task] = err; err == nil {
			delete(b.left, task)
		}
	})
}

// finish waits until the tasks have done what is left, or ctx ends, and returns what they have not; nil: nothing.
func (b *background) finish(ctx context.Context) (missing error) {
	close(b.current)
	done := make(chan struct{})
	go func() {
		b.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, task := range slices.Sorted(maps.Keys(b.left)) {
		err := fmt.Errorf("task %s has not done all", task)
		if why := b.left[task]; why != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		if missing != nil {
			err = fmt.Errorf("%w; %w", missing, err)
		}
		missing = err
	}
	return missing
}

// end waits until the tasks have ended, whose context has.
func (b *background) end(ctx context.Context, x *indexer) {
	if waitOrAbandon(b.running.Wait) != nil {
		x.logger.WarnContext(ctx, "a background task does not end; it is not waited for", "tasks", b.tasks)
	}
	x.metrics.TasksEnded(b.tasks...)
}

// startTasks implements origin: it starts the tasks that are configured; they end with ctx.
func (u *participantUpdates) startTasks(ctx context.Context, leader *store.UpdatesWriter,
	past verify.UpdateSource) *background {
	b := newBackground()
	if u.cfg.LookupRate > 0 {
		u.startLookups(ctx, b, leader, ingest.Lookups{Source: contracts{u.Client}, Parties: u.scope.Parties,
			Rate: u.rates.lookups})
	}
	if u.cfg.PackagesInterval > 0 {
		packages := ingest.Packages{
			Read: u.vettedPackages, Sink: leader, Every: u.cfg.PackagesInterval, Logger: u.logger,
			Watch: u.watchTask(ingest.TaskPackages), Saved: u.metrics.PackagesRead, Finish: b.current,
		}
		vetted := make(chan struct{}) // closed when no more are vetted, whose types are read
		b.start(ingest.TaskPackages, func() error {
			defer close(vetted)
			return packages.Run(ctx)
		})
		b.start(ingest.TaskTypes, func() error { return u.readTypes(ctx, leader, b.named, vetted) })
	}
	hosting := ingest.Hosting{
		Hosted: u.hostedParties, Sink: leader, Named: u.scope.Parties, Wake: b.held, Logger: u.logger,
		Watch:  u.watchTask(ingest.TaskHosting),
		Finish: b.current,
	}
	b.start(ingest.TaskHosting, func() error { return hosting.Run(ctx) })
	u.startPruning(ctx, b, leader)
	u.startSealing(ctx, b, leader, past)
	return b
}

// startLookups starts a task that looks up contracts. It sets the members of the task that are the same for all
// sources.
func (x *indexer) startLookups(ctx context.Context, b *background, leader *store.UpdatesWriter, task ingest.Lookups) {
	task.Sink, task.Wake, task.Logger, task.Watch = leader, b.committed, x.logger, x.watchTask(ingest.TaskLookups)
	task.Finish = b.current
	task.Saved = func(status ledger.LookupStatus) { x.metrics.LookedUp(string(status)) }
	b.start(ingest.TaskLookups, func() error { return task.Run(ctx) })
}

// startSealing starts to compare the stored updates with their source again, if that is configured.
func (x *indexer) startSealing(ctx context.Context, b *background, leader *store.UpdatesWriter,
	from verify.UpdateSource) {
	if x.cfg.VerifyRate == 0 {
		return
	}
	b.start(ingest.TaskVerification, func() error {
		return x.seal(ctx, ingest.TaskVerification, leader.Leader, b.current, func(s *verify.Seals) {
			s.AddUpdates(from, audit.New(x.store), audit.NewSealer(x.store, leader.Leader))
		})
	})
}

// wake signals that a batch was committed. It does not block.
func (b *background) wake() {
	for _, waiting := range []chan struct{}{b.committed, b.named, b.held} {
		select {
		case waiting <- struct{}{}:
		default:
		}
	}
}

// contracts implements ingest.LookupSource with a participant.
type contracts struct{ client *participant.Client }

// ContractByID returns an *ingest.UnusableError for an answer that is wrong about this contract only, and not because
// the participant, or a proxy before it, fails.
func (c contracts) ContractByID(ctx context.Context, id string,
	queryingParties []string) (ledger.Contract, ledger.JSON, error) {
	contract, body, err := c.client.ContractByID(ctx, id, queryingParties)
	var answer *participant.Error
	aboutIt := errors.As(err, &answer) && answer.Operation == "contract-by-id" && !errors.Is(err, jsonhttp.ErrCutOff) &&
		(!errors.Is(err, jsonhttp.ErrNotJSON) || ingest.Lasting(err))
	if aboutIt && (answer.Status == http.StatusOK || answer.Status == http.StatusBadRequest) {
		err = &ingest.UnusableError{Err: err}
	}
	return contract, body, err
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

// vettedPackages reads what the participant itself has vetted. It lists the packages of other participants too.
func (u *participantUpdates) vettedPackages(ctx context.Context) ([]ledger.VettedPackages, error) {
	id := u.server.Load().ParticipantID
	if id == "" {
		// A server that has no such list returns ledger.ErrNotOffered, which comes before the cure below.
		if _, err := u.Client.ListVettedPackages(ctx, participant.VettingFilter{}); err != nil {
			return nil, err
		}
		return nil, &ledger.Problem{
			What: "the participant does not report its id, so its own vetted packages can't be distinguished from those of " +
				"others",
			Do: "use a participant and a user that may ask for it, or end the tries with --packages-interval=0",
		}
	}
	return u.Client.ListVettedPackages(ctx, participant.VettingFilter{ParticipantIDs: []string{id}})
}
