package app

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
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
			"read it from a participant that hosts it": "a",
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
		"read it from a participant that hosts it"), mostHostingWarnings-1)
	require.Len(t, log.lines(t, "further parties were onboarded to the participant or have left it; hosting_changes_total counts them, and ledger.topology_events has them"), 1)
}
