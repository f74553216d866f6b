package app

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

const choseToRead = "what is read of the Scan service is chosen; --scan-history reads something else"

// A new database begins with the updates of both releases' services, beside the participant's or alone, and with the
// transaction history where there is nothing else; records are those of the service.
func TestWhatIsReadWithoutAChoiceOfTheFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options sandbox.ScanOptions
		want    string
	}{
		"0.6":                   {sandbox.ScanOptions{}, "updates"},
		"0.7":                   {sandbox.ScanOptions{Release: "0.7.1"}, "updates"},
		"the old history alone": {sandbox.ScanOptions{StrictInterface: true}, "transactions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l, scan := scanOf(101, 400, c.options)
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
			cfg.ScanURL, cfg.ScanHistory, cfg.Listen = []string{serveScan(t, scan)}, "auto", "127.0.0.1:0"
			var log journal
			cfg.UntilCurrent = false
			daemon := startLogged(t, cfg, log.logger())
			waitFor(t, database, lastUpdate(l))
			line := log.wait(t, choseToRead)
			require.Equal(t, c.want, line["scan_history"])
			require.Contains(t, line["because"], "the service has")
			records := len(scan.EventIDs())
			if c.want == "updates" {
				eventuallyIn(t, database, "all records", "(SELECT count(*) FROM network.transactions) = $1", records)
				require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
				require.Zero(t, count(t, database, "ledger.transactions"))
			} else {
				waitForHistory(t, database, scan)
				require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
				require.Zero(t, count(t, database, "pg_namespace WHERE nspname = 'network'"), "nothing else is made")
			}
			_, body := readiness(t, &log)
			_, page := ask(t, &log, "/status.json")
			_, metrics := ask(t, &log, "/metrics")
			if c.want == "updates" {
				require.Regexp(t, `(?s)\nnetwork: leading\n.*\nscan: reachable\n`, body)
				require.Contains(t, page, `"records"`)
				require.NotContains(t, page, `"stream": "transactions"`)
				require.Contains(t, metrics, `ledger_indexer_transaction_history_seq{ledger="network"} `)
				require.Contains(t, metrics, `ledger_indexer_queue_bytes{ledger="network"} `)
				require.Contains(t, metrics, `ledger_indexer_decode_duration_seconds_count{operation="scan-updates`)
				require.Regexp(t, `ledger_indexer_derived_offset\{ledger="network"\} [1-9]`, metrics)
				require.NotContains(t, metrics, `ledger_indexer_leading{stream="transactions"}`)
			} else {
				require.Contains(t, body, "\ntransactions: leading\n")
				require.NotContains(t, page, `"name": "network"`)
				require.NotContains(t, metrics, `ledger_indexer_leading{ledger="network"`)
			}
			require.NotContains(t, body, "scan: waiting")
			require.NoError(t, daemon.finish())

			// The database remembers it, and the service is not asked again.
			away := newSwitchable(t, page503())
			cfg.ScanURL[0] = away.URL
			var again journal
			daemon = startLogged(t, cfg, again.logger())
			require.Contains(t, again.wait(t, choseToRead)["because"], "the database began with the "+map[string]string{"updates": "updates", "transactions": "transaction history"}[c.want])
			away.turnTo(scan)
			l.Grow(50)
			waitFor(t, database, lastUpdate(l))
			require.NoError(t, daemon.finish())
		})
	}
}

func page503() http.Handler { return page(http.StatusServiceUnavailable) }

// While a service does not say what it has it is asked again, and the participant's updates are read; what it then has
// is read.
func TestAServiceThatDoesNotSayWhatItHasIsWaitedFor(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries")
	l, scan := scanOf(102, 200, sandbox.ScanOptions{Release: "0.7.1"})
	service := newSwitchable(t, page503())
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL, cfg.ScanHistory, cfg.Listen, cfg.UntilCurrent = []string{service.URL}, "auto", "127.0.0.1:0", false
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	waitFor(t, database, lastUpdate(l))
	const noScan = "does not answer as a Scan service"
	for _, turn := range []struct {
		at   http.Handler
		says string
	}{
		{page(http.StatusNotFound), noScan}, {page(http.StatusTooManyRequests), "429"}, // the first one is of a proxy that knows nothing
		{sandbox.NewServer(sandbox.NewLedger(sandbox.Options{Seed: 102}), sandbox.ServerOptions{}), noScan}, {page503(), "503"},
	} {
		service.turnTo(turn.at)
		eventuallyOf(t, daemon, "it is asked", func() bool {
			status, body := readiness(t, &log)
			require.Equal(t, http.StatusServiceUnavailable, status)
			_, waits, _ := strings.Cut(body, "\nscan: waiting to learn what the Scan service has: ")
			return strings.Contains(waits, turn.says)
		})
	}
	_, page := ask(t, &log, "/status.json")
	require.Contains(t, page, `"stream": "scan"`)
	require.NotContains(t, page, `"stream": "network"`)
	require.Zero(t, count(t, database, "pg_namespace WHERE nspname = 'network'"))
	service.turnTo(scan)
	log.wait(t, choseToRead)
	eventuallyIn(t, database, "the network's updates", "(SELECT count(*) FROM network.updates) = $1", len(scan.NetworkTruth()["updates"]))
	require.NoError(t, daemon.finish())
}

