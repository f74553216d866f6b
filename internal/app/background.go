package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// background is the tasks that run beside the updates while this process leads them. They never end or delay the
// stream.
type background struct {
	// Of capacity 1: a batch was committed.
	forLookups, forPackages, forHosting chan struct{}

	current chan struct{} // closed when nothing is committed any more: the tasks finish
	running sync.WaitGroup
	tasks   []string // their names

	mu   sync.Mutex
	left map[string]error // why tasks have not done all, by their names; nil: they are at work
}

func newBackground() *background {
	return &background{
		forLookups: make(chan struct{}, 1), forPackages: make(chan struct{}, 1), forHosting: make(chan struct{}, 1),
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

// startLookups starts a task that looks up contracts. It sets the members of the task that are the same for all
// sources.
func (x *indexer) startLookups(ctx context.Context, b *background, leader *store.UpdatesWriter, task ingest.Lookups) {
	task.Sink, task.Wake, task.Logger, task.Watch = leader, b.forLookups, x.logger, x.watchTask(ingest.TaskLookups)
	task.Finish = b.current
	task.Saved = func(status ledger.LookupStatus) { x.metrics.LookedUp(string(status)) }
	b.start(ingest.TaskLookups, func() error { return task.Run(ctx) })
}

// wake signals that a batch was committed. It does not block.
func (b *background) wake() {
	for _, waiting := range []chan struct{}{b.forLookups, b.forPackages, b.forHosting} {
		select {
		case waiting <- struct{}{}:
		default:
		}
	}
}
