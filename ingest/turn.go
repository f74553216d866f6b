package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"ledgerindexer/ledger"
)

const (
	// So many writes of a line write their rows at the same time.
	lineWriters = 2
	// So many are open: one that has written its rows, and waits for its turn, keeps no other one from writing.
	lineOpen = 4
)

// errBefore is why something was not written: what comes before it was not stored. The error of that one counts.
var errBefore = errors.New("what comes before was not stored")

// line is writes that go on at the same time and are stored in their order. One goroutine asks and adds.
type line struct {
	open  []*orderedWrite // that had not ended when it was last asked, in their order
	last  *orderedWrite   // that was added; nil: none was
	moved chan struct{}   // has an element when a write has written its rows or has ended, and perhaps where none has
}

func newLine() *line { return &line{moved: make(chan struct{}, 1)} }

// takes tells whether a write can be added. What is not full waits until nothing writes: it would soon be written, and wait behind
// the one before it.
func (l *line) takes(full bool) bool {
	l.open = slices.DeleteFunc(l.open, func(w *orderedWrite) bool { return isClosed(w.done) })
	writing := 0
	for _, w := range l.open {
		if !isClosed(w.written) {
			writing++
		}
	}
	return len(l.open) < lineOpen && (writing == 0 || full && writing < lineWriters)
}

// add adds a write behind all others, which is to be run.
func (l *line) add() *orderedWrite {
	w := &orderedWrite{
		before: l.last, line: l, begun: make(chan struct{}), written: make(chan struct{}), done: make(chan struct{}),
	}
	l.open, l.last = append(l.open, w), w
	return w
}

// orderedWrite is a write of a line: a ledger.Turn.
type orderedWrite struct {
	line    *line
	before  *orderedWrite // nil: nothing is to be waited for
	begun   chan struct{} // closed when its transaction has begun
	written chan struct{} // closed when only its turn is missing, or nothing
	once    sync.Once     // closes it
	done    chan struct{} // closed when it is stored or has failed
	err     error         // valid then
}

// run writes, once.
func (w *orderedWrite) run(write func(turn ledger.Turn) error) {
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

// First implements ledger.Turn.
func (w *orderedWrite) First() bool { return w.before == nil }

// Begin implements ledger.Turn.
func (w *orderedWrite) Begin(ctx context.Context) error {
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

// Began implements ledger.Turn.
func (w *orderedWrite) Began() { close(w.begun) }

// Wait implements ledger.Turn.
func (w *orderedWrite) Wait(ctx context.Context) error {
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
func (w *orderedWrite) moved() {
	w.once.Do(func() { close(w.written) })
	select {
	case w.line.moved <- struct{}{}:
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
func (w *orderedWrite) outcome() error {
	if w != nil && w.err != nil {
		return errBefore
	}
	return nil
}
