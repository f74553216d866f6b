package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/internal/storetest"
)

// carried is a database that began with a snapshot, and the snapshot's pages.
type carried struct {
	*testDB
	store    *opened
	repairer *Repairer
	at       ledger.Offset
	pages    [][]ledger.ContractEntry
}

// newCarried has a simulated snapshot and entries of every kind behind it, with rows in every table. Creation events
// are shared within a page and between pages.
func newCarried(t *testing.T) *carried {
	t.Helper()
	end, entries := inFlight(t, grown(33))
	strange := storetest.ActiveEntry(end+1, 0, "both", "sync::1", 0)
	strange.Active.Created.Argument, strange.Active.Created.Extra = ledger.JSON(`"\u0000"`), ledger.JSON(`{"a": 1}`)
	strange.Active.Created.CreatedAt = storetest.Time("2025-01-02T03:04:05.123456789Z")
	strange.Active.Created.InterfaceViews = []ledger.InterfaceView{
		{InterfaceID: "pkg:I:Holding", Value: ledger.JSON(`["\u0000"]`)}, {InterfaceID: "pkg:I:Holding", Value: ledger.JSON(`{}`)},
	}
	strange.Active.Extra, strange.Extra = ledger.JSON(`{"b": "\u0000"}`), ledger.JSON(`{"c": 2}`)
	left := storetest.UnassignedEntry(end+9, end+3, "left", "sync::1", "sync::2")
	left.Unassigned.Unassigned.AssignmentExclusivity = storetest.Time("2025-01-02T03:04:05.123456789Z")
	left.Unassigned.Unassigned.Extra, left.Extra = ledger.JSON(`["\u0000"]`), ledger.JSON(`"\ud800"`)
	came := storetest.AssignedEntry(end+2, "both", "sync::1", "sync::2") // shares the creation event of an active entry of another page
	came.Assigned.Assigned.Extra, came.Extra = ledger.JSON(`"\u0000"`), ledger.JSON(`"\u0000"`)
	unknown := ledger.ContractEntry{
		Unknown: &ledger.UnknownElement{Kind: "JsNovelty", Raw: ledger.JSON(`{"JsNovelty": "\u0000"}`)}, WorkflowID: new("w"), Extra: ledger.JSON(`"\u0000"`),
	}
	c := &carried{testDB: newDatabase(t), at: end + 10}
	c.pages = [][]ledger.ContractEntry{
		append(slices.Clip(entries), strange, ledger.ContractEntry{Empty: true}, unknown, storetest.ActiveEntry(end+2, 0, "both", "sync::2", 1)),
		{
			left, came, storetest.AssignedEntry(end+4, "came", "sync::1", "sync::2"), unknown,
			// It shares the creation event of an active entry of its page.
			storetest.ActiveEntry(end+6, 0, "here", "sync::2", 1), storetest.AssignedEntry(end+6, "here", "sync::1", "sync::2"),
		},
	}
	leader := c.leadUpdates(c.open(c.URL, nil))
	progress, err := leader.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, c.at)
	require.NoError(t, err)
	for i, page := range c.pages {
		progress, err = leader.WriteSnapshotPage(t.Context(), progress, nil,
			ledger.SnapshotPage{Entries: page, Next: storetest.Token(fmt.Sprint(i)), Last: i == len(c.pages)-1})
		require.NoError(t, err)
	}
	c.store = leader.store
	c.repairer = c.repairs(c.store)
	return c
}

func grown(seed uint64) *sandbox.Ledger {
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(100)
	return l
}

// differences compares after statements that are taken back.
func (c *carried) differences(statements ...string) (list []Difference) {
	c.T.Helper()
	tx := c.spoil(statements...)
	var keys []EntryKey
	before := int64(0)
	for _, page := range c.pages {
		more, err := c.store.compareCarried(c.T.Context(), tx, c.at, before, page, storetest.Collect(&list))
		require.NoError(c.T, err)
		before += int64(len(page))
		keys = append(keys, more...)
	}
	c.besides(keys, &list, func(each EachStored) error {
		return c.store.carriedAt(c.T.Context(), tx, c.at, each)
	})
	require.NoError(c.T, tx.Rollback(c.T.Context()))
	return list
}

// besides adds what is stored of a snapshot besides keys, which are of some that is stored.
func (d *testDB) besides(keys []EntryKey, list *[]Difference, stored func(each EachStored) error) {
	d.T.Helper()
	told := map[EntryKey]bool{}
	require.NoError(d.T, stored(func(key EntryKey, extra Difference) {
		if !slices.Contains(keys, key) {
			*list = append(*list, extra)
		}
		told[key] = true
	}))
	for _, key := range keys {
		require.True(d.T, told[key], key)
	}
}