// A Scan that has nothing to be read fails for good where nothing else is read, and until current.
func TestAServiceThatHasNothing(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 103})
	l.Grow(50)
	participant := serve(t, l, sandbox.ServerOptions{})
	service := newSwitchable(t, page(http.StatusNotFound)).URL
	for i, cfg := range []Indexer{
		networkFor(networkDatabase(t), service), indexerFor(throwaway.Migrated(t, migrate), participant, defaultScope()),
		networkFor(networkDatabase(t), participant), indexerFor(throwaway.Migrated(t, migrate), participant, defaultScope()),
	} {
		if cfg.ScanURL = []string{service}; i > 1 { // the address is the participant's
			cfg.ScanURL = []string{participant}
		}
		cfg.ScanHistory = "auto"
		cfg.UntilCurrent = cfg.LedgerURL != ""
		requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "the Scan service has neither updates of its network", "check --scan-url")
	}
}

// What a database began with goes on. If the service has it no more, nothing is lost, something else is not begun by
// itself, and the stream says what to do; what it says does it.
func TestADatabaseWhoseHistoryTheServiceHasNoMore(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 104})
	l.Grow(300)
	old, recent, ancient := sandbox.NewScan(l, sandbox.ScanOptions{}), sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"}), sandbox.NewScan(l, sandbox.ScanOptions{StrictInterface: true})
	service := newSwitchable(t, old)
	start := func(database string, history config.ScanHistory) error {
		cfg := networkFor(database, service.URL)
		cfg.ScanHistory = history
		return RunIndexer(t.Context(), cfg, testLogger(t))
	}
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, start(database, "transactions"))
	require.NoError(t, start(database, "auto"), "the service has both, and the database one")
	service.turnTo(recent)
	requireProblem(t, start(database, "auto"), "gone from Splice 0.7 on", "--scan-history=updates")
	require.Empty(t, sandbox.Diff(old.Truth(), historyRelations(t, database)))
	require.NoError(t, start(database, "updates"))
	require.Empty(t, sandbox.Diff(old.Truth(), historyRelations(t, database)))
	require.Empty(t, sandbox.Diff(recent.NetworkTruth(), networkRelations(t, database)))
	requireProblem(t, start(database, "auto"), "transactions: ", "--scan-history=updates") // the updates are read, until current

	database = throwaway.Database(t)
	require.NoError(t, start(database, "auto"))
	service.turnTo(ancient)
	requireProblem(t, start(database, "auto"), "of which network it is", "check --scan-url")
	require.Empty(t, sandbox.Diff(recent.NetworkTruth(), networkRelations(t, database)))
	require.Zero(t, count(t, database, "pg_namespace WHERE nspname = 'ledger'"))
	require.NoError(t, start(database, "transactions"))
	require.Empty(t, sandbox.Diff(ancient.Truth(), historyRelations(t, database)))
}

// A seeded network goes on, and one of several services that has updates is enough.
func TestWhatIsReadAfterSeeding(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(105, 300, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second})
	database, url := networkDatabase(t), serveScan(t, scan)
	_, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, url, networkOffsetAt(t, scan, 0.5)), testLogger(t), nil)
	require.NoError(t, err)
	var asked atomic.Int64
	down := newSwitchable(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		page503().ServeHTTP(w, r)
	}))
	cfg := networkFor(database, down.URL)
	cfg.ScanURL, cfg.ScanHistory = append(cfg.ScanURL, url), "auto"
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	fresh := throwaway.Database(t)
	cfg.DatabaseURL = fresh
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Positive(t, asked.Load())
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, fresh)))
}
