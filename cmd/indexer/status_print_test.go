package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Of a network status says whose view is stored, and the time that an offset is made of; of a participant its id and
// offsets.
func TestStatusInTheWordsOfANetwork(t *testing.T) {
	t.Parallel()
	at, err := ledger.NetworkOffset(3, ledger.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC), Valid: true})
	require.NoError(t, err)
	r := &status.Report{ParticipantID: "DSO::1220", Streams: []status.Stream{
		{Stream: store.StreamUpdates, Watermark: at, Frontier: at},
	}, Verified: &status.Verified{Verified: store.Verified{Offset: at - 90_000_000}, Behind: new(ledger.Offset(90_000_000))}}
	printed := func(network bool) string {
		var out strings.Builder
		require.NoError(t, printStatus(&out, r, network))
		return squeezed(out.String())
	}
	network, participant := printed(true), printed(false)
	require.Contains(t, network, "network of DSO::1220\n")
	require.Contains(t, network, "(migration 3, 2026-01-02T03:04:05.000678Z), moved ")
	require.NotContains(t, network, "participant")
	require.Regexp(t, `verified up to offset \d+ \(migration 3, 2026-01-02T03:02:35\.000678Z\)`, network)
	require.Contains(t, participant, "participant DSO::1220\n")
	require.Contains(t, participant, ", 90,000,000 behind the watermark")
	require.NotContains(t, participant, "migration")
}

// How old the last update is stands there as people say it.
func TestStatusSaysTheAgeOfTheLastUpdate(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	end := &status.End{Offset: new(ledger.Offset(70)), Lag: new(ledger.Offset(20)), Seconds: new((72 * time.Hour).Seconds())}
	require.NoError(t, printStatus(&out, &status.Report{Ledger: end}, false))
	require.Contains(t, squeezed(out.String()), "end 70, 20 offsets ahead; the last update here is 3 days old")
}

// Where the transaction history stands is told, also when there are no updates, and why there is none.
func TestStatusOfTheHistory(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 2, 10, 0, 0, 0, time.UTC)
	text := func(h *status.Transactions, tasks ...status.Task) string {
		var out strings.Builder
		require.NoError(t, printStatus(&out, &status.Report{Transactions: h, Tasks: tasks}, false))
		return squeezed(out.String())
	}
	require.NotContains(t, text(nil), "transactions")
	none := text(&status.Transactions{Leader: "the daemon", LeaderSince: at, Leads: true},
		status.Task{Name: store.StreamTransactions, Failing: true, FailedAt: at, Failure: "there is none"})
	require.Contains(t, none, "transactions no records yet\nleader: the daemon, since 2026-07-02T10:00:00Z")
	require.Contains(t, none, "\nfailed 2026-07-02T10:00:00Z: there is none")
	some := text(&status.Transactions{Leader: "the daemon", LeaderSince: at, TransactionsStatus: store.TransactionsStatus{
		Records: 2, Cursor: "#1220:2", NewestRecord: at, UpdatedAt: at, Unknown: 1, NetworkID: "DSO::1220",
	}})
	for _, line := range []string{
		"transactions 2 records, the newest of 2026-07-02T10:00:00Z, moved 2026-07-02T10:00:00Z",
		"reading resumes after event id #1220:2\n1 records that are of no kind that this version knows, kept raw in ledger.unknown_transactions\n",
		"network of DSO::1220\nleader: none now; the last one was the daemon, from 2026-07-02T10:00:00Z",
	} {
		require.Contains(t, some, line)
	}
}
