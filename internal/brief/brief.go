// Package brief lets tests try fewer inputs in slow runs: with the race detector, which makes everything five to ten times
// slower and finds nothing in a single goroutine, and with -short. `make thorough` tries all of them.
package brief

import "testing"

// Run reports whether this run of the tests is brief.
func Run() bool { return Race || testing.Short() }

// Skip skips a test in a brief run. It is for tests that try more inputs of what other tests cover.
func Skip(t testing.TB) {
	t.Helper()
	if Run() {
		t.Skip("left out with -short and with the race detector: `make thorough` runs it")
	}
}
