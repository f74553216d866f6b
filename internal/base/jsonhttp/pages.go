package jsonhttp

import (
	"fmt"
	"sync/atomic"

	"ledgerindexer/ledger"
)

// Empties counts pages of a list that bring nothing and are not the last, so that a list of them ends. It is safe for
// concurrent use.
type Empties struct{ inARow atomic.Int64 }

// maxEmpty is how many pages of a list in a row may bring nothing.
const maxEmpty = 1000

// Came notes a page. The error is a *ledger.Problem if too many in a row brought nothing; then it counts from the
// beginning.
func (e *Empties) Came(elements int, last bool) error {
	if elements > 0 || last {
		e.inARow.Store(0)
		return nil
	}
	if e.inARow.Add(1) < maxEmpty {
		return nil
	}
	e.inARow.Store(0)
	return &ledger.Problem{
		What: fmt.Sprintf("%d pages of a list in a row are empty, and none is the last", maxEmpty),
		Do:   "ask who runs the server: no end of the list comes; or take another server",
	}
}
