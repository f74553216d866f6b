package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"
)

const (
	// So many commits write their rows at the same time.
	commitsWriting = 2
	// So many are open: one that has written its rows, and waits for its turn, keeps no other one from writing.
	commitsOpen = 4
)

// CommitOrder is the place of a write among others that run at the same time: their transactions begin in their order, and are
// committed in it. The store declares the same interface, as neither imports the other.
type CommitOrder = interface {
	// First tells whether nothing is before it: Begin and Wait wait for nothing.
	First() bool
	// Begin waits until the transaction of the write before has begun: one that is open then waits for no other writer, such as a
	// repair, that waits for this one. It fails if the write before has.
	Begin(ctx context.Context) error
	// Began says that the transaction has begun. It is called at most once.
	Began()
	// Wait waits until the write before is stored, and fails if it was not. It may be called again.
	Wait(ctx context.Context) error
}

// errBefore is why something was not written: what comes before it was not stored. The error of that one counts.
var errBefore = errors.New("what comes before was not stored")

// orderedCommits runs writes concurrently and commits them in order. One goroutine asks and adds.
type orderedCommits struct {
	open  []*orderedCommit // that had not ended when it was last asked, in their order
	last  *orderedCommit   // that was added; nil: none was
	moved chan struct{}    // has an element when a write has written its rows or has ended, and perhaps where none has
}

func newOrderedCommits() *orderedCommits { return &orderedCommits{moved: make(chan struct{}, 1)} }

// takes tells whether a write can be added. What is not full waits until nothing writes: it would soon be written, and wait
// behind the one before it.
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

// add adds a write behind all others, which is to be run.
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
	before  *orderedCommit // nil: nothing is to be waited for
	begun   chan struct{}  // closed when its transaction has begun
	written chan struct{}  // closed when only its turn is missing, or nothing
	once    sync.Once      // closes it
	done    chan struct{}  // closed when it is stored or has failed
	err     error          // valid then
}

// run writes, once.
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
	w.before = nil // and all those before it
	if w.err == nil {
		return
	}
	// Where both met the same obstacle, such as a twin of theirs that is in doubt, only the first can tell what it was.
	<-before.done
	if err := before.outcome(); err != nil {
		w.err = err
	}
}

// First implements CommitOrder.
func (w *orderedCommit) First() bool { return w.before == nil }

// Begin implements CommitOrder.
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

// Began implements CommitOrder.
func (w *orderedCommit) Began() { close(w.begun) }

// Wait implements CommitOrder.
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

// moved says that the write has written its rows, or has ended.
func (w *orderedCommit) moved() {
	w.once.Do(func() { close(w.written) })
	select {
	case w.all.moved <- struct{}{}:
	default: // it is said already
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

// outcome tells, once it is done, whether something can stand behind it.
func (w *orderedCommit) outcome() error {
	if w != nil && w.err != nil {
		return errBefore
	}
	return nil
}
