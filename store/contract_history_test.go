package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// journal tells what is known of a contract, one line for each thing.
func journal(h ContractHistory) []string {
	var lines []string
	for _, e := range h.Events {
		line := fmt.Sprintf("%d/%d %s", e.Offset, e.NodeID, e.Kind)
		for _, part := range []*string{(*string)(&e.Origin), e.UpdateID, e.SynchronizerID, e.TemplateID, e.Choice, e.InterfaceID, e.Source, e.Target, e.ReassignmentID} {
			if part != nil && *part != "" {
				line += " " + *part
			}
		}
		if e.Consuming != nil {
			line += fmt.Sprint(" consuming ", *e.Consuming)
		}
		if e.ACSDelta != nil {
			line += fmt.Sprint(" acs_delta ", *e.ACSDelta)
		}
		if e.ReassignmentCounter != nil {
			line += fmt.Sprint(" counter ", *e.ReassignmentCounter)
		}
		lines = append(lines, line)
	}
	for _, a := range h.Active {
		lines = append(lines, fmt.Sprintf("active on %s since %d/%d counter %d", textOf(a.SynchronizerID), a.Offset, a.NodeID, a.ReassignmentCounter))
	}
	for _, l := range h.Lifetimes {
		lines = append(lines, fmt.Sprintf("lived on %s from %d/%d until %d", textOf(l.SynchronizerID), l.Activated, l.NodeID, l.Deactivated))
	}
	return lines
}

func TestContractHistory(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	history := func(contractID string) ContractHistory {
		t.Helper()
		h, err := s.ContractHistory(t.Context(), contractID)
		require.NoError(t, err)
		return h
	}
	require.Equal(t, ContractHistory{}, history("c"), "nothing was indexed")
	l := d.started()
	born, moved, there, used, gone := storetest.NewUpdate(10, "sync::1"), storetest.NewUpdate(20, "sync::1"), storetest.NewUpdate(30, "sync::2"), storetest.NewUpdate(40, "sync::2"), storetest.NewUpdate(50, "sync::2")
	odd := "quote ' \\ \x01 é"
	for i, id := range []string{"c", odd, "transient", "seen"} {
		born.Created = append(born.Created, storetest.Creation(int32(i), id))
	}
	born.Created[3].ACSDelta = new(false)
	born.Archived = append(born.Archived, storetest.Archival(4, "transient"))
	storetest.Unassign(&moved, 0, "c", "sync::1", "sync::2", 1)
	storetest.Assign(&there, 0, "c", "sync::1", "sync::2", 1)
	exercise := func(nodeID int32, contractID string, consuming bool) ledger.ExercisedEvent {
		return ledger.ExercisedEvent{
			NodeID: nodeID, ContractID: contractID, TemplateID: storetest.Template, PackageName: "asset", Choice: "Use", InterfaceID: new("pkg:I:Usable"),
			Consuming: consuming, ACSDelta: new(consuming),
		}
	}
	used.Exercised = []ledger.ExercisedEvent{exercise(1, "c", false), exercise(2, "c", false), exercise(3, "never created", false)}
	gone.Exercised = []ledger.ExercisedEvent{exercise(0, "c", true)}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{To: 45, Updates: []ledger.Update{born, moved, there, used}}}))

	before := []string{
		"10/0 created transaction update-10 sync::1 pkg-1:Main:Asset acs_delta true",
		"20/0 unassigned update-20 sync::1 pkg-1:Main:Asset sync::1 sync::2 r-1 counter 1",
		"30/0 created assignment update-30 sync::2 pkg-1:Main:Asset acs_delta true",
		"30/0 assigned update-30 sync::2 pkg-1:Main:Asset sync::1 sync::2 r-1 counter 1",
		"40/1 exercised update-40 sync::2 pkg-1:Main:Asset Use pkg:I:Usable consuming false acs_delta false",
		"40/2 exercised update-40 sync::2 pkg-1:Main:Asset Use pkg:I:Usable consuming false acs_delta false",
	}
	h := history("c")
	require.Equal(t, append(before, "active on sync::2 since 30/0 counter 1", "lived on sync::1 from 10/0 until 20"), journal(h))
	require.Equal(t, Extent{Started: true, Watermark: 45, StateFloor: new(ledger.Offset(0))}, h.Extent)
	require.Equal(t, &ledger.Contract{
		ContractID: "c", TemplateID: storetest.Template, PackageName: "asset", Argument: ledger.JSON(`{"amount": "1.0"}`), Signatories: []string{"alice"},
		CreatedAt: storetest.Time("2025-01-02T03:04:05Z"),
	}, h.Contract)
	require.Equal(t, storetest.Time("2025-01-02T03:04:05.123456Z"), h.Events[0].RecordTime)

	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 45, To: 60, Updates: []ledger.Update{gone}}}))
	h = history("c")
	require.Equal(t, append(before, "50/0 exercised update-50 sync::2 pkg-1:Main:Asset Use pkg:I:Usable consuming true acs_delta true",
		"50/0 archived update-50 sync::2 pkg-1:Main:Asset acs_delta true",
		"lived on sync::1 from 10/0 until 20", "lived on sync::2 from 30/0 until 50"), journal(h))
	require.Equal(t, []string{
		"10/2 created transaction update-10 sync::1 pkg-1:Main:Asset acs_delta true", "10/4 archived update-10 sync::1 pkg-2:Main:Asset acs_delta true",
		"lived on sync::1 from 10/2 until 10",
	}, journal(history("transient")))
	require.Equal(t, []string{"10/3 created transaction update-10 sync::1 pkg-1:Main:Asset acs_delta false"}, journal(history("seen")))
	require.Len(t, journal(history(odd)), 2)

	h = history("never created")
	require.Len(t, h.Events, 1)
	require.Nil(t, h.Contract)
	require.True(t, h.Known())
	for _, unknown := range []string{"", "x", "c'; --", "c\x00", "\xff", strings.Repeat("c", 1<<20)} {
		h := history(unknown)
		require.False(t, h.Known(), "%.20q", unknown)
		require.True(t, h.Started)
	}
	// Beyond the watermark nothing is told.
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 35")
	require.Equal(t, append(before[:4:4], "lived on sync::1 from 10/0 until 20"), journal(history("c")))
	h = history("never created")
	require.False(t, h.Known())
}

