package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/status"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// The status names the last parties of the scope that came and went, on which synchronizer, and says what to do.
func TestTheStatusNamesPartiesThatComeAndGo(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 99})
	l.Grow(400)
	database := throwaway.Migrated(t, migrate)
	scope := defaultScope()
	scope.Parties = l.Parties()
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{Version: "3.5"}), scope), testLogger(t)))
	type place struct{ party, synchronizer string }
	last := map[place]store.HostingChange{}
	participant := texts(t, database, "SELECT participant_id FROM indexer.participant")[0]
	for _, row := range l.Truth(sandbox.Scope{Version: "3.5", Parties: scope.Parties}, l.End())["topology_events"] {
		if row["participant_id"] != participant {
			continue
		}
		offset, err := row["ledger_offset"].(json.Number).Int64()
		require.NoError(t, err)
		at := place{fmt.Sprint(row["party_id"]), fmt.Sprint(row["synchronizer_id"])}
		if ledger.Offset(offset) >= last[at].Offset {
			kind := ledger.TopologyEventKind(fmt.Sprint(row["kind"]))
			last[at] = store.HostingChange{Offset: ledger.Offset(offset), Kind: kind, Party: at.party, Synchronizer: at.synchronizer}
		}
	}
	maps.DeleteFunc(last, func(_ place, h store.HostingChange) bool {
		return h.Kind != ledger.TopologyOnboarding && h.Kind != ledger.TopologyRevoked
	})
	require.NotEmpty(t, last)
	db, err := store.Open(store.Config{URL: database})
	require.NoError(t, err)
	defer db.Close()
	read, err := db.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, read.Hosting, min(10, len(last)))
	for _, h := range read.Hosting {
		require.Equal(t, last[place{h.Party, h.Synchronizer}], h)
	}
	lines := (&status.Stream{Hosting: []store.HostingChange{
		{Offset: 7, Kind: ledger.TopologyRevoked, Party: "a", Synchronizer: "s"}, {Offset: 6, Kind: ledger.TopologyOnboarding, Party: "b"},
	}}).HostingChanged()
	require.Len(t, lines, 4)
	require.Equal(t, []string{"party a is not hosted here any more since offset 7, on synchronizer s", "party b was onboarded at offset 6"}, lines[:2])
	require.Contains(t, lines[2], "where it is hosted on no other, take it out of --parties (--change-scope)")
	require.Contains(t, lines[3], "`indexer verify` names contracts that onboarded parties brought along, if no update has shown them")
}
