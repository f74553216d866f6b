package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// wider is a scope of the same form as storetest.Scope.
func wider() ledger.Scope {
	scope := storetest.Scope
	scope.Parties = []string{"alice", "bob"}
	return scope
}

// resyncPages are what a participant shows at offset 30 of a ledger of which contract-10, contract-20 and contract-30
// are stored: two contracts that are not, and all but one that are.
func resyncPages() []ledger.SnapshotPage {
	viewed := storetest.ActiveEntry(4, 1, "viewed", "sync::1", 0)
	viewed.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: storetest.HoldingV1, Value: ledger.JSON(`{}`)}}
	return []ledger.SnapshotPage{
		{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(10, 0, "contract-10", "sync::1", 0), viewed}},
		{Next: storetest.Token("t2"), Entries: []ledger.ContractEntry{storetest.UnassignedEntry(9, 8, "leaving", "sync::1", "sync::2")}},
		{Next: storetest.Token("t3"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "moved", "sync::2", 3)}},
		{Last: true, Entries: []ledger.ContractEntry{storetest.ActiveEntry(30, 0, "contract-30", "sync::1", 0)}},
	}
}

// three is a database that holds three contracts, each created by an update.
func (d *testDB) three() *UpdatesWriter {
	d.T.Helper()
	up := d.started()
	for at := ledger.Offset(0); at < 30; at += 10 {
		require.NoError(d.T, up.Append(d.T.Context(), storetest.Scope, storetest.OneCreation(at, at+10)))
	}
	return up
}

var (
	beforeResync = []string{"contract-10 sync::1 10", "contract-20 sync::1 20"}
	afterResync  = []string{"contract-10 sync::1 10", "contract-30 sync::1 30", "moved sync::2 30", "viewed sync::1 30"}
)

// Whoever is killed after any page goes on behind it, and readers see nothing of a resync before it is whole.
func TestAResyncIsKilledAtEveryPage(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.three()
	before := d.shown()
	progress := ledger.SnapshotProgress{At: 30}
	for _, page := range resyncPages() {
		require.Equal(t, before, d.shown())
		d.EndLock(LeaseUpdates)
		<-up.Lost()
		up = d.leadUpdates(d.store())
		resync := up.Resync(false)
		begun, err := resync.BeginSnapshot(ctx, "", wider(), 30)
		require.NoError(t, err)
		require.Equal(t, progress, begun)
		progress, err = resync.WriteSnapshotPage(ctx, begun, nil, page)
		require.NoError(t, err)
	}
	require.Equal(t, afterResync, d.activeAt(30))
	require.Equal(t, beforeResync, d.activeAt(29))
	require.Equal(t, []string{"contract-20 30"}, d.Rows("SELECT contract_id, active_until FROM ledger.contract_lifetimes WHERE active_until IS NOT NULL"))
	require.Equal(t, []string{"viewed 4"}, d.Rows("SELECT contract_id, created_offset FROM ledger.active_contracts WHERE contract_id IN ('viewed')"))
	require.Equal(t, "1", d.Row("SELECT count(*) FROM ledger.interface_views"))
	require.Empty(t, d.differences(up.store))

	// It is in force: begun again it is finished, and updates follow it.
	again, err := up.Resync(false).BeginSnapshot(ctx, "", wider(), 30)
	require.NoError(t, err)
	require.True(t, again.Finished)
	u := storetest.NewUpdate(40, "sync::1")
	u.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "viewed")}
	require.NoError(t, up.Append(ctx, wider(), []ledger.Page{{From: 30, To: 40, Updates: []ledger.Update{u}}}))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.lookups"))
	require.NotContains(t, d.activeAt(40), "viewed sync::1 30")
	require.Contains(t, d.activeAt(39), "viewed sync::1 30")
	require.Empty(t, d.differences(up.store))
	_, _, err = d.store().Scope(ctx)
	require.NoError(t, err)
}

// What is active already begins anew where the scope shows more of it, and so does what had left the scope: what is held
// is known from there on, and moves.
func TestAnInterfaceIsAdded(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"to what is active": false, "to what had left the scope": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			ctx := t.Context()
			up := d.three()
			d.Exec("INSERT INTO indexer.hosting (party, hosted, onboarded, asked_offset) VALUES ('alice', true, false, 30)")
			if left {
				other := storetest.Scope
				other.Parties = []string{"carol"}
				d.changeScope(up, other)
			}
			scope := storetest.Scope
			scope.Interfaces = []string{"#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"}
			var entries []ledger.ContractEntry
			for i := range ledger.Offset(3) {
				e := storetest.ActiveEntry(10*i+10, 0, fmt.Sprintf("contract-%d", 10*i+10), "sync::1", 0)
				if i > 0 { // one is no holding
					e.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: storetest.HoldingV1,
						Value: ledger.JSON(`{"owner": "alice", "instrumentId": {"admin": "alice", "id": "X"}, "amount": "5.0", "lock": null}`)}}
				}
				entries = append(entries, e)
			}
			d.changeScope(up, scope, entries...)
			archived, unassigned := storetest.NewUpdate(40, "sync::1"), storetest.NewUpdate(50, "sync::1")
			archived.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "contract-20")}
			storetest.Unassign(&unassigned, 0, "contract-30", "sync::1", "sync::2", 1)
			require.NoError(t, up.Append(ctx, scope, []ledger.Page{{From: 30, To: 50, Updates: []ledger.Update{archived, unassigned}}}))

			begun := map[bool]string{false: "contract-10 sync::1 10", true: "contract-10 sync::1 30"}
			require.Equal(t, []string{begun[left], "contract-20 sync::1 30", "contract-30 sync::1 30"}, d.activeAt(30))
			require.Equal(t, []string{"contract-10 sync::1 10", "contract-20 sync::1 20"}, d.activeAt(29))
			require.Equal(t, []string{"contract-10 10"}, d.Rows("SELECT contract_id, created_offset FROM ledger.active_contracts"))
			require.Equal(t, []string{"alice X 5.0 1"}, d.Rows("SELECT owner, instrument, amount::text, contracts FROM ledger.holding_totals_at(49)"))
			require.Equal(t, []string{"<nil> 10.0 5.0 0"}, d.Rows(`SELECT ledger.balance_at_offset('alice', 'X', 29)::text,
				ledger.balance_at_offset('alice', 'X', 39)::text, ledger.balance_at_offset('alice', 'X', 40)::text, ledger.balance_at_offset('alice', 'X', 50)::text`))
			require.Equal(t, []string{"40 -5.0", "50 -5.0"}, d.Rows("SELECT ledger_offset, amount::text FROM ledger.token_events_of('alice') ORDER BY 1"))
			require.Equal(t, []string{"contract-20 update-20", "contract-20 <nil>", "contract-20 update-40"},
				d.Rows("SELECT contract_id, update_id FROM ledger.contract_history('contract-20')"))
			require.Empty(t, d.differences(up.store))
			_, err := up.Reset(ctx, 29)
			require.NoError(t, err)
			require.Empty(t, d.differences(up.store))
		})
	}
}

