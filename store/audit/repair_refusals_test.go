package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A ledger that ends before what is stored is another one, or one that lags behind: nothing is removed for its sake.
func TestALedgerThatEndsBeforeWhatIsStored(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	for name, statement := range map[string]string{
		"as it was": "SELECT 1", "without coverage": "DELETE FROM indexer.coverage",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := smallGround(t, false)
			i.Exec(statement)
			before := i.Dump(everyTable...)
			storetest.RequireProblem(t, i.repairer().RepairCoverage(t.Context(), storetest.Ptr(ledger.Offset(6))), "ends at offset 6", "updates up to offset 8",
				"`indexer reanchor`")
			require.Equal(t, before, i.Dump(everyTable...))
		})
	}
}

// A hole is closed by reading what belongs there: nothing is written, and nobody's term ends, for it alone.
func TestAHoleAloneEndsNoTerm(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	i := smallGround(t, false)
	i.Exec("UPDATE indexer.coverage SET to_inclusive = 6")
	state := func() []string {
		return append(i.Rows("SELECT lease, epoch, holder FROM indexer.leadership WHERE lease <> 'repair' ORDER BY 1"),
			i.Rows("SELECT xmin::text, from_exclusive FROM indexer.coverage")...)
	}
	before := state()
	require.NoError(t, i.repairer().RepairCoverage(t.Context(), nil))
	require.Equal(t, before, state())
}

// One stray row that seems to come from a snapshot makes no snapshot, and no known active set, where indexing began
// without.
func TestAStrayRowIsNoSnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	for name, start := range map[string]ledger.Offset{"from the middle": 100, "from the beginning": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &itself{testDB: newDatabase(t), scope: storetest.Scope, from: start}
			i.store = i.testDB.store()
			l := i.leadUpdates(i.store)
			require.NoError(t, l.Start(t.Context(), "", storetest.Scope, start, start == 0))
			require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(start)))
			l.Close()
			before := i.Dump(everyTable...)
			i.Exec("INSERT INTO indexer.unknown_elements (ledger_offset, ordinal, kind, raw) VALUES ($1, 0, 'New', '{}')", start)
			list := i.differences(nil)
			require.Len(t, list, 1)
			require.Equal(t, "unknown_elements", list[0].Relation)
			require.Equal(t, Extra, list[0].Kind)
			require.Empty(t, i.repaired(i.repairer(), nil))
			require.Equal(t, before, i.Dump(everyTable...))
		})
	}
}

// What was active before indexing began is not known.
func TestTheActiveSetBelowTheFloor(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	i := smallGround(t, true)
	fail := func(Difference) { t.Error("compared") }
	_, err := i.store.CompareActive(t.Context(), 99, nil, fail)
	require.ErrorContains(t, err, "it is known from offset 100 on")
	err = i.store.ActiveAt(t.Context(), 99, func(_ EntryKey, d Difference) { fail(d) })
	require.ErrorContains(t, err, "it is known from offset 100 on")
}
