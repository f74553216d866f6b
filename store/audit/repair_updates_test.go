package audit

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

// repaired is a database that holds a page with rows in every fact table, and who repairs it.
type repaired struct {
	*testDB
	leader   *updatesWriter
	repairer *Repairer
	page     ledger.Page
	whole    []string
}

func newRepaired(t *testing.T, page ledger.Page) *repaired {
	t.Helper()
	d := newDatabase(t)
	leader := d.started()
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	r := &repaired{testDB: d, leader: leader, repairer: d.repairs(leader.store), page: page}
	r.whole = r.everything()
	return r
}

// everything that a page writes, as text.
func (r *repaired) everything() (list []string) {
	r.T.Helper()
	for _, relation := range slices.Concat(storetest.FactTables, []string{"active_contracts", "lifetimes", "coverage", "templates", "synchronizers", "template_interfaces", "party_lists"}) {
		list = append(list, r.Rows("SELECT '"+relation+"', left(x::text, 60), md5(x::text) FROM indexer."+relation+" x")...)
	}
	return list
}

func (r *repaired) different(page ledger.Page) (list []Difference) {
	r.T.Helper()
	require.NoError(r.T, r.leader.store.Compare(r.T.Context(), page, storetest.Collect(&list)))
	return list
}

// repair runs statements, each of which has to make a difference, repairs a page, and wants everything as it was.
func (r *repaired) repair(page ledger.Page, statements ...string) {
	r.T.Helper()
	for _, statement := range statements {
		r.Exec(statement)
	}
	require.NotEmpty(r.T, r.different(page), statements)
	require.NoError(r.T, r.repairer.RepairUpdates(r.T.Context(), storetest.Scope, page), statements)
	require.Empty(r.T, r.different(r.page), statements)
	require.Empty(r.T, unlikeTexts(r.whole, r.everything()), statements)
}

// repairNames is repair for statements that alter dictionaries: what the facts show is as it was, with other numbers.
func (r *repaired) repairNames(page ledger.Page, statements ...string) {
	r.T.Helper()
	before := r.shown()
	for _, statement := range statements {
		r.Exec(statement)
	}
	require.NotEmpty(r.T, r.different(page), statements)
	require.NoError(r.T, r.repairer.RepairUpdates(r.T.Context(), storetest.Scope, page), statements)
	require.Empty(r.T, r.different(page), statements)
	require.Equal(r.T, before, r.shown(), statements)
}

// shown is what readers see of the facts.
func (r *repaired) shown() (list []string) {
	r.T.Helper()
	for _, view := range []string{"updates", "created_events", "archived_events", "exercised_events", "reassignments"} {
		list = append(list, r.Rows("SELECT '"+view+"', (to_jsonb(x) - 'template_number')::text FROM ledger."+view+" x ORDER BY 2")...)
	}
	return list
}

// Everything of a page may be gone, with its coverage, and the partitions too.
func TestRepairOfRows(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	page := storetest.EveryKind(0)[0]
	page.To += 10
	r := newRepaired(t, page)
	var gone []string
	for _, relation := range storetest.FactTables {
		gone = append(gone, "DELETE FROM indexer."+relation)
	}
	r.repair(page, append(gone, "DELETE FROM indexer.coverage")...)

	// A leader remembers a partition that is gone.
	r.repair(page, "DROP TABLE indexer.created_p0, indexer.archived_p0")
	require.ErrorIs(t, r.leader.Append(t.Context(), storetest.Scope, storetest.OneCreation(14, 20)), store.ErrNotLeader)
}

func TestRepairKeepsCoverageOfOthers(t *testing.T) {
	t.Parallel()
	page := storetest.EveryKind(0)[0]
	r := newRepaired(t, page)
	require.NoError(t, r.leader.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 4, To: 20}}))
	r.Exec("DELETE FROM indexer.coverage")
	r.Exec("INSERT INTO indexer.coverage VALUES ('updates', 'other', 5, 7), ('updates', $1, 1, 2), ('updates', $1, 16, 20)", storetest.Scope.Hash())
	require.ErrorContains(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, ledger.Page{From: 4, To: 12}), "is stored in scope other")
	for _, part := range []ledger.Page{{From: 4, To: 5}, {From: 7, To: 12}} {
		require.NoError(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, part))
	}
	require.Equal(t, []string{"1 2", "4 5", "5 7", "7 12", "16 20"}, r.Coverage())
	require.NoError(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, ledger.Page{From: 12, To: 16}))
	require.Equal(t, []string{"1 2", "4 5", "5 7", "7 20"}, r.Coverage())
}