// Where only what was added is read, what is not shown goes on.
func TestAResyncOfWhatWasAdded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.three()
	resync := up.Resync(true)
	progress, err := resync.BeginSnapshot(t.Context(), "", wider(), 30)
	require.NoError(t, err)
	page := resyncPages()[0]
	page.Last = true
	_, err = resync.WriteSnapshotPage(t.Context(), progress, nil, page)
	require.NoError(t, err)
	require.Equal(t, []string{"contract-10 sync::1 10", "contract-20 sync::1 20", "contract-30 sync::1 30", "viewed sync::1 30"}, d.activeAt(30))
	require.Equal(t, beforeResync, d.activeAt(29))
	require.Empty(t, d.differences(up.store))
}

// A resync that was given up leaves nothing: another one begins anew, and so does what drops it.
func TestAResyncIsGivenUp(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.three()
	before := d.shown()
	waiting := func() []string {
		return d.Rows("SELECT (SELECT count(*) FROM indexer.resyncs), (SELECT count(*) FROM indexer.resync_created) + (SELECT count(*) FROM indexer.resync_interface_views), (SELECT count(*) FROM indexer.resync_shown)")
	}
	begin := func() {
		resync := up.Resync(false)
		progress, err := resync.BeginSnapshot(ctx, "", wider(), 30)
		require.NoError(t, err)
		require.Zero(t, progress.Entries)
		_, err = resync.WriteSnapshotPage(ctx, progress, nil, resyncPages()[0])
		require.NoError(t, err)
		require.Equal(t, []string{"1 2 1"}, waiting())
	}
	begin()
	require.NoError(t, up.DropResync(ctx))
	require.Equal(t, []string{"0 0 0"}, waiting())
	begin()
	_, err := up.Reset(ctx, 30)
	require.NoError(t, err)
	require.Equal(t, []string{"0 0 0"}, waiting())
	begin()
	scope := wider()
	scope.Parties = []string{"carol"}
	d.changeScope(up, scope)
	require.Equal(t, []string{"1 0 0"}, waiting())
	require.Empty(t, d.activeAt(30))
	require.Empty(t, d.differences(up.store))
	_, err = up.Reset(ctx, 20)
	require.NoError(t, err)
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(20, 30)))
	after := d.shown()
	delete(after, "coverage")
	delete(before, "coverage")
	require.Equal(t, before, after)

	d.changeScope(up, scope)
	_, err = up.Reset(ctx, 0)
	require.NoError(t, err)
	stored, _, err := up.store.Scope(ctx)
	require.NoError(t, err)
	require.Equal(t, storetest.Scope.Hash(), stored.Hash(), "nothing is covered in any")
}

// Where nothing follows the first snapshot, and for another form, there is no resync.
func TestResyncsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.leadUpdates(d.store())
	d.snapshot(up, 100, storetest.ActiveEntry(10, 0, "a", "sync::1", 0))
	refused := func(scope ledger.Scope, at ledger.Offset, text string) {
		t.Helper()
		_, err := up.Resync(false).BeginSnapshot(t.Context(), "", scope, at)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, text)
	}
	refused(wider(), 100, "holds nothing but the snapshot at offset 100")
	require.NoError(t, up.Append(t.Context(), storetest.Scope, storetest.OneCreation(100, 110)))
	blobs := wider()
	blobs.Blobs = !blobs.Blobs
	refused(blobs, 110, "another form")
	_, err := up.Resync(false).BeginSnapshot(t.Context(), "", wider(), 109)
	require.ErrorIs(t, err, ErrWatermarkMoved)
	d.changeScope(up, wider(), storetest.ActiveEntry(10, 0, "a", "sync::1", 0), storetest.ActiveEntry(20, 0, "b", "sync::1", 0))
	require.Equal(t, []string{"a sync::1 10", "b sync::1 110"}, d.activeAt(110))
	require.Empty(t, d.differences(up.store))
	d.requireCarried(up.store, 100, []ledger.ContractEntry{storetest.ActiveEntry(10, 0, "a", "sync::1", 0)})
}
