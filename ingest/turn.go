package ingest

import (
	"context"
	"errors"

	"ledgerindexer/ledger"
)

// errBefore is why something was not written: what comes before it was not stored. The error of that one counts.
var errBefore = errors.New("what comes before was not stored")

// orderedWrite is one of several writes that go on at the same time and are stored in their order: a ledger.Turn.
type orderedWrite struct {
	before *orderedWrite // nil: nothing is to be waited for
	begun  chan struct{} // closed when its transaction has begun
	done   chan struct{} // closed when it is stored or has failed
	err    error         // valid then
}

func newOrderedWrite() *orderedWrite {
	return &orderedWrite{begun: make(chan struct{}), done: make(chan struct{})}
}

// run writes behind another write, or behind none (nil).
func (w *orderedWrite) run(before *orderedWrite, write func(turn ledger.Turn) error) {
	defer close(w.done)
	if before == nil || before.isDone() {
		if w.err = before.outcome(); w.err == nil {
			w.err = write(w)
		}
		return
	}
	w.before = before
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

func (w *orderedWrite) isDone() bool {
	select {
	case <-w.done:
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
