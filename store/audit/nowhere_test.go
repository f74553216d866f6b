package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

func texts(list []Difference) []string {
	texts := []string{}
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return storetest.Sorted(texts)
}

// smallGround is a database that says 0 to 8, or 100 to 108 after a snapshot there.
func smallGround(t *testing.T, snapshot bool) *itself {
	t.Helper()
	i := &itself{testDB: newDatabase(t), scope: storetest.Scope}
	i.store = i.testDB.store()
	l := i.leadUpdates(i.store)
	defer l.Close()
	if snapshot {
		i.from = 100
		progress, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
		require.NoError(t, err)
		exact := storetest.ActiveEntry(10, 0, "plain", "sync::1", 3)
		exact.Active.Created.Argument = ledger.JSON(`"\u0000"`)
		_, err = l.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Last: true, Entries: []ledger.ContractEntry{
			exact, storetest.UnassignedEntry(90, 5, "left", "sync::1", "sync::2"), {Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`"\u0000"`)}},
		}})
		require.NoError(t, err)
	} else {
		require.NoError(t, l.Start(t.Context(), "", storetest.Scope, 0, true))
	}
	for _, from := range []ledger.Offset{i.from, i.from + 4} {
		require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(from)))
	}
	require.Empty(t, i.differences(nil))
	return i
}

// What is claimed is compared with the rows, and with where the ledger ends.
func TestCoverageIsComparedAndRepaired(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	i := smallGround(t, false)
	before := i.Dump(everyTable...)
	r := i.repairer()

	// A ledger that ends before what is stored is another one, or one that lags behind: nothing is removed for its sake.
	for _, statement := range []string{"SELECT 1", "DELETE FROM indexer.coverage"} {
		i.Exec(statement)
		damaged := i.Dump(everyTable...)
		storetest.RequireProblem(t, r.RepairCoverage(t.Context(), new(ledger.Offset(6))), "ends at offset 6", "updates up to offset 8",
			"`indexer reanchor`")
		require.Equal(t, damaged, i.Dump(everyTable...))
	}

	// The parts that no coverage row claims are told, so that they are read.
	i.Exec("INSERT INTO indexer.coverage SELECT 'updates', scope, n, n + 2 FROM indexer.scopes, unnest('{1,4}'::int[]) n")
	var list []Difference
	holes, err := i.store.CompareCoverage(t.Context(), nil, storetest.Collect(&list))
	require.NoError(t, err)
	require.Equal(t, []ledger.Range{{From: 0, To: 1}, {From: 3, To: 4}, {From: 6, To: 8}}, holes)
	require.Equal(t, []string{
		"coverage, from_exclusive 0, to_inclusive 1: the row is not stored", "coverage, from_exclusive 3, to_inclusive 4: the row is not stored",
		"coverage, from_exclusive 6, to_inclusive 8: the row is not stored",
	}, texts(list))

	// A hole is closed by reading what belongs there: nothing is written, and nobody's term ends, for it alone.
	state := func() []string {
		return append(i.Rows("SELECT lease, epoch, holder FROM indexer.leadership WHERE lease <> 'repair' ORDER BY 1"),
			i.Rows("SELECT xmin::text, from_exclusive, to_inclusive FROM indexer.coverage ORDER BY 2")...)
	}
	was := state()
	require.NoError(t, r.RepairCoverage(t.Context(), nil))
	require.Equal(t, was, state())
	require.Equal(t, []string{"1 3", "4 6"}, i.Coverage())
	require.Equal(t, "8", i.Watermark())
	i.Exec("DELETE FROM indexer.coverage WHERE from_exclusive = 4")
	i.Exec("UPDATE indexer.coverage SET from_exclusive = 0, to_inclusive = 8")
	require.Equal(t, before, i.Dump(everyTable...))

	// A watermark beyond the ledger's end is lowered to it where no update is stored beyond.
	l := i.leadUpdates(i.store)
	require.NoError(t, l.Append(t.Context(), i.scope, []ledger.Page{{From: 8, To: 20}}))
	end := ledger.Offset(8)
	require.Equal(t, []string{`checkpoints, stream updates: ledger_offset is "20", and should be "8"`}, texts(i.differences(&end)))
	require.Empty(t, i.repaired(r, &end))
	require.Equal(t, []string{"0 8"}, i.Coverage())
	require.Equal(t, "8", i.Watermark())
	require.ErrorIs(t, l.Append(t.Context(), i.scope, []ledger.Page{{From: 20, To: 21}}), store.ErrNotLeader)
}

