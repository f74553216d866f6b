package torture

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/sandbox"
)

// The same seed gives the same plan and the same faults, another one others.
func TestTheScheduleComesFromTheSeed(t *testing.T) {
	t.Parallel()
	require.Equal(t, newPlan(7), newPlan(7))
	require.NotEqual(t, newPlan(7), newPlan(8))
	first := func(seed uint64, purpose string) (list []fault) {
		s := postgresFaults(randomOf(seed, purpose), true)
		for range 50 {
			list = append(list, s.next())
		}
		return list
	}
	require.Equal(t, first(7, "stage 0"), first(7, "stage 0"))
	require.NotEqual(t, first(7, "stage 0"), first(8, "stage 0"))
	require.NotEqual(t, first(7, "stage 0"), first(7, "stage 1"))
}

// Every kind of fault comes, in a time within its limits, and each kind that there is has a line in the table.
func TestEveryFaultComes(t *testing.T) {
	t.Parallel()
	come := map[faultKind]bool{upgradeRelease: true, restoreServer: true} // in the place of a restart; between two stages
	for _, s := range []*schedule{
		programFaults(randomOf(1, "a"), killIndexer), programFaults(randomOf(1, "b"), killBackfill), programFaults(randomOf(1, "f"), killReanchor), erasureFaults(randomOf(1, "g")),
		postgresFaults(randomOf(1, "c"), true),
		participantFaults(randomOf(1, "d")), scanFaults(randomOf(1, "e")),
	} {
		for range 2000 {
			f := s.next()
			come[f.kind] = true
			require.GreaterOrEqual(t, f.wait, s.shortest)
			require.LessOrEqual(t, f.wait, s.longest)
			require.Less(t, f.long, 10*time.Second)
			require.Positive(t, f.size)
		}
	}
	for _, k := range kinds {
		require.True(t, come[k], k)
		delete(come, k)
	}
	require.Empty(t, come, "not in the table")

	s := postgresFaults(randomOf(1, "c"), false)
	for range 2000 {
		require.NotEqual(t, fullDisk, s.next().kind, "there is no disk to fill")
	}
}

// Plans are of every sort.
func TestPlansDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(300) {
		p := newPlan(seed)
		seen[p.version+">"+p.next]++
		seen[p.shape]++
		if p.strict {
			seen["strict"]++
			require.Empty(t, p.next, "a strict one is of one release")
		}
		if p.restored {
			seen["restored"]++
		}
		if p.redacts {
			seen["redacting"]++
		}
		if p.prunes {
			seen["pruning"]++
		}
		if p.snapshot {
			seen["snapshot of "+p.version]++
		}
	}
	for _, sort := range []string{
		"3.4>", "3.4>3.5", "3.5>", "3.5>3.6", "3.6>", sandbox.ACSDelta, sandbox.LedgerEffects, "strict", "restored", "redacting", "pruning", "snapshot of 3.4", "snapshot of 3.5", "snapshot of 3.6",
	} {
		require.Positive(t, seen[sort], sort)
	}
}

func TestTallyCounts(t *testing.T) {
	t.Parallel()
	tally := newTally()
	tally.hit(reset)
	tally.hit(reset)
	tally.hit(fullDisk)
	tally.compared(10, true)
	tally.compared(5, false)
	tally.round()
	require.Equal(t, 3, tally.Total())
	require.Equal(t, 2, tally.of(reset))
	text := tally.String()
	for _, line := range []string{
		`\| rounds +\| +1 \|`, `took effect +\| +3 \|`, `reset +\| +2 \|`, `with the truth +\| +2 \|`, `rows compared +\| +15 \|`, `a difference +\| +1 \|`,
	} {
		require.Regexp(t, line, text)
	}
}

// A row may be as either release shows it, and as no other.
func TestEitherRelease(t *testing.T) {
	t.Parallel()
	rows := func(values ...string) map[string][]sandbox.Row {
		list := []sandbox.Row{}
		for i, v := range values {
			list = append(list, sandbox.Row{"ledger_offset": i, "update_id": v})
		}
		return map[string][]sandbox.Row{"updates": list}
	}
	older, newer := rows("a", "b", "c"), rows("A", "B", "C")
	require.Equal(t, rows("a", "B", "C"), either(older, newer, rows("a", "B", "C")))
	require.Equal(t, rows("a", "b", "C"), either(older, newer, rows("a", "x", "C")), "what is neither is compared with the older")
}

// Rows that are equal are left out, as often as they are on both sides; nothing else is.
func TestUnequalRows(t *testing.T) {
	t.Parallel()
	rows := func(values ...string) map[string][]sandbox.Row {
		list := []sandbox.Row{}
		for _, v := range values {
			list = append(list, sandbox.Row{"update_id": v})
		}
		return map[string][]sandbox.Row{"updates": list}
	}
	want, got := unequal(rows("a", "b", "b", "c"), rows("b", "a", "x", "a"))
	require.Equal(t, rows("b", "c"), want)
	require.Equal(t, rows("a", "x"), got)
	want, got = unequal(rows("a", "b"), rows("b", "a"))
	require.Empty(t, sandbox.Diff(want, got))
	want, got = unequal(rows("a"), nil)
	require.Contains(t, sandbox.Diff(want, got), "missing")
	want, got = unequal(rows(), rows("a"))
	require.Contains(t, sandbox.Diff(want, got), "unexpected")
}
