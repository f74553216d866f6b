package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// How many writes run at a time that are committed in order (orderedCommits).
const (
	// At most this many transactions write rows at the same time.
	commitsWriting = 2
	// At most this many are open: those that have written their rows and wait for their commit do not keep others from
	// writing.
	commitsOpen = 4
)

// CommitOrder is the place of a write among concurrent ones: their transactions begin in this order, and commit in it.
// The store declares the same interface, as neither package imports the other.
type CommitOrder = interface {
	// First reports whether no write is before this one: Begin and Wait return at once.
	First() bool
	// Begin waits until the transaction of the write before has begun, and fails if that write has failed. Without it
	// another writer, such as a repair, could get between the two: it would wait for this one, and the write before for
	// it.
	Begin(ctx context.Context) error
	// Began says that the transaction has begun. It is called at most once.
	Began()
	// Wait waits until the write before is stored, and fails if it failed. It may be called again.
	Wait(ctx context.Context) error
}

// errBefore is the error of a write that was given up because the write before it failed. That one's error counts.
var errBefore = errors.New("what comes before was not stored")

// orderedCommits runs writes concurrently and commits them in order. takes and add are called from one goroutine.
type orderedCommits struct {
	open  []*orderedCommit // those that had not ended at the last call of takes, in order
	last  *orderedCommit   // added last; nil: none was
	moved chan struct{}    // gets a signal after a write has written its rows or has ended, and sometimes without that
}

func newOrderedCommits() *orderedCommits { return &orderedCommits{moved: make(chan struct{}, 1)} }

// takes reports whether a write can be added. One that is not full waits until no other one writes rows: added sooner,
// it would only wait for its turn to commit.
func (o *orderedCommits) takes(full bool) bool {
	o.open = slices.DeleteFunc(o.open, func(w *orderedCommit) bool { return isClosed(w.done) })
	writing := 0
	for _, w := range o.open {
		if !isClosed(w.written) {
			writing++
		}
	}
	return len(o.open) < commitsOpen && (writing == 0 || full && writing < commitsWriting)
}

// add adds a write after all others. Its run must be called.
func (o *orderedCommits) add() *orderedCommit {
	w := &orderedCommit{
		before: o.last, all: o, begun: make(chan struct{}), written: make(chan struct{}), done: make(chan struct{}),
	}
	o.open, o.last = append(o.open, w), w
	return w
}

// orderedCommit is one of the writes, and its place among them.
type orderedCommit struct {
	all     *orderedCommits
	before  *orderedCommit // nil: there is none to wait for
	begun   chan struct{}  // closed when its transaction has begun
	written chan struct{}  // closed when it has written its rows, or is done
	once    sync.Once      // closes written
	done    chan struct{}  // closed when it is stored or has failed
	err     error          // valid when done is closed
}

// run calls write, once, and returns when that has ended.
func (w *orderedCommit) run(write func(CommitOrder) error) {
	defer func() {
		close(w.done)
		w.moved()
	}()
	before := w.before
	if before == nil || isClosed(before.done) {
		w.before = nil
		if w.err = before.outcome(); w.err == nil {
			w.err = write(w)
		}
		return
	}
	w.err = write(w)
	w.before = nil // lets the memory of those before go
	if w.err == nil {
		return
	}
	// The error of the write before counts, even if both failed for the same reason.
	<-before.done
	if err := before.outcome(); err != nil {
		w.err = err
	}
}

func (w *orderedCommit) First() bool { return w.before == nil }

func (w *orderedCommit) Begin(ctx context.Context) error {
	if w.First() {
		return nil
	}
	select {
	case <-w.before.begun:
		return nil
	case <-w.before.done:
		return w.before.outcome()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *orderedCommit) Began() { close(w.begun) }

func (w *orderedCommit) Wait(ctx context.Context) error {
	w.moved()
	if w.First() {
		return nil
	}
	select {
	case <-w.before.done:
		return w.before.outcome()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// moved signals that the write has written its rows, or has ended.
func (w *orderedCommit) moved() {
	w.once.Do(func() { close(w.written) })
	select {
	case w.all.moved <- struct{}{}:
	default: // the signal is pending already
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// outcome returns errBefore if the write has failed. It must be done, or nil.
func (w *orderedCommit) outcome() error {
	if w != nil && w.err != nil {
		return errBefore
	}
	return nil
}