// repair compares and repairs page by page, and then drops what no entry has.
func (c *carried) repair() {
	c.T.Helper()
	var seen []EntryKey
	before := int64(0)
	for _, page := range c.pages {
		var list []Difference
		_, err := c.store.CompareCarried(c.T.Context(), c.at, before, page, storetest.Collect(&list))
		require.NoError(c.T, err)
		if len(list) > 0 {
			require.NoError(c.T, c.repairer.RepairCarried(c.T.Context(), c.at, before, page))
		}
		keys, err := c.store.CompareCarried(c.T.Context(), c.at, before, page, func(d Difference) { require.Fail(c.T, "after the repair", d.String()) })
		require.NoError(c.T, err)
		seen = append(seen, keys...)
		before += int64(len(page))
	}
	var extra []EntryKey
	require.NoError(c.T, c.store.CarriedAt(c.T.Context(), c.at, func(key EntryKey, _ Difference) {
		if !slices.Contains(seen, key) {
			extra = append(extra, key)
		}
	}))
	if len(extra) > 0 {
		require.NoError(c.T, c.repairer.DropCarried(c.T.Context(), c.at, extra))
	}
}

// everything that a snapshot writes, as text.
func (c *carried) everything() (list []string) {
	c.T.Helper()
	for _, relation := range snapshotTables {
		list = append(list, c.Rows("SELECT '"+relation+"', left(x::text, 60), md5(x::text) FROM indexer."+relation+" x ORDER BY x::text COLLATE \"C\"")...)
	}
	return list
}

// unlikeTexts are the texts that are on one side only.
func unlikeTexts(before, after []string) (list []string) {
	for _, text := range before {
		if !slices.Contains(after, text) {
			list = append(list, "- "+text)
		}
	}
	for _, text := range after {
		if !slices.Contains(before, text) {
			list = append(list, "+ "+text)
		}
	}
	if len(before) != len(after) {
		list = append(list, fmt.Sprintf("%d rows, and %d", len(before), len(after)))
	}
	return list
}

var snapshotTables = []string{
	"created", "interface_views", "reassignments", "unknown_elements", "active_contracts",
	"templates", "synchronizers", "template_interfaces",
}

// spoilt is another value for a column, which no row has where it is a key.
func spoilt(relation, column, typeName string) string {
	if typeName[:3] == "int" && slices.Contains(factKey(relation), column) {
		return "coalesce(x." + column + ", 0) + 100000" // within the partition
	}
	return fmt.Sprintf(spoils[typeName], "x."+column)
}

// Whichever column of whichever row of a snapshot is altered: it is named, and repaired.
func TestCarriedRowsAreComparedAndRepaired(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	c := newCarried(t)
	require.Empty(t, c.differences("SELECT 1"))
	whole := c.everything()
	alteration := func(relation, column, order string) string {
		value := spoilt(relation, column, c.Columns(relation)[column])
		if column == "ledger_offset" {
			value = "0" // of what is up to the snapshot's offset
		}
		return fmt.Sprintf("UPDATE indexer.%[1]s x SET %[2]s = %[3]s WHERE ctid = (SELECT ctid FROM indexer.%[1]s x ORDER BY %[2]s %[4]s, 1 LIMIT 1)",
			relation, column, value, order)
	}
	columns := 0
	// One column of each table at a time: of a row that says something in it, and of another.
	for round := 0; ; round++ {
		var statements []string
		for _, relation := range snapshotTables[:4] {
			list := slices.Sorted(maps.Keys(c.Columns(relation)))
			if round >= len(list) {
				continue
			}
			columns++
			column := list[round]
			isKey := slices.Contains(factKey(relation), column)
			for _, order := range []string{"IS NULL", "IS NOT NULL"} {
				list := c.differences(alteration(relation, column, order))
				require.True(t, slices.ContainsFunc(list, func(d Difference) bool {
					return d.Relation == relation && (d.Kind == Altered && d.Column == column || isKey && d.Kind == Missing)
				}), "%s.%s: %s", relation, column, list)
			}
			statements = append(statements, alteration(relation, column, "IS NULL"))
		}
		if len(statements) == 0 {
			break
		}
		for _, statement := range statements {
			c.Exec(statement)
		}
		c.repair()
		require.Empty(t, unlikeTexts(whole, c.everything()), statements)
	}
	require.Greater(t, columns, 60)
}

