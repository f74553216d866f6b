package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/status"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// What is logged of a party that the scope names: on each synchronizer once, and only of this participant. Every event
// is counted. Where no party is named, nothing has to be done, and nothing is logged.
func TestHostingChangesAreNoticed(t *testing.T) {
	t.Parallel()
	const (
		gone = "the participant does not host a party on a synchronizer any more: no updates of it come from there, and its contracts there stay as " +
			"they were last seen; where it is hosted on no other, take it out of --parties (--change-scope), or read it from a participant that hosts it"
		came = "a party is onboarded to the participant; `indexer verify` names contracts that it brings along, if no update shows them"
	)
	event := func(kind ledger.TopologyEventKind, party, participant string) ledger.TopologyEvent {
		return ledger.TopologyEvent{Kind: kind, PartyID: &party, ParticipantID: &participant}
	}
	pages := []ledger.Page{{To: 3, Updates: []ledger.Update{{Offset: 1, SynchronizerID: new("s1"), Topology: []ledger.TopologyEvent{
		event(ledger.TopologyAdded, "a", "here"), event(ledger.TopologyOnboarding, "b", "here"), event(ledger.TopologyOnboarding, "b", "elsewhere"),
		{Kind: ledger.TopologyUnknown},
	}}, {Offset: 2, SynchronizerID: new("s1"), Topology: []ledger.TopologyEvent{
		event(ledger.TopologyRevoked, "a", "here"), event(ledger.TopologyRevoked, "c", "here"), event(ledger.TopologyRevoked, "b", "elsewhere"),
	}}, {Offset: 3, SynchronizerID: new("s2"), Topology: []ledger.TopologyEvent{event(ledger.TopologyRevoked, "a", "here")}}}}}
	for name, c := range map[string]struct {
		parties []string
		lines   int
	}{"named": {[]string{"a", "b"}, 3}, "any": {nil, 0}} {
		var log journal
		counted := map[string]int{}
		h := hosting{participant: "here", logger: log.logger(), count: func(kind string) { counted[kind]++ }}
		scope := ledger.Scope{Parties: c.parties}
		h.note(t.Context(), scope, pages)
		h.note(t.Context(), scope, pages)
		require.Equal(t, map[string]int{"added": 2, "onboarding": 2, "revoked": 6}, counted, name)
		require.Equal(t, c.lines, strings.Count(log.all(), "\n"), log.all())
		if c.lines == 0 {
			continue
		}
		require.Equal(t, []any{"a", "s1", "a", "s2"}, func() (list []any) {
			for _, line := range log.lines(t, gone) {
				list = append(list, line["party"], line["synchronizer"])
			}
			return list
		}())
		require.Equal(t, "b", log.lines(t, came)[0]["party"])
	}

	var log journal
	h := hosting{participant: "here", logger: log.logger(), count: func(string) {}}
	var many ledger.Update
	var scope ledger.Scope
	for i := range 3 * mostHostingLines {
		scope.Parties = append(scope.Parties, fmt.Sprint(i))
		many.Topology = append(many.Topology, event(ledger.TopologyRevoked, fmt.Sprint(i), "here"))
	}
	h.note(t.Context(), scope, []ledger.Page{{Updates: []ledger.Update{many}}})
	require.Len(t, log.lines(t, gone), mostHostingLines)
	require.Len(t, log.lines(t, "further parties were onboarded, or are not hosted any more; hosting_changes_total counts them, and ledger.topology_events has them"), 1)
}

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