func TestRepairRefusesWhatIsNotClaimed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	leader := d.leadUpdates(d.store())
	r := d.repairs(leader.store)
	require.ErrorContains(t, r.RepairUpdates(t.Context(), storetest.Scope, ledger.Page{From: 1, To: 2}), "repair the coverage first")
	require.NoError(t, leader.Start(t.Context(), "participant::1", storetest.Scope, 10, true))
	require.NoError(t, leader.Append(t.Context(), storetest.Scope, storetest.OneCreation(10, 20)))
	require.ErrorContains(t, r.RepairUpdates(t.Context(), storetest.Scope, ledger.Page{From: 10, To: 21}), "after offset 10 up to 20 only")
	require.ErrorContains(t, r.RepairUpdates(t.Context(), storetest.Scope, ledger.Page{From: 9, To: 20}), "after offset 10 up to 20 only")
	require.ErrorContains(t, r.RepairUpdates(t.Context(), storetest.Scope, ledger.Page{From: 15, To: 20, Updates: storetest.OneCreation(10, 12)[0].Updates}), "offset 12 after offset 15")
	require.Equal(t, []string{"created 20 1", "updates 20 1"}, storetest.Sorted(d.Facts(0, 100)))
}

// swapped gives the first two rows of a dictionary one another's numbers.
func swapped(dictionary, ref string) string {
	return fmt.Sprintf("UPDATE indexer.%[1]s SET %[2]s = -%[2]s WHERE %[2]s <= 2; UPDATE indexer.%[1]s SET %[2]s = 3 + %[2]s WHERE %[2]s < 0", dictionary, ref)
}

// The facts refer to their names again, whichever way the dictionaries were altered.
func TestRepairOfDictionaries(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	l := sandbox.NewLedger(sandbox.Options{Seed: 41})
	l.Grow(120)
	r := newRepaired(t, simulated(t, l, sandbox.LedgerEffects, 0))
	for _, statement := range []string{
		swapped("templates", "template_ref"), swapped("synchronizers", "synchronizer_ref"),
		"DELETE FROM indexer.templates", "DELETE FROM indexer.synchronizers", "DELETE FROM indexer.templates WHERE template_ref = (SELECT min(template_ref) FROM indexer.created)",
		"UPDATE indexer.templates SET package_name = package_name || '?'",
		"UPDATE indexer.templates SET template_id = template_id || '?', entity_name = entity_name || '?' WHERE template_ref = (SELECT min(template_ref) FROM indexer.created)",
		"UPDATE indexer.templates SET representative_package_id = coalesce(representative_package_id, '') || '?'",
		"UPDATE indexer.synchronizers SET synchronizer_id = synchronizer_id || '?'",
		"UPDATE indexer.synchronizers SET synchronizer_ref = synchronizer_ref + 1000",
		"UPDATE indexer.party_lists SET party_list_ref = 5000 - party_list_ref", "UPDATE indexer.party_lists SET party_list_ref = party_list_ref + 1000",
		"UPDATE indexer.created SET signatories_ref = 77",
		"DELETE FROM indexer.party_lists", "DELETE FROM indexer.party_lists WHERE party_list_ref = (SELECT min(signatories_ref) FROM indexer.created)",
		"UPDATE indexer.party_lists SET parties = parties || '{mallory}'",
	} {
		r.repairNames(r.page, statement)
	}
	r.repairer.Close()
	r.repairer = r.repairs(r.leader.store)
	leader := r.leadPruning(r.leader.store) // who remembers numbers begins a new term
	r.repairNames(r.page, "DELETE FROM indexer.party_lists")
	require.ErrorIs(t, leader.Term().Write(t.Context(), func(context.Context, pgx.Tx) error { return nil }), store.ErrNotLeader)
	r.Exec("DELETE FROM indexer.template_interfaces")
	require.NotEmpty(t, r.different(r.page))
	require.NoError(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, r.page))
	require.Empty(t, r.different(r.page))
}

