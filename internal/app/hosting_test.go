package app

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/status"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// A party that is onboarded to the participant or leaves it is warned of once, and every event that names the participant is counted.
func TestHostingChangesAreNoticed(t *testing.T) {
	t.Parallel()
	var log journal
	counted := map[string]int{}
	h := hosting{participant: "here", logger: log.logger(), count: func(kind string) { counted[kind]++ }}
	event := func(kind ledger.TopologyEventKind, party, participant string) ledger.TopologyEvent {
		return ledger.TopologyEvent{Kind: kind, PartyID: &party, ParticipantID: &participant}
	}
	pages := []ledger.Page{{To: 2, Updates: []ledger.Update{{Offset: 1, Topology: []ledger.TopologyEvent{
		event(ledger.TopologyAdded, "a", "here"), event(ledger.TopologyOnboarding, "b", "here"), event(ledger.TopologyOnboarding, "b", "elsewhere"),
		{Kind: ledger.TopologyUnknown},
	}}, {Offset: 2, Topology: []ledger.TopologyEvent{event(ledger.TopologyRevoked, "a", "here"), event(ledger.TopologyRevoked, "c", "elsewhere")}}}}}
	h.note(t.Context(), pages)
	h.note(t.Context(), pages)
	require.Equal(t, map[string]int{"added": 2, "onboarding": 2, "revoked": 2}, counted)
	for message, party := range map[string]string{
		"a party is onboarded to the participant: contracts that it brings along are in no update; `indexer verify` names those that are missing, " +
			"and a new database that is seeded with `backfill` has them": "b",
		"a party has left the participant: none of its updates come any more, and its contracts stay as they were last seen; " +
			"take it out of --parties (--change-scope), or read it from a participant that hosts it": "a",
	} {
		lines := log.lines(t, message)
		require.Len(t, lines, 1)
		require.Equal(t, party, lines[0]["party"])
	}

	var many ledger.Update
	for i := range 3 * mostHostingWarnings {
		many.Topology = append(many.Topology, event(ledger.TopologyRevoked, fmt.Sprint(i), "here"))
	}
	h.note(t.Context(), []ledger.Page{{Updates: []ledger.Update{many}}})
	require.Len(t, log.lines(t, "a party has left the participant: none of its updates come any more, and its contracts stay as they were last seen; "+
		"take it out of --parties (--change-scope), or read it from a participant that hosts it"), mostHostingWarnings-1)
	require.Len(t, log.lines(t, "further parties were onboarded to the participant or have left it; hosting_changes_total counts them, and ledger.topology_events has them"), 1)
}

// The status names the last parties that came and went, as far as they are read, and says what to do.
func TestTheStatusNamesPartiesThatComeAndGo(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 99})
	l.Grow(400)
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, l, sandbox.ServerOptions{Version: "3.5"}), defaultScope()), testLogger(t)))
	last := map[string]store.HostingChange{}
	participant := texts(t, database, "SELECT participant_id FROM indexer.participant")[0]
	for _, row := range l.Truth(sandbox.Scope{Version: "3.5"}, l.End())["topology_events"] {
		kind := fmt.Sprint(row["kind"])
		if row["participant_id"] != participant || kind != "onboarding" && kind != "revoked" {
			continue
		}
		offset, err := row["ledger_offset"].(json.Number).Int64()
		require.NoError(t, err)
		party := fmt.Sprint(row["party_id"])
		if ledger.Offset(offset) > last[party].Offset {
			last[party] = store.HostingChange{Offset: ledger.Offset(offset), Kind: ledger.TopologyEventKind(kind), Party: party}
		}
	}
	require.NotEmpty(t, last)
	db, err := store.Open(store.Config{URL: database})
	require.NoError(t, err)
	defer db.Close()
	read, err := db.Status(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, read.Hosting)
	for _, h := range read.Hosting {
		require.Equal(t, last[h.Party], h)
	}
	lines := (&status.Stream{Hosting: []store.HostingChange{{Offset: 7, Kind: ledger.TopologyRevoked, Party: "a"}, {Offset: 6, Kind: ledger.TopologyOnboarding, Party: "b"}}}).HostingChanged()
	require.Len(t, lines, 4)
	require.Equal(t, []string{"party a left the participant at offset 7", "party b was onboarded at offset 6"}, lines[:2])
	require.Contains(t, lines[2], "nothing of parties that left comes any more: take them out of --parties where they are named (--change-scope)")
	require.Contains(t, lines[3], "contracts that onboarded parties brought are in no update: `indexer verify` names those")
}
