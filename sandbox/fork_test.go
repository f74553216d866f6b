package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A restored ledger is the other one up to where it was restored, and from there on it is not.
func TestARestoredLedgerHasAnotherHistory(t *testing.T) {
	t.Parallel()
	restored := func(seeds ...uint64) *Ledger {
		l := grown(t, Options{Seed: 6}, 300)
		for _, seed := range seeds {
			l.Diverge(seed)
			l.Grow(200)
		}
		return l
	}
	first, second := restored(), restored(1)
	first.Grow(200)
	cut := second.Offset(299)
	require.Equal(t, first.Offset(299), cut)
	for _, shape := range []string{ACSDelta, LedgerEffects} {
		require.Empty(t, Diff(first.Truth(Scope{Shape: shape}, cut), second.Truth(Scope{Shape: shape}, cut)))
	}
	known := map[string]bool{}
	for i := range 500 {
		known[first.UpdateID(i)] = true
	}
	for l, common := range map[*Ledger]int{first: 500, second: 300} {
		for i := range l.Len() {
			named, ok := l.view().updateNamed(l.UpdateID(i))
			require.True(t, ok)
			require.Equal(t, i, named)
			require.Equal(t, i < common, known[l.UpdateID(i)], i)
		}
	}
	require.Empty(t, Diff(second.Truth(Scope{Shape: ACSDelta}, second.End()), restored(1).Truth(Scope{Shape: ACSDelta}, second.End())), "the seeds decide all")
	again := restored(1, 2)
	for i := range 500 {
		require.Equal(t, second.UpdateID(i), again.UpdateID(i))
	}
	require.NotEqual(t, restored(1, 3).UpdateID(500), again.UpdateID(500))
}
