// Package brief lets tests try fewer inputs, and fewer rows of tables, in slow runs: with -short, and with the race
// detector, which makes everything five to ten times slower and finds nothing new in another input of the same
// goroutines. `make test` runs such tests without it, in full.
package brief

import (
	"path"
	"sync"
	"testing"
)

// Run reports whether this run of the tests is brief.
func Run() bool { return Race || testing.Short() }

// Skip skips a test in a brief run. It is for tests that try more inputs of what other tests cover.
func Skip(t testing.TB) {
	t.Helper()
	if Run() {
		t.Skip("left out with -short and with the race detector: `make test` runs it without")
	}
}

// Once skips with the race detector a test that is about what is stored, shown or written: what it runs at a time other
// tests run as well, with the race detector. It is for tests for which that would only take longer.
func Once(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("left out with the race detector, since other tests run the same goroutines: `make test` runs it without")
	}
}

// Long skips with -short a test that takes long: why says what it waits for, or does so much of, after "it". A run
// without -short runs it, unless Once leaves it out.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: it " + why)
	}
}

// Sample skips in a brief run nineteen of twenty rows of a table of tests, each of which takes a database of its own.
// The first that asks is never left out: it is another one each time where the table is a map, and the very one that
// -run names. With -count that is so the first time only.
func Sample(t testing.TB) {
	t.Helper()
	if Run() && rows.next(path.Dir(t.Name()))%20 > 0 {
		t.Skip("left out with -short and with the race detector, as nineteen of twenty rows of a table are: `make test` " +
			"runs all without")
	}
}

// rows counts the rows of each table that asked.
var rows = counter{asked: map[string]int{}}

type counter struct {
	mu    sync.Mutex
	asked map[string]int
}

func (c *counter) next(table string) (before int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.asked[table]
	c.asked[table]++
	return before
}
