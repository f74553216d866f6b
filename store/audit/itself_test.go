package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/internal/storetest"
)

// itself is a database that is compared with itself.
type itself struct {
	*testDB
	store *opened
	scope ledger.Scope
	from  ledger.Offset // where indexing begins
	pages []ledger.Page // what was appended, in pages of a few updates
}

// differences is everything that the database finds with itself.
func (i *itself) differences(end *ledger.Offset) (list []Difference) {
	i.T.Helper()
	require.NoError(i.T, i.store.CompareHeld(i.T.Context(), storetest.Collect(&list)))
	if len(list) > 0 {
		return list // what else is compared relies on it
	}
	_, err := i.store.CompareCoverage(i.T.Context(), end, storetest.Collect(&list))
	require.NoError(i.T, err)
	require.NoError(i.T, i.store.CompareDerived(i.T.Context(), nil, storetest.Collect(&list)))
	for _, d := range list {
		require.True(i.T, d.Derived, d)
	}
	return list
}

func (i *itself) repairer() *Repairer {
	i.T.Helper()
	r, ok, err := LeadRepair(i.T.Context(), i.store.Store)
	require.NoError(i.T, err)
	require.True(i.T, ok)
	i.T.Cleanup(r.Close)
	return r
}

// repaired repairs, and shows what is left.
func (i *itself) repaired(r *Repairer, end *ledger.Offset) []Difference {
	i.T.Helper()
	require.NoError(i.T, r.RepairCoverage(i.T.Context(), end))
	require.NoError(i.T, r.RepairDerived(i.T.Context(), nil))
	return i.differences(end)
}

// everyTable is compared with others of the database, or with the ledger.
var everyTable = append([]string{"coverage", "checkpoints", "floors", "scopes", "snapshots", "templates", "offset_checkpoints", "active_contracts",
	"lifetimes", "lookups", "template_interfaces"}, storetest.FactTables...)

// The ways to begin.
const (
	fromGenesis  = "genesis"
	fromSnapshot = "snapshot"
	fromMiddle   = "middle"
)

// newItself indexes a simulated ledger and what no participant has sent yet.
func newItself(t *testing.T, seed uint64, start string, shape ledger.Shape, batch int) *itself {
	t.Helper()
	i, client, l := newGround(t, seed, start, shape)
	l.Grow(80)
	i.pages = storetest.PagesOf(t, client, i.from, ledger.Offset(l.End()), batch)
	i.pages = append(i.pages, storetest.EveryKind(ledger.Offset(l.End()))...)
	leader := i.leadUpdates(i.store)
	defer leader.Close()
	for _, page := range i.pages {
		require.NoError(t, leader.Append(t.Context(), i.scope, []ledger.Page{page}))
	}
	return i
}

// newGround is a database in which indexing can begin, and the simulated ledger.
func newGround(t *testing.T, seed uint64, start string, shape ledger.Shape) (*itself, *participant.Client, *sandbox.Ledger) {
	t.Helper()
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	i := &itself{testDB: newDatabase(t), scope: storetest.WholeScope}
	i.store = i.testDB.store()
	i.scope.Shape = shape
	l.Grow(80)
	if start != fromGenesis {
		for !l.InFlight(l.End()) {
			l.Grow(1)
		}
		i.from = ledger.Offset(l.End())
	}
	client := storetest.Reader(t, l, i.scope)
	leader := i.leadUpdates(i.store)
	defer leader.Close()
	if start != fromSnapshot {
		require.NoError(t, leader.Start(t.Context(), l.ParticipantID(), i.scope, i.from, i.from == 0))
		return i, client, l
	}
	progress, err := leader.BeginSnapshot(t.Context(), l.ParticipantID(), i.scope, i.from)
	require.NoError(t, err)
	for !progress.Finished {
		page, err := client.ReadSnapshot(t.Context(), i.from, progress.Next)
		require.NoError(t, err)
		progress, err = leader.WriteSnapshotPage(t.Context(), progress, nil, page)
		require.NoError(t, err)
		progress.Finished = page.Last
	}
	return i, client, l
}