// Rows that belong nowhere are found, and go. Up to the floor an entry of the snapshot may say so, which is not read here.
func TestRowsThatBelongNowhere(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	i := smallGround(t, true)
	r := i.repairer()
	end := ledger.Offset(99)
	_, err := i.store.CompareCoverage(t.Context(), &end, func(Difference) {})
	storetest.RequireProblem(t, err, "ends at offset 99, before offset 100")
	storetest.RequireProblem(t, r.RepairCoverage(t.Context(), &end), "ends at offset 99")
	// What was active before indexing began is not known, nor what will be.
	for at, says := range map[ledger.Offset]string{99: "it is known from offset 100 on", 1 << 40: "the watermark is"} {
		_, err := i.store.CompareActive(t.Context(), at, nil, nil)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, i.store.ActiveAt(t.Context(), at, nil), says)
	}
	before := i.Dump(everyTable...)
	for _, table := range storetest.FactTables {
		for _, offset := range []int{3, 109} {
			if offset == 3 && tables.Get(tables.Facts, table).Snapshot != nil {
				continue
			}
			statements := []string{
				fmt.Sprintf("CREATE TEMP TABLE more AS SELECT * FROM indexer.%s LIMIT 1", table),
				fmt.Sprintf("UPDATE more SET ledger_offset = %d", offset), "INSERT INTO indexer." + table + " SELECT * FROM more", "DROP TABLE more",
			}
			for _, s := range statements {
				i.Exec(s)
			}
			list := i.differences(nil)
			require.Len(t, list, 1, "%s at %d", table, offset)
			require.Equal(t, Extra, list[0].Kind)
			require.Equal(t, table, list[0].Relation)
			require.EqualValues(t, offset, list[0].Offset)
			require.Empty(t, i.repaired(r, nil))
		}
	}
	for _, c := range []struct{ statement, want string }{
		{"INSERT INTO indexer.created (ledger_offset, node_id, template_ref, origin, contract_id) SELECT 109, 1073741824, template_ref, origin, contract_id FROM indexer.created WHERE origin = 'snapshot' LIMIT 1",
			"created at offset 109, node_id 1073741824: the row is stored"},
		{"INSERT INTO indexer.lookups (contract_id, ledger_offset, node_id) VALUES ('nobody', 101, 77)",
			"lookups at offset 101, contract_id nobody: the row is stored, and does not follow from the facts"},
		{"INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter) SELECT contract_id || '?', synchronizer_ref, template_ref, 104, 9, 0 FROM indexer.active_contracts LIMIT 1",
			"active_contracts at offset 104, contract_id "},
		{"INSERT INTO indexer.lifetimes (deactivated_offset, activated_offset, reassignment_counter, activated_node_id, synchronizer_ref, template_ref, contract_id) SELECT deactivated_offset, 100, 0, 9, synchronizer_ref, template_ref, contract_id FROM indexer.lifetimes LIMIT 1",
			"lifetimes at offset "},
	} {
		i.Exec(c.statement)
		list := texts(i.differences(nil))
		require.Len(t, list, 1, c.statement)
		require.Contains(t, list[0], c.want)
		require.Empty(t, i.repaired(r, nil), c.statement)
	}
	for table, rows := range i.Dump(everyTable...) {
		require.Equal(t, before[table], rows, table)
	}
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

