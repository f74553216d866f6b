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

// A participant whose offsets were dealt anew shows the same updates, but for those that are lost, and goes on as it
// would have.
func TestOffsetsAreDealtAnew(t *testing.T) {
	t.Parallel()
	before, after := grown(t, Options{Seed: 6}, 500), grown(t, Options{Seed: 6}, 500)
	scan := NewScan(before, ScanOptions{}).Truth()
	after.Redeal(200, 1)
	require.Equal(t, before.Offset(199), after.Offset(199))
	require.NotEqual(t, before.Offset(200), after.Offset(200))
	require.Empty(t, Diff(scan, NewScan(after, ScanOptions{}).Truth()))

	scope := Scope{Shape: LedgerEffects}
	was, is := before.Truth(scope, before.End()), after.Truth(scope, after.End())
	require.Len(t, is["created_events"], len(was["created_events"]))
	lost := len(was["updates"]) - len(is["updates"])
	require.Positive(t, lost)
	require.Positive(t, len(was["topology_events"])-len(is["topology_events"]))
	known := map[any]Row{}
	for _, row := range was["updates"] {
		known[row["update_id"]] = row
	}
	moved := 0
	for _, row := range is["updates"] {
		then := known[row["update_id"]]
		require.NotNil(t, then)
		if row["ledger_offset"] != then["ledger_offset"] {
			moved++
		}
		row["ledger_offset"] = then["ledger_offset"]
		require.Equal(t, then, row)
	}
	require.Greater(t, moved, 200)
	before.Grow(50)
	after.Grow(50)
	require.Equal(t, before.UpdateID(549), after.UpdateID(549))
}
