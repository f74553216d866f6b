package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// What is logged of a party that the scope names: on each synchronizer once, and only of this participant. Every event
// is counted. Where no party is named, nothing has to be done, and nothing is logged.
func TestHostingChangesAreNoticed(t *testing.T) {
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
		var log bytes.Buffer
		counted := map[string]int{}
		h := HostingChanges{
			Participant: "here", Logger: slog.New(slog.NewJSONHandler(&log, nil)), Count: func(kind string) { counted[kind]++ },
		}
		scope := ledger.Scope{Parties: c.parties}
		h.note(t.Context(), scope, pages)
		h.note(t.Context(), scope, pages)
		require.Equal(t, map[string]int{"added": 2, "onboarding": 2, "revoked": 6}, counted, name)
		require.Equal(t, c.lines, strings.Count(log.String(), "\n"), log.String())
		if c.lines == 0 {
			continue
		}
		require.Equal(t, []string{"a s1", "a s2"}, partiesSaid(t, &log, gone))
		require.Equal(t, []string{"b s1"}, partiesSaid(t, &log, came))
	}

	var log bytes.Buffer
	h := HostingChanges{Participant: "here", Logger: slog.New(slog.NewJSONHandler(&log, nil)), Count: func(string) {}}
	var many ledger.Update
	var scope ledger.Scope
	for i := range 3 * mostHostingLines {
		scope.Parties = append(scope.Parties, fmt.Sprint(i))
		many.Topology = append(many.Topology, event(ledger.TopologyRevoked, fmt.Sprint(i), "here"))
	}
	h.note(t.Context(), scope, []ledger.Page{{Updates: []ledger.Update{many}}})
	require.Len(t, partiesSaid(t, &log, gone), mostHostingLines)
	require.Equal(t, 1, strings.Count(log.String(), "further parties were onboarded, or are not hosted any more"))
}

// partiesSaid returns the party and synchronizer of each line that was logged with a message.
func partiesSaid(t *testing.T, log *bytes.Buffer, message string) (said []string) {
	for line := range strings.Lines(log.String()) {
		var l struct{ Msg, Party, Synchronizer string }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		if l.Msg == message {
			said = append(said, l.Party+" "+l.Synchronizer)
		}
	}
	return said
}