// Rows of a snapshot that are gone, that the snapshot has not, and that belong to no event.
func TestCarriedRowsMissingAndExtra(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	c := newCarried(t)
	whole := c.everything()
	for _, s := range []struct {
		statement string
		want      string // one of the differences
	}{
		{"DELETE FROM indexer.created", "missing created"},
		{"DELETE FROM indexer.created WHERE contract_id = 'left'", "missing created"},
		{"DELETE FROM indexer.interface_views", "missing interface_views"},
		{"DELETE FROM indexer.reassignments", "missing reassignments"},
		{"DELETE FROM indexer.unknown_elements", "missing unknown_elements"},
		{"UPDATE indexer.unknown_elements SET exact = NULL", "altered unknown_elements"},
		{"UPDATE indexer.created SET exact = exact - 'entry_extra'", "altered created"},
		{"INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref) SELECT ledger_offset, 9999, origin, contract_id, template_ref FROM indexer.created LIMIT 1", "extra created"},
		{"INSERT INTO indexer.interface_views (ledger_offset, node_id, ordinal, contract_id, interface_id) VALUES (1, 9999, 0, 'x', 'x')", "extra interface_views"},
		{"INSERT INTO indexer.interface_views (ledger_offset, node_id, ordinal, contract_id, interface_id) SELECT ledger_offset, node_id, ordinal + 100, contract_id, interface_id FROM indexer.interface_views", "extra interface_views"},
		{"INSERT INTO indexer.unknown_elements (ledger_offset, ordinal, kind, raw) SELECT ledger_offset, 9999, kind, raw FROM indexer.unknown_elements LIMIT 1", "extra unknown_elements"},
		{"INSERT INTO indexer.reassignments SELECT (r).* FROM (SELECT jsonb_populate_record(x, '{\"node_id\": 9999}') AS r FROM indexer.reassignments x LIMIT 1) y", "extra reassignments"},
		{"UPDATE indexer.created SET reassignment_counter = 1 WHERE contract_id = 'left'", "altered created"},
		{"UPDATE indexer.created SET reassignment_counter = NULL WHERE contract_id = 'both'", "altered created"},
		{"DELETE FROM indexer.template_interfaces", "missing template_interfaces"},
		{"DELETE FROM indexer.templates", "altered created"},
		{"UPDATE indexer.templates SET package_name = template_ref", "altered created"},
		{"UPDATE indexer.synchronizers SET synchronizer_id = synchronizer_ref", "altered created"},
		{"DELETE FROM indexer.synchronizers", "altered reassignments"},
	} {
		require.Contains(t, kinds(c.differences(s.statement)), s.want, s.statement)
		c.Exec(s.statement)
		c.repair()
		require.Empty(t, c.differences("SELECT 1"), s.statement)
		if strings.Contains(s.statement, "indexer.templates") || strings.Contains(s.statement, "indexer.synchronizers") {
			whole = c.everything() // names have other numbers, and those that nothing refers to stay
		}
		require.Empty(t, unlikeTexts(whole, c.everything()), s.statement)
	}
}

// What was active when indexing began is compared with the snapshot's rows.
func TestCompareActiveWithCarriedRows(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	c := newCarried(t)
	a := &activity{testDB: c.testDB, store: c.store, at: c.at, entries: slices.Concat(c.pages...)}
	require.Empty(t, a.compareActive("SELECT 1"))
	for statement, want := range map[string][]string{
		"UPDATE indexer.created SET payload = '1' WHERE contract_id = 'left'":                  {"altered created"},
		"UPDATE indexer.interface_views SET view_value = '1' WHERE contract_id = 'both'":       {"altered interface_views", "altered interface_views"},
		"UPDATE indexer.reassignments SET submitter = 'other' WHERE contract_id = 'left'":      {"altered reassignments"},
		"DELETE FROM indexer.created WHERE contract_id = 'came'":                               {"missing created"},
		"UPDATE indexer.created SET exact = exact - 'payload'":                                 {"altered created"},
		"UPDATE indexer.reassignments SET exact = NULL":                                        {"altered reassignments"},
		"UPDATE indexer.interface_views SET exact = jsonb_set(exact, '{view_value}', '\"1\"')": {"altered interface_views"},
		"UPDATE indexer.created SET extra = '1', entry_extra = '1', workflow_id = 'other'":     nil, // what they are compared with says so
	} {
		require.Equal(t, want, kindsOrNil(a.compareActive(statement)), statement)
	}
}

func TestFinishedSnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	none, err := s.FinishedSnapshot(t.Context())
	require.NoError(t, err)
	require.Nil(t, none)
	leader := d.leadUpdates(s)
	progress, err := leader.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 100)
	require.NoError(t, err)
	none, err = s.FinishedSnapshot(t.Context())
	require.NoError(t, err)
	require.Nil(t, none, "unfinished")
	_, err = leader.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{
		Entries: []ledger.ContractEntry{storetest.ActiveEntry(10, 0, "a", "sync::1", 0)}, Next: storetest.Token("t"), Last: true,
	})
	require.NoError(t, err)
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, storetest.OneCreation(100, 110)))
	finished, err := s.FinishedSnapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, &ledger.SnapshotProgress{At: 100, Next: storetest.Token("t"), Entries: 1, Finished: true}, finished)
}

// Pieces are cut so that a statement can take them.
func TestEntryPieces(t *testing.T) {
	t.Parallel()
	entry := func(bytes int) ledger.ContractEntry {
		e := storetest.ActiveEntry(1, 0, "a", "sync::1", 0)
		e.Active.Created.Argument = ledger.JSON(strings.Repeat("1", bytes))
		return e
	}
	var lengths []int
	for _, piece := range entryPieces([]ledger.ContractEntry{entry(1), entry(pieceBytes), entry(2 * pieceBytes), entry(1), entry(1), {Empty: true}}) {
		lengths = append(lengths, len(piece))
	}
	require.Equal(t, []int{2, 1, 3}, lengths)
	require.Len(t, entryPieces(nil), 1)
}
