package sandbox

import (
	"testing"
)

// inFlightAtEnd returns a ledger with an incomplete reassignment of each kind at its
// end.
func inFlightAtEnd(t *testing.T) *Ledger {
	t.Helper()
	l := grown(t, Options{Seed: 45}, 160)
	for range 4000 {
		l.Grow(1)
		v := l.view()
		var unassigned, assigned bool
		for i := range v.reassignments {
			u, a := v.reassignments[i].halves(len(v.updates))
			unassigned, assigned = unassigned || u && !a, assigned || a && !u
		}
		if unassigned && assigned {
			return l
		}
	}
	t.Fatal("no moment with both kinds of incomplete reassignments")
	return nil
}