// Of a contract that is exercised without end the latest events are read.
func TestContractHistoryIsBounded(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	born, used := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::1")
	born.Created = []ledger.CreatedEvent{storetest.Creation(0, "c")}
	for i := range int32(historyLimit + 5) {
		used.Exercised = append(used.Exercised, ledger.ExercisedEvent{
			NodeID: i, ContractID: "c", TemplateID: storetest.Template, PackageName: "asset", Choice: "Use", Consuming: i == historyLimit+4,
		})
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{To: 2, Updates: []ledger.Update{born, used}}}))
	h, err := l.store.ContractHistory(t.Context(), "c")
	require.NoError(t, err)
	require.True(t, h.Older)
	require.Len(t, h.Events, historyLimit)
	require.Equal(t, EventArchived, h.Events[historyLimit-1].Kind)
	require.EqualValues(t, historyLimit+4, h.Events[historyLimit-1].NodeID)
	require.Equal(t, []ContractLifetime{{SynchronizerID: new("sync::1"), Activated: 1, Deactivated: 2}}, h.Lifetimes)
	require.NotNil(t, h.Contract)
}

// What a snapshot said of a contract, and a look-up, is known too.
func TestContractHistoryOfSnapshotAndLookup(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	progress, err := l.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 100)
	require.NoError(t, err)
	c := storetest.Creation(3, "carried")
	c.Offset, c.Origin = 40, ledger.OriginSnapshot
	_, err = l.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Last: true, Entries: []ledger.ContractEntry{
		{Active: &ledger.ActiveContract{Created: c, SynchronizerID: "sync::1", ReassignmentCounter: 2}},
	}})
	require.NoError(t, err)
	h, err := l.store.ContractHistory(t.Context(), "carried")
	require.NoError(t, err)
	require.Equal(t, []string{"40/3 created snapshot sync::1 pkg-1:Main:Asset acs_delta true", "active on sync::1 since 40/3 counter 2"}, journal(h))
	require.EqualValues(t, 100, h.HistoryFloor)
	require.False(t, h.Events[0].RecordTime.Valid)

	gone := storetest.NewUpdate(110, "sync::1")
	gone.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "older"), storetest.Archival(1, "unheard of")}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 100, To: 110, Updates: []ledger.Update{gone}}}))
	h, err = l.store.ContractHistory(t.Context(), "older")
	require.NoError(t, err)
	require.Equal(t, &ContractLookup{Status: "wanted", Offset: 110}, h.Lookup)
	require.Nil(t, h.Contract)
	found := ledger.Contract{
		ContractID: "older", TemplateID: storetest.Template, PackageName: "asset", Argument: ledger.JSON(`{"a": 1}`), Signatories: []string{"alice"},
		Observers: []string{}, WitnessParties: []string{}, CreatedAt: storetest.Time("2025-01-02T03:04:05Z"),
	}
	at := storetest.Time("2025-03-04T05:06:07Z").Time
	require.NoError(t, l.SaveLookups(t.Context(), []ledger.Lookup{
		{ContractID: "older", At: at, Status: ledger.LookupFound, Contract: &found}, {ContractID: "unheard of", At: at, Status: ledger.LookupUnusable, Reason: "nonsense"},
	}))
	h, err = l.store.ContractHistory(t.Context(), "older")
	require.NoError(t, err)
	require.Equal(t, &found, h.Contract)
	require.Equal(t, ledger.LookupFound, h.Lookup.Status)
	require.True(t, at.Equal(h.Lookup.At.Time))
	h, err = l.store.ContractHistory(t.Context(), "unheard of")
	require.NoError(t, err)
	require.Equal(t, "nonsense", h.Lookup.Reason)
	require.EqualValues(t, 1, h.Lookup.NodeID)
}

func TestScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	_, ok, err := s.Scope(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	scope := ledger.Scope{
		Parties: []string{"a", "b"}, Templates: []string{"#n:M:T"}, Interfaces: []string{"#n:M:I"}, Shape: ledger.ShapeLedgerEffects, Blobs: true, Topology: true,
	}
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(t.Context(), "participant::1", scope, 0, true))
	stored, ok, err := s.Scope(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, scope, stored)

	var problem *ledger.Problem
	d.Exec(`UPDATE indexer.scopes SET definition = definition || '{"since": "a later release"}', scope = 'of a later release'`)
	_, _, err = s.Scope(t.Context())
	require.ErrorAs(t, err, &problem)
	d.Exec(`UPDATE indexer.scopes SET definition = '[]'`)
	_, _, err = s.Scope(t.Context())
	require.ErrorAs(t, err, &problem)
	d.Exec(`INSERT INTO indexer.scopes (scope, definition) VALUES ('another', '{}')`)
	_, _, err = s.Scope(t.Context())
	require.ErrorContains(t, err, "2 scopes")
}
