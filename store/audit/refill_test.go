package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

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

// An entry of an unknown kind is stored once after the snapshot was read again, in which it may have another place.
func TestUnknownEntriesOfASnapshotThatIsReadAgain(t *testing.T) {
	t.Parallel()
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
	require.Equal(t, []string{"0"}, d.Rows("SELECT seq FROM indexer.carried_exact_payloads"))
}