// Two names with one another's numbers are told by every fact that refers to them; a fact that alone refers to the wrong
// name is repaired alone.
func TestRepairTellsFactsFromDictionaries(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	one := storetest.OneCreation(0, 1)[0]
	two := storetest.OneCreation(1, 2)[0]
	two.Updates[0].Created[0].TemplateID, two.Updates[0].SynchronizerID = "pkg-9:Main:Other", new("sync::2")
	page := ledger.Page{To: 2, Updates: slices.Concat(one.Updates, two.Updates)}
	for _, names := range []string{swapped("templates", "template_ref"), swapped("synchronizers", "synchronizer_ref")} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			newRepaired(t, page).repairNames(page, names)
		})
	}
	wrong := func(relation, column string) string {
		return fmt.Sprintf("UPDATE indexer.%s SET %[2]s = 3 - %[2]s WHERE ledger_offset = 1", relation, column)
	}
	for name, statements := range map[string][]string{
		"a fact's template":      {wrong("created", "template_ref")},
		"a fact's synchronizer":  {wrong("created", "synchronizer_ref")},
		"an update's":            {wrong("updates", "synchronizer_ref")},
		"an update and its fact": {wrong("updates", "synchronizer_ref"), wrong("created", "synchronizer_ref")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRepaired(t, page).repair(one, statements...)
		})
	}
}

// What stands in the place of other events, as in a ledger that was restored and went on differently, says nothing of
// the dictionaries.
func TestRepairOfAnotherHistory(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	page := storetest.EveryKind(0)[0]
	r := newRepaired(t, page)
	dictionaries := r.Rows("SELECT x::text FROM indexer.templates x UNION ALL SELECT y::text FROM indexer.synchronizers y")
	other := storetest.OneCreation(0, 1)[0]
	other.To = 4
	other.Updates[0].ID, other.Updates[0].SynchronizerID = "another", new("sync::9")
	other.Updates[0].Created[0].TemplateID = "pkg-9:Main:Other"
	other.Updates[0].Created[0].ContractID = "another"
	require.NoError(t, r.repairer.RepairUpdates(t.Context(), storetest.Scope, other))
	require.Empty(t, r.different(other))
	require.Subset(t, r.Rows("SELECT x::text FROM indexer.templates x UNION ALL SELECT y::text FROM indexer.synchronizers y"), dictionaries)
}

// The leader continues beside a repair. Where the dictionaries change it begins a new term, and then writes what it
// should.
func TestRepairBesideALeader(t *testing.T) {
	t.Parallel()
	brief.Long(t, "compares and repairs again and again")
	page := storetest.EveryKind(0)[0]
	r := newRepaired(t, page)
	ctx := t.Context()
	r.Exec("DELETE FROM indexer.updates WHERE ledger_offset = 1")
	require.NoError(t, r.repairer.RepairUpdates(ctx, storetest.Scope, page))
	next := storetest.EveryKind(4)
	require.NoError(t, r.leader.Append(ctx, storetest.Scope, next), "it need not notice")
	require.Empty(t, r.different(next[0]))

	r.Exec("UPDATE indexer.synchronizers SET synchronizer_ref = -synchronizer_ref")
	r.Exec("UPDATE indexer.synchronizers SET synchronizer_ref = 3 + synchronizer_ref")
	require.NoError(t, r.repairer.RepairUpdates(ctx, storetest.Scope, page))
	require.NoError(t, r.leader.Err())
	require.ErrorIs(t, r.leader.Append(ctx, storetest.Scope, storetest.EveryKind(8)), store.ErrNotLeader)
	<-r.leader.Lost() // so that the process leads again
	require.ErrorIs(t, r.leader.Err(), store.ErrNotLeader)
	r.leader.Close()
	leader := r.leadUpdates(r.leader.store)
	require.NoError(t, r.repairer.RepairUpdates(ctx, storetest.Scope, next[0]))
	require.NoError(t, leader.Err(), "it has read what the numbers mean now")
	require.NoError(t, leader.Append(ctx, storetest.Scope, storetest.EveryKind(8)))
	require.Empty(t, r.different(ledger.Page{To: 12, Updates: slices.Concat(page.Updates, next[0].Updates, storetest.EveryKind(8)[0].Updates)}))

	// Both at once.
	done := make(chan error)
	go func() {
		for i := range ledger.Offset(20) {
			if err := leader.Append(ctx, storetest.Scope, storetest.OneCreation(12+i, 13+i)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 10 {
		r.Exec("DELETE FROM indexer.updates WHERE ledger_offset <= 4")
		require.NoError(t, r.repairer.RepairUpdates(ctx, storetest.Scope, page))
	}
	require.NoError(t, <-done)
	require.Empty(t, r.different(page))
	require.Equal(t, []string{"0 32"}, r.Coverage())
}
