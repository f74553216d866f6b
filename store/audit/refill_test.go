package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// changeScope puts a scope in force, in a term of its own.
func (d *testDB) changeScope(s *opened, scope ledger.Scope) {
	d.T.Helper()
	l := d.leadUpdates(s)
	defer l.UpdatesWriter.Close()
	changed, err := l.ChangeScope(d.T.Context(), scope)
	require.NoError(d.T, err)
	require.True(d.T, changed)
}

// refill reads in an earlier scope again what is stored in it, up to the end.
func (d *testDB) refill(s *opened, read func(r *Refiller, scope ledger.Scope) error) {
	d.T.Helper()
	leader := d.leadBackfill(s)
	defer leader.Close()
	earlier, err := s.EarlierScope(d.T.Context())
	require.NoError(d.T, err)
	require.Len(d.T, earlier, 1)
	require.NoError(d.T, read(NewRefiller(s.Store, leader), earlier[0].Scope))
}

// Contracts that left the scope and are back are not asked for any more, and readers are told where they ended
// meanwhile.
func TestWhatIsBackInTheScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s, ctx := d.store(), t.Context()
	alice := ledger.Scope{Parties: []string{"alice"}, Shape: ledger.ShapeLedgerEffects}
	both := alice
	both.Parties = []string{"alice", "bob"}
	write := func(scope ledger.Scope, page ledger.Page) {
		t.Helper()
		l := d.leadUpdates(s)
		defer l.UpdatesWriter.Close()
		if page.From == 0 {
			require.NoError(t, l.Start(ctx, "participant::1", scope, 0, true))
		}
		require.NoError(t, l.Append(ctx, scope, []ledger.Page{page}))
	}
	created, used, ended := storetest.NewUpdate(30, "sync::1"), storetest.NewUpdate(80, "sync::1"), storetest.NewUpdate(110, "sync::1")
	for node, id := range []string{"ends", "stays"} {
		c := storetest.Creation(int32(node), id)
		c.Signatories = []string{"bob"}
		created.Created = append(created.Created, c)
	}
	used.Exercised = []ledger.ExercisedEvent{storetest.Exercise(0, "ends", false, storetest.Ptr(true))}
	ended.Exercised = []ledger.ExercisedEvent{storetest.Exercise(0, "ends", true, storetest.Ptr(true))}

	write(both, ledger.Page{From: 0, To: 50, Updates: []ledger.Update{created}})
	d.changeScope(s, alice)
	rewrites := func() []string {
		return d.Rows("SELECT from_exclusive, to_inclusive, reason FROM ledger.rewrites ORDER BY rewrite")
	}
	require.Equal(t, []string{"49 50 scope changed"}, rewrites())
	write(alice, ledger.Page{From: 50, To: 100})
	d.changeScope(s, both)
	write(both, ledger.Page{From: 100, To: 120, Updates: []ledger.Update{ended}})
	require.Equal(t, []string{"ends 110"}, d.Rows("SELECT contract_id, ledger_offset FROM indexer.lookups"))

	d.refill(s, func(r *Refiller, scope ledger.Scope) error {
		return r.Refill(ctx, scope, ledger.Page{From: 50, To: 100, Updates: []ledger.Update{used}})
	})
	require.Empty(t, d.Rows("SELECT contract_id, ledger_offset FROM indexer.lookups"))
	require.Equal(t, []string{"ends 110"}, d.Rows("SELECT contract_id, deactivated_offset FROM indexer.lifetimes"))
	require.Equal(t, []string{"stays"}, d.Rows("SELECT contract_id FROM indexer.active_contracts"))
	require.Equal(t, []string{"49 50 scope changed", "99 100 scope changed", "49 50 scope changed", "50 100 filled in"}, rewrites())
	var list []findings.Difference
	require.NoError(t, s.CompareDerived(ctx, func(string) {}, storetest.Collect(&list)))
	require.Empty(t, list)
}

// What was sealed in a scope that lacks something of the one in force is not verified any more: it is read again.
func TestWhatIsToBeReadAgainIsNotSealed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s, ctx := d.store(), t.Context()
	scope := ledger.Scope{Parties: []string{"alice"}, Shape: ledger.ShapeACSDelta}
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(ctx, "participant::1", scope, 0, true))
	page := storetest.OneCreation(0, 10)
	require.NoError(t, l.Append(ctx, scope, page))
	_, err := l.SealUpdates(ctx, page[0])
	require.NoError(t, err)
	require.Equal(t, "10", d.verifiedOffset())
	l.UpdatesWriter.Close()
	scope.Parties = []string{"alice", "bob"}
	d.changeScope(s, scope)
	require.Empty(t, d.windows())
	require.Equal(t, "0", d.verifiedOffset())
	d.refill(s, func(r *Refiller, scope ledger.Scope) error { return r.Refill(ctx, scope, page[0]) })
	_, err = d.leadUpdates(s).SealUpdates(ctx, page[0])
	require.NoError(t, err)
	require.Equal(t, "10", d.verifiedOffset())
	require.Empty(t, d.damaged(s))
}

// An entry of an unknown kind is stored once after the snapshot was read again, in which it may have another place.
func TestUnknownEntriesOfASnapshotThatIsReadAgain(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s, ctx := d.store(), t.Context()
	scope := ledger.Scope{Parties: []string{"alice"}, Shape: ledger.ShapeACSDelta}
	contract := storetest.ActiveEntry(1, 0, "contract", "sync::1", 0)
	unknown := ledger.ContractEntry{Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`"\u0000"`)}}
	l := d.leadUpdates(s)
	progress, err := l.BeginSnapshot(ctx, "participant::1", scope, 10)
	require.NoError(t, err)
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true, Entries: []ledger.ContractEntry{contract, {Empty: true}, unknown}})
	require.NoError(t, err)
	l.UpdatesWriter.Close()
	scope.Parties = []string{"alice", "bob"}
	d.changeScope(s, scope)
	d.refill(s, func(r *Refiller, scope ledger.Scope) error {
		return r.RefillSnapshot(ctx, scope, 10, 0, ledger.SnapshotPage{Last: true, Entries: []ledger.ContractEntry{unknown, contract}})
	})
	require.Equal(t, []string{"0"}, d.Rows("SELECT ordinal FROM indexer.carried_unknown_elements"))
}
