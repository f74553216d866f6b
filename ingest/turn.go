package ingest

import (
	"context"
	"errors"
)

// errBefore is why something was not written: what comes before it was not stored. The error of that one counts.
var errBefore = errors.New("what comes before was not stored")

// orderedWrite is one of several writes that go on at the same time and are stored in their order.
type orderedWrite struct {
	done chan struct{} // closed when it is stored or has failed
	err  error         // valid then
}

func newOrderedWrite() *orderedWrite { return &orderedWrite{done: make(chan struct{})} }

// run writes behind another write, or behind none (nil). write is given how to wait for its turn; nil where there is nothing
// to wait for.
func (w *orderedWrite) run(before *orderedWrite, write func(turn func(context.Context) error) error) {
	defer close(w.done)
	if before == nil || before.isDone() {
		if w.err = before.outcome(); w.err == nil {
			w.err = write(nil)
		}
		return
	}
	w.err = write(func(ctx context.Context) error {
		select {
		case <-before.done:
			return before.outcome()
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if w.err == nil {
		return
	}
	// Where both met the same obstacle, such as a twin of theirs that is in doubt, only the first can tell what it was.
	<-before.done
	if err := before.outcome(); err != nil {
		w.err = err
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
