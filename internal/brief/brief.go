// Package brief lets tests try fewer inputs where a run of them would take too long: with the race detector, which makes
// everything take five to ten times as long and has nothing to find in what one goroutine does, and with -short. `make thorough`
// tries all of them.
package brief

import "testing"

// Run is whether this run of the tests is to be brief.
func Run() bool { return Race || testing.Short() }

// Skip skips, in a brief run, a test that looks at more inputs of what other tests have looked at.
func Skip(t testing.TB) {
	t.Helper()
	if Run() {
		t.Skip("left out with -short and with the race detector: `make thorough` runs it")
	}
}
