package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// However many parties that are not read came later, and however often one did, the status names each one that is read
// once, with its last event.
func TestTheStatusNamesThePartiesOfTheScope(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	scope := storetest.Scope
	scope.Parties, scope.Topology = []string{"alice", "bob", "carol"}, true
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(t.Context(), "participant::1", scope, 0, true))
	parties := []string{"alice", "bob"}
	for i := range 2 * hostingShown {
		parties = append(parties, fmt.Sprint("other-", i), "bob")
	}
	page := ledger.Page{To: 100}
	for i, party := range parties {
		u := storetest.NewUpdate(ledger.Offset(i+1), "sync::1")
		u.Topology = []ledger.TopologyEvent{{Kind: ledger.TopologyOnboarding, PartyID: &party, ParticipantID: new("participant::1")}}
		page.Updates = append(page.Updates, u)
	}
	// One is on two synchronizers, and what was onboarded or revoked and came after that is there.
	for i, kind := range []ledger.TopologyEventKind{ledger.TopologyRevoked, ledger.TopologyOnboarding, ledger.TopologyAdded} {
		u := storetest.NewUpdate(ledger.Offset(len(parties)+i+1), []string{"sync::2", "sync::1", "sync::1"}[i])
		party := []string{"alice", "carol", "carol"}[i]
		u.Topology = []ledger.TopologyEvent{{Kind: kind, PartyID: &party, ParticipantID: new("participant::1")}}
		page.Updates = append(page.Updates, u)
	}
	require.NoError(t, up.Append(t.Context(), scope, []ledger.Page{page}))
	status, err := up.store.Status(t.Context())
	require.NoError(t, err)
	last := ledger.Offset(len(parties))
	require.Equal(t, []HostingChange{
		{Offset: last + 1, Kind: ledger.TopologyRevoked, Party: "alice", Synchronizer: "sync::2"},
		{Offset: last, Kind: ledger.TopologyOnboarding, Party: "bob", Synchronizer: "sync::1"},
		{Offset: 1, Kind: ledger.TopologyOnboarding, Party: "alice", Synchronizer: "sync::1"},
	}, status.Hosting)
}