// What was indexed agrees with itself, however it began and was cut.
func TestADatabaseAgreesWithItself(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for n, c := range []struct {
		start string
		shape ledger.Shape
		batch int
	}{
		{fromGenesis, ledger.ShapeLedgerEffects, 1000}, {fromSnapshot, ledger.ShapeLedgerEffects, 3}, {fromMiddle, ledger.ShapeACSDelta, 1},
	} {
		t.Run(fmt.Sprint(c.start, " ", c.shape, " ", c.batch), func(t *testing.T) {
			t.Parallel()
			if n != 1 {
				brief.Long(t, "compares another ledger with itself")
			}
			brief.Sample(t)
			i := newItself(t, uint64(100+n), c.start, c.shape, c.batch)
			require.Empty(t, i.differences(nil))
			end := i.pages[len(i.pages)-1].To
			require.Empty(t, i.differences(&end))
			require.NotEqual(t, "0", i.Row("SELECT count(*) FROM indexer.lifetimes"))
			require.NotEqual(t, "0", i.Row("SELECT count(*) FROM indexer.reassignments"))
			if c.start == fromSnapshot {
				require.NotEqual(t, "0", i.Row("SELECT count(*) FROM indexer.reassignments WHERE created_offset IS NOT NULL"))
			}
			before := i.Dump(everyTable...)
			require.Empty(t, i.repaired(i.repairer(), &end))
			require.Equal(t, before, i.Dump(everyTable...), "what is right is not touched")

			i.Exec(`UPDATE indexer.lifetimes l SET stakeholders_ref = (SELECT p.party_list_ref FROM indexer.party_lists p WHERE p.party_list_ref <> l.stakeholders_ref LIMIT 1)
				WHERE l.deactivated_offset = (SELECT min(x.deactivated_offset) FROM indexer.lifetimes x)`)
			list := i.differences(nil)
			require.NotEmpty(t, list)
			for _, d := range list {
				require.NotContains(t, d.String(), "dictionary", "lists of parties are named")
			}
		})
	}
}

// Nothing is compared where nothing was indexed, nor while a snapshot is being read.
func TestNothingIndexedAgreesWithItself(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	i := &itself{testDB: newDatabase(t), scope: storetest.Scope}
	i.store = i.testDB.store()
	require.Empty(t, i.differences(nil))
	l := i.leadUpdates(i.store)
	progress, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
	require.NoError(t, err)
	require.Empty(t, i.differences(nil))
	_, err = l.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", "sync::1", 0)}})
	require.NoError(t, err)
	require.Empty(t, i.differences(nil))
	require.Empty(t, i.repaired(i.repairer(), nil))
	require.Equal(t, "1", i.Row("SELECT count(*) FROM indexer.created"))
}

// Whatever happens to contracts, in whatever batches: the projections follow from the facts, and look-ups are legal
// before and after they are asked for.
func TestAnyHistoryAgreesWithItself(t *testing.T) {
	t.Parallel()
	brief.Long(t, "tries many random histories")
	d := newDatabase(t)
	l := d.started()
	i := &itself{testDB: d, store: l.store, scope: storetest.Scope}
	r := i.repairer()
	rapid.Check(t, func(rt *rapid.T) {
		d.ForgetUpdates()
		var h storetest.History
		h.Draw(rt)
		for _, batch := range h.Batches(rt) {
			require.NoError(rt, l.Append(t.Context(), storetest.Scope, batch))
			if rapid.IntRange(0, 3).Draw(rt, "look up") == 0 {
				lookUpSome(rt, t, l)
			}
		}
		require.Empty(rt, i.differences(nil))
		before := i.Dump(everyTable...)
		d.Exec("TRUNCATE indexer.active_contracts, indexer.lifetimes")
		require.Empty(rt, i.repaired(r, nil))
		require.Equal(rt, before, i.Dump(everyTable...))
	})
}

// lookUpSome answers some of the look-ups that are wanted.
func lookUpSome(rt *rapid.T, t *testing.T, l *updatesWriter) {
	wanted, err := l.WantedLookups(t.Context(), 2)
	require.NoError(rt, err)
	outcomes := make([]ledger.Lookup, len(wanted))
	for i, id := range wanted {
		outcomes[i] = ledger.Lookup{ContractID: id, At: time.Now(), Status: ledger.LookupNotFound}
		if rapid.Bool().Draw(rt, "found") {
			outcomes[i].Status, outcomes[i].Contract = ledger.LookupFound, &ledger.Contract{
				ContractID: id, TemplateID: storetest.Template, PackageName: "asset", Argument: ledger.JSON(`"\u0000"`), CreatedAt: storetest.Time("2025-01-01T00:00:00Z"),
			}
		}
	}
	require.NoError(rt, l.SaveLookups(t.Context(), outcomes))
}
