package app

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// networkFor is a configuration that reads the updates of a network until current, without a listener.
func networkFor(databaseURL, scanURL string) Indexer {
	cfg := indexerFor(databaseURL, "", config.Scope{})
	cfg.ScanURL, cfg.ScanHistory = scanURL, "updates"
	return cfg
}

// networkRelations reads every relation of the pair of schemas of the network.
func networkRelations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	return rowsIn(t, databaseURL, "network", "row_to_json(r)", sandbox.Relations())
}

// scanOf returns a ledger and its Scan, which shows about a third of its updates, over two migrations.
func scanOf(seed uint64, updates int, options sandbox.ScanOptions) (*sandbox.Ledger, *sandbox.Scan) {
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(updates)
	options.MigrateAfter = updates / 2
	return l, sandbox.NewScan(l, options)
}

// Every row of the network's pair is the truth, whatever the service does, and if the program is stopped in the middle.
func TestTheUpdatesOfANetworkAreIndexed(t *testing.T) {
	t.Parallel()
	brief.Long(t, "indexes 20,000 updates from a service that fails")
	var requests atomic.Int64
	faults := roughly(71, 15)
	_, scan := scanOf(72, 20_000, sandbox.ScanOptions{Release: "0.7.1", Latency: time.Millisecond, Fault: func(r *http.Request) *sandbox.Fault {
		if strings.HasPrefix(r.URL.Path, "/v2/updates") {
			requests.Add(1)
		}
		return faults(r)
	}})
	want := scan.NetworkTruth()
	require.Greater(t, len(want["updates"]), 5_000)
	database := throwaway.Database(t)
	cfg := networkFor(database, serveScan(t, scan))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- RunIndexer(ctx, cfg, testLogger(t)) }()
	eventuallyIn(t, database, "a thousand updates are stored", "(SELECT count(*) FROM network_indexer.updates) >= 1000")
	stop()
	require.NoError(t, <-stopped)

	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(want, networkRelations(t, database)))
	t.Logf("%d updates, %d requests", len(want["updates"]), requests.Load())
	require.Less(t, requests.Load(), int64(400), "%d updates at a thousand per page, a gap between the migrations, and windows that grow", len(want["updates"]))
}

// A ledger and the network it belongs to lie in one database, each in schemas of its own, and follow their sources.
func TestALedgerAndItsNetworkInOneDatabase(t *testing.T) {
	t.Parallel()
	brief.Long(t, "indexes two ledgers")
	l, scan := scanOf(73, 1_500, sandbox.ScanOptions{})
	database := throwaway.Database(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL, cfg.ScanHistory = serveScan(t, scan), "both"
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	scope := sandbox.Scope{Shape: sandbox.ACSDelta}
	require.Empty(t, sandbox.Diff(l.Truth(scope, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
	require.Zero(t, count(t, database, `network.updates WHERE to_timestamp((ledger_offset & 4503599627370495) / 1e6) <> record_time`),
		"the offset tells the record time, as operations.md has it")
	require.Positive(t, count(t, database, "network.updates WHERE ledger_offset >> 52 = 2"))
	joined := count(t, database, "ledger.updates JOIN network.updates n USING (update_id)")
	require.Positive(t, joined)
	require.Equal(t, count(t, database, `ledger.updates u JOIN network.updates n USING (update_id) WHERE u.record_time = n.record_time`), joined)

	cfg.UntilCurrent = false
	daemon := startIndexer(t, cfg)
	l.Grow(300)
	eventuallyOf(t, daemon, "all updates are there", func() bool {
		return count(t, database, "network.updates") == len(scan.NetworkTruth()["updates"])
	})
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
}

// A daemon that is to read nothing does not start.
func TestNothingOfANetwork(t *testing.T) {
	t.Parallel()
	cfg := networkFor(throwaway.Database(t), "http://localhost")
	cfg.ScanHistory = "none"
	require.ErrorContains(t, RunIndexer(t.Context(), cfg, testLogger(t)), "--scan-history=none leaves nothing to be read without --ledger-url")
}

// What can't be read says what to do, and a database belongs to one network.
func TestNetworksThatAreRefused(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(74, 200, sandbox.ScanOptions{})
	_, other := scanOf(75, 200, sandbox.ScanOptions{})
	_, strict := scanOf(74, 200, sandbox.ScanOptions{StrictInterface: true})
	database := throwaway.Database(t)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, serveScan(t, scan)), testLogger(t)))
	for name, c := range map[string]struct {
		scan *sandbox.Scan
		want string
	}{
		"another network": {other, "schema network of database"},
		"no such path":    {strict, "the Scan service does not say of which network it is"},
	} {
		err := RunIndexer(t.Context(), networkFor(database, serveScan(t, c.scan)), testLogger(t))
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem, name)
		require.Contains(t, problem.What, c.want)
		require.NotEmpty(t, problem.Do)
	}
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
}