// What nothing but the ledger can tell is found, and left alone: it is for those who read it again.
func TestWhatOnlyTheLedgerCanTell(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	i := smallGround(t, false)
	r := i.repairer()
	i.Exec("DELETE FROM indexer.updates WHERE ledger_offset = 5")
	require.Equal(t, []string{"updates at offset 5: the row is not stored"}, texts(i.differences(nil)))
	require.Len(t, i.repaired(r, nil), 1)
	require.Equal(t, "2", i.Row("SELECT count(*) FROM indexer.created WHERE ledger_offset = 5"))
	i.Exec("INSERT INTO indexer.updates (ledger_offset, kind) VALUES (5, 'transaction')")
	i.Exec("UPDATE indexer.reassignments SET source_ref = 77 WHERE ledger_offset = 6")
	i.Exec("UPDATE indexer.topology_events SET synchronizer_ref = 78 WHERE ledger_offset = 7")
	i.Exec("UPDATE indexer.archived SET template_ref = 79")
	want := []string{
		"synchronizers at offset 6, synchronizer_ref 77: the row is not stored", "synchronizers at offset 7, synchronizer_ref 78: the row is not stored",
		"templates at offset 1, template_ref 79: the row is not stored",
	}
	require.Equal(t, want, texts(i.differences(nil)))
	require.Equal(t, want, texts(i.repaired(r, nil)))
}

// A writer whose batch waits for a repair, or that remembers what is no longer so, loses nothing and doubles nothing.
func TestRepairBesideAWriter(t *testing.T) {
	t.Parallel()
	i := smallGround(t, false)
	l, r := i.leadUpdates(i.store), i.repairer()
	i.Exec("TRUNCATE indexer.active_contracts, indexer.lifetimes")
	entered, release := make(chan struct{}), make(chan struct{})
	written := make(chan error, 1)
	go func() {
		written <- r.RepairDerived(context.WithoutCancel(t.Context()), func(what string) {
			if what == "lookups" {
				close(entered)
				<-release
			}
		})
	}()
	<-entered
	appended := make(chan error, 1)
	go func() {
		appended <- l.Append(context.WithoutCancel(t.Context()), storetest.Scope, storetest.EveryKind(8))
	}()
	i.WaitFor(storetest.Waiting, 1)
	require.Equal(t, "8", i.Watermark(), "the batch waits")
	close(release)
	require.NoError(t, <-written)
	require.NoError(t, <-appended)
	require.Equal(t, "12", i.Watermark())
	require.Empty(t, i.differences(nil))

	// The watermark moves under the writer: its batch fails, and it reads on from where that is now.
	i.Exec("UPDATE indexer.checkpoints SET ledger_offset = 6")
	require.Error(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(12)))
	require.Empty(t, i.repaired(r, nil))
	l.Close()
	l = i.leadUpdates(i.store)
	at, _, err := l.Watermark(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 6, at)
	require.NoError(t, l.MoveWatermark(t.Context(), storetest.Scope, 6, 12))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(12)))
	require.Empty(t, i.differences(nil))
}

// What is compared is one state of the database, whatever is committed meanwhile.
func TestItselfReadsOneSnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	i := smallGround(t, false)
	l := i.leadUpdates(i.store)
	at := ledger.Offset(8)
	require.NoError(t, i.store.CompareDerived(t.Context(), func(string) {
		require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(at)))
		at += 4
	}, func(d Difference) { require.Fail(t, d.String()) }))
	require.Greater(t, at, ledger.Offset(24))
}

// Each column of what is compared is compared or is known not to be, so that a new one can't be forgotten.
func TestItselfCoversEveryReference(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	require.NoError(t, s.db.ReadOnly(t.Context(), func(tx pgx.Tx) error {
		columns, err := queries.ReferenceColumns(t.Context(), tx, referencesOf(slices.DeleteFunc(slices.Collect(maps.Keys(tables.References)), func(name string) bool { return name == "domain_ref" })))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(len(columns)), d.Row(`SELECT count(*) FROM information_schema.columns c JOIN pg_class p ON p.oid = ('indexer.' || c.table_name)::regclass
			WHERE table_schema = 'indexer' AND column_name LIKE '%\_ref' AND column_name <> 'domain_ref' AND relkind IN ('r', 'p') AND NOT relispartition AND table_name !~ '^(templates|synchronizers|party_lists)'
			`))
		return nil
	}))
}
