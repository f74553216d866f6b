package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// The updates of a network are read beside the participant's, and what tells of them names the network; no transaction
// history is.
func TestTheUpdatesOfANetworkBesideTheParticipants(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(101, 400, sandbox.ScanOptions{Release: "0.7.1"})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL, cfg.ScanHistory, cfg.Listen = []string{serveScan(t, scan)}, config.ScanUpdates, "127.0.0.1:0"
	cfg.UntilCurrent = false
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	waitFor(t, database, lastUpdate(l))
	eventuallyIn(t, database, "the network", "to_regclass('network.transactions') IS NOT NULL")
	eventuallyIn(t, database, "all records", "(SELECT count(*) FROM network.transactions) = $1", len(scan.EventIDs()))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
	require.Zero(t, count(t, database, "ledger.transactions"))
	_, body := readiness(t, &log)
	require.Regexp(t, `(?s)\nnetwork: leading\n.*\nnetwork: reachable\n`, body)
	_, page := ask(t, &log, "/status.json")
	require.Contains(t, page, `"records"`)
	require.NotContains(t, page, `"stream": "transactions"`)
	_, metrics := ask(t, &log, "/metrics")
	require.Contains(t, metrics, `ledger_indexer_transaction_history_seq{ledger="network"} `)
	require.Contains(t, metrics, `ledger_indexer_queue_bytes{ledger="network"} `)
	require.Contains(t, metrics, `ledger_indexer_decode_duration_seconds_count{operation="scan-updates`)
	require.Regexp(t, `ledger_indexer_derived_offset\{ledger="network"\} [1-9]`, metrics)
	require.NotContains(t, metrics, `ledger_indexer_leading{stream="transactions"}`)
	require.NoError(t, daemon.finish())
}

// If the service no longer has what a database began with, nothing is lost, nothing else is begun by itself, and the
// stream says what to do; what it says does it. A history that is left behind is told of.
func TestADatabaseWhoseHistoryTheServiceHasNoMore(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 104})
	l.Grow(300)
	old, recent, ancient := sandbox.NewScan(l, sandbox.ScanOptions{}), sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"}), sandbox.NewScan(l, sandbox.ScanOptions{StrictInterface: true})
	service := newSwitchable(t, old)
	var log *journal // of the last start
	start := func(database string, history config.ScanHistory) error {
		cfg := networkFor(database, service.URL)
		cfg.TablesSchema, cfg.ViewsSchema = "indexer", "ledger"
		cfg.ScanHistory, log = history, &journal{}
		return RunIndexer(t.Context(), cfg, log.logger())
	}
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, start(database, config.ScanTransactions))
	require.Empty(t, log.lines(t, historyNotRead))
	service.turnTo(recent)
	requireProblem(t, start(database, config.ScanTransactions), "gone from Splice 0.7 on", "--scan-history=updates")
	require.Empty(t, sandbox.Diff(old.Truth(), historyRelations(t, database)))
	require.NoError(t, start(database, config.ScanUpdates))
	told := log.lines(t, historyNotRead)
	require.Len(t, told, 1)
	require.Equal(t, "ledger", told[0]["schema"])
	require.EqualValues(t, len(old.EventIDs()), told[0]["records"])
	require.Contains(t, told[0]["newest_record"], "2026-01-01T")
	require.Empty(t, sandbox.Diff(old.Truth(), historyRelations(t, database)))
	require.Empty(t, sandbox.Diff(recent.NetworkTruth(), networkRelations(t, database)))

	database = throwaway.Database(t)
	require.NoError(t, start(database, config.ScanUpdates))
	require.Empty(t, log.lines(t, historyNotRead))
	service.turnTo(ancient)
	requireProblem(t, start(database, config.ScanUpdates), "of which network it is", "--scan-history=transactions")
	require.Empty(t, sandbox.Diff(recent.NetworkTruth(), networkRelations(t, database)))
	require.Zero(t, count(t, database, "pg_namespace WHERE nspname = 'ledger'"))
	require.NoError(t, start(database, config.ScanTransactions))
	require.Empty(t, sandbox.Diff(ancient.Truth(), historyRelations(t, database)))
}
