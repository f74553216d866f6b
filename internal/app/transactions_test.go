package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// serveScan starts a Scan service and returns its URL.
func serveScan(t *testing.T, scan *sandbox.Scan) string {
	t.Helper()
	server := httptest.NewServer(scan)
	t.Cleanup(server.Close)
	return server.URL
}

// waitForTask waits until it is recorded why there are no records.
func waitForTask(t *testing.T, databaseURL, like string) {
	t.Helper()
	eventuallyIn(t, databaseURL, like, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'transactions' AND failure LIKE $1)", like)
}

// page answers everything with a page, as a proxy does.
func page(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>nginx</html>")
	})
}

// waitForHistory waits until as many records are stored as are served.
func waitForHistory(t *testing.T, databaseURL string, scan *sandbox.Scan) {
	t.Helper()
	want := len(scan.EventIDs())
	eventuallyIn(t, databaseURL, fmt.Sprint(want, " records"), "(SELECT count(*) FROM ledger.transactions) >= $1", want)
}

// readiness asks a daemon that has said where it listens whether it is ready.
func readiness(t *testing.T, j *journal) (status int, body string) {
	t.Helper()
	return ask(t, j, "/readyz")
}

func ask(t *testing.T, j *journal, path string) (status int, body string) {
	t.Helper()
	return getFrom(t, j.wait(t, "listening")["address"].(string), path)
}

// Both streams, or the history alone, from every kind of service: what the database holds is what the models say.
func TestIndexTheHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options sandbox.ScanOptions
		alone   bool
	}{
		"amulet":                     {options: sandbox.ScanOptions{ExtraKinds: true}},
		"coin, with balance changes": {options: sandbox.ScanOptions{Word: "coin", BalanceChanges: true, PageLimit: 60}},
		"odd shapes without types":   {options: sandbox.ScanOptions{OddShapes: true, BalanceChanges: true, StrictInterface: true}, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 61})
			l.Grow(500)
			scan := sandbox.NewScan(l, c.options)
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, "", defaultScope())
			cfg.ScanURL = []string{serveScan(t, scan)}
			want := map[string][]sandbox.Row{}
			if !c.alone {
				cfg.LedgerURL = serve(t, l, sandbox.ServerOptions{})
				want = l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())
			}
			require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
			require.Empty(t, sandbox.Diff(want, relations(t, database)))
			require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
			for _, round := range collect[int64](t, database, "SELECT DISTINCT round FROM ledger.transactions WHERE round IS NOT NULL") {
				require.Equal(t, scan.ReportedBalances(round), reportedBalances(t, database, round))
			}
		})
	}
}

// reportedBalances are the balances that the database tells at a round, an empty text where a party's is negative; nil
// where it tells none.
func reportedBalances(t *testing.T, databaseURL string, round int64) map[string]string {
	t.Helper()
	rows, err := sessions(t, databaseURL).Query(t.Context(), "SELECT party, balance::numeric(60, 10)::text FROM ledger.reported_balances_at($1)", round)
	require.NoError(t, err)
	balances, told := map[string]string{}, false
	var party, balance *string
	_, err = pgx.ForEachRow(rows, []any{&party, &balance}, func() error {
		if told = told || balance != nil; party == nil {
			return nil
		}
		balances[*party] = ""
		if balance != nil {
			balances[*party] = *balance
		}
		return nil
	})
	require.NoError(t, err)
	if !told {
		return nil
	}
	return balances
}

// A Scan of Splice 0.7 or later does not have the history, or loses it with an upgrade: the stream fails with the way
// out, and the updates continue.
func TestScanWithoutAHistory(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	for _, when := range []string{"from the start", "in the middle"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			l := sandbox.NewLedger(sandbox.Options{Seed: 62})
			l.Grow(100)
			old, recent := sandbox.NewScan(l, sandbox.ScanOptions{}), sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"})
			server := newSwitchable(t, recent)
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
			cfg.ScanURL, cfg.Listen = []string{server.URL}, "127.0.0.1:0"
			want := map[string][]sandbox.Row{}
			if when == "in the middle" {
				server.turnTo(old)
			}
			var log journal
			daemon := startLogged(t, cfg, log.logger())
			if when == "in the middle" {
				waitForHistory(t, database, old)
				want = old.Truth()
				server.turnTo(recent)
			}
			require.Contains(t, log.wait(t, othersGoOn)["error"], "give a Scan of Splice 0.6 or earlier with --scan-url")
			l.Grow(100)
			waitFor(t, database, lastUpdate(l))
			_, body := readiness(t, &log)
			require.Contains(t, body, "\nupdates: leading\ntransactions: failed: the Scan service has no transaction history")
			require.NoError(t, daemon.finish())
			require.Len(t, log.lines(t, othersGoOn), 1)
			require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
			require.Empty(t, sandbox.Diff(want, historyRelations(t, database)))
			require.Equal(t, 1, count(t, database, "indexer.tasks WHERE task = 'transactions' AND failure LIKE '%--scan-history=updates%'"))
		})
	}
	t.Run("until current", func(t *testing.T) {
		t.Parallel()
		l := sandbox.NewLedger(sandbox.Options{Seed: 62})
		l.Grow(300)
		database := throwaway.Migrated(t, migrate)
		server := newSwitchable(t, page(http.StatusBadGateway))
		cfg := indexerFor(database, server.URL, defaultScope())
		cfg.ScanURL, cfg.Listen = []string{serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"}))}, "127.0.0.1:0"
		var log journal
		ended := make(chan error, 1)
		go func() { ended <- RunIndexer(t.Context(), cfg, log.logger()) }()
		log.wait(t, othersGoOn) // before the updates are read
		server.turnTo(sandbox.NewServer(l, sandbox.ServerOptions{ListLimit: 20, Version: "3.4"}))
		requireProblem(t, <-ended, "gone from Splice 0.7 on", "--scan-history=updates")
		want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End())
		require.Empty(t, sandbox.Diff(want, relations(t, database)), "the updates were read to the end before")
	})
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		l := sandbox.NewLedger(sandbox.Options{Seed: 62})
		cfg := indexerFor(throwaway.Migrated(t, migrate), "", defaultScope())
		cfg.UntilCurrent = false
		cfg.ScanURL = []string{serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"}))}
		requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "gone from Splice 0.7 on", "--scan-history=updates")
		cfg.ScanURL[0] += "/elsewhere"
		requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "/elsewhere/v0/transactions", "mostly https://HOST/api/scan")
	})
}

// A Scan service that is down does not disturb the updates, and a participant that is down not the history.
func TestOneSourceDownDoesNotDisturbTheOther(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 63})
	l.Grow(100)
	var scanDown, ledgerDown atomic.Bool
	fault := func(down *atomic.Bool) func(*http.Request) *sandbox.Fault {
		return func(*http.Request) *sandbox.Fault {
			if down.Load() {
				return &sandbox.Fault{Status: http.StatusBadGateway, ContentType: "text/html", Body: "<html>away</html>"}
			}
			return nil
		}
	}
	scanDown.Store(true)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{Fault: fault(&scanDown)})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{Fault: fault(&ledgerDown)}), defaultScope())
	cfg.ScanURL, cfg.Listen = []string{serveScan(t, scan)}, "127.0.0.1:0"
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	waitForTask(t, database, "%502 Bad Gateway%")
	// What was committed is seen a moment before the process says so.
	tells := func(parts ...string) {
		t.Helper()
		eventually(t, strings.Join(parts, ", "), func() bool {
			status, body := readiness(t, &log)
			require.Equal(t, http.StatusServiceUnavailable, status)
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(body, part) })
		})
	}
	for range 2 {
		scanDown.Store(true)
		l.Grow(50)
		waitFor(t, database, lastUpdate(l))
		tells("\nupdates: leading\n", "\nscan: ")

		ledgerDown.Store(true)
		scanDown.Store(false)
		l.Grow(50)
		waitForHistory(t, database, scan)
		tells("\ntransactions: leading\n", "\nscan: reachable\n")
		ledgerDown.Store(false)
	}
	waitFor(t, database, lastUpdate(l))
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// A service that is still completing its own history is tried again, and so is a proxy that finds nothing behind it where
// a history is stored.
func TestAServiceThatIsBackfillingIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 65})
	l.Grow(100)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{Backfilling: true})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, "", defaultScope())
	server := newSwitchable(t, page(http.StatusBadGateway))
	cfg.ScanURL, cfg.Listen, cfg.UntilCurrent = []string{server.URL}, "127.0.0.1:0", false
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	waitForTask(t, database, "%502 Bad Gateway%")
	server.turnTo(scan)
	waitForTask(t, database, "the service is still backfilling its own history")
	_, body := readiness(t, &log)
	require.Contains(t, body, "transactions: leading, trying again: the service is still backfilling its own history\n")
	require.Zero(t, count(t, database, "ledger.transactions"))
	scan.SetBackfilling(false)
	log.wait(t, "caught up")
	require.NoError(t, daemon.finish())

	server.turnTo(page(http.StatusNotFound))
	var again journal
	daemon = startLogged(t, cfg, again.logger())
	require.Contains(t, again.wait(t, "retrying")["error"], "what answers now is not a Scan service")
	server.turnTo(scan)
	again.wait(t, "caught up")
	eventually(t, "the task works again", func() bool {
		return count(t, database, "indexer.tasks WHERE task = 'transactions' AND succeeded_at > failed_at") > 0
	})
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// A record that can't be understood ends the history with an error that names it and the field, and nothing of its page
// is stored. The updates become current all the same.
func TestABadRecordEndsTheHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pattern, with, field string }{
		"half an exponent":   {`"amount"\s*:\s*"[^"]*"`, `"amount":"1e"`, "transfer.receivers[0].amount"},
		"another's part":     {`"transaction_type"\s*:\s*"transfer"`, `"transaction_type":"mint"`, "contradicts the transaction_type"},
		"a missing receiver": {`"amount"\s*:`, `"mount":`, "transfer.receivers[0].amount"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 66})
			l.Grow(300)
			const page = 20
			bad, place := "", 0
			ids := sandbox.NewScan(l, sandbox.ScanOptions{}).EventIDs()
			for _, row := range sandbox.NewScan(l, sandbox.ScanOptions{}).Truth()["transfers"] {
				id := row["event_id"].(string)
				if place = slices.Index(ids, id); place > 2*page {
					bad = id
					break
				}
			}
			require.NotEmpty(t, bad)
			scan := sandbox.NewScan(l, sandbox.ScanOptions{PageLimit: page, Rewrite: func(e sandbox.Element) []byte {
				if e.EventID != bad {
					return e.Raw
				}
				return replaceFirst(e.Raw, c.pattern, c.with)
			}})
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
			cfg.ScanURL = []string{serveScan(t, scan)}
			err := RunIndexer(t.Context(), cfg, testLogger(t))
			var undecodable *ledger.DecodeError
			require.ErrorAs(t, err, &undecodable)
			for _, part := range []string{"transactions: ", bad, c.field} {
				require.Contains(t, err.Error(), part)
			}
			require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
			stored := historyRelations(t, database)
			require.LessOrEqual(t, len(stored["transactions"]), place)
			require.NotEmpty(t, stored["transactions"])
			for _, row := range stored["transactions"] {
				require.NotEqual(t, bad, row["event_id"])
			}
		})
	}
}

// Records with two parts or without a date are kept raw, told of once and counted. They are verified, sealed and repaired as others
// are.
func TestRecordsOfUnknownShapes(t *testing.T) {
	t.Parallel()
	brief.Long(t, "reads several histories one after the other")
	l := sandbox.NewLedger(sandbox.Options{Seed: 71})
	l.Grow(300)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{OddShapes: true, BalanceChanges: true, PageLimit: 60})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, "", defaultScope())
	cfg.ScanURL, cfg.Listen, cfg.UntilCurrent, cfg.VerifyRate = []string{serveScan(t, scan)}, "127.0.0.1:0", false, 100_000
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	waitForHistory(t, database, scan)
	l.Grow(100)
	waitForHistory(t, database, scan)
	const verified = "SELECT coalesce(string_agg(DISTINCT result, ' '), 'none') FROM ledger.verifications WHERE stream = 'transactions'"
	waitUntil(t, database, "EXISTS (SELECT FROM ledger.verifications WHERE stream = 'transactions')")
	unknown := scan.Truth()["unknown_transactions"]
	require.NotEmpty(t, unknown)
	counted := fmt.Sprintf("\nledger_indexer_rows_total{relation=\"unknown_transactions\"} %d\n", len(unknown))
	eventually(t, counted, func() bool {
		_, metrics := ask(t, &log, "/metrics") // behind the commit
		return strings.Contains(metrics, counted)
	})
	require.NoError(t, daemon.finish())
	require.Equal(t, []string{"equal"}, collect[string](t, database, verified))

	truth := scan.Truth()
	require.Empty(t, sandbox.Diff(truth, historyRelations(t, database)))
	lines := log.lines(t, "a record is of no kind that this version knows; such records are kept raw in ledger.unknown_transactions")
	require.Len(t, lines, 1)
	require.Equal(t, unknown[0]["event_id"], lines[0]["event_id"])
	require.Equal(t, "WARN", lines[0]["level"])

	verification := VerifyConfig{Database: cfg.Database, Sources: cfg.Sources, Verify: config.Verify{All: true, Repair: true}}
	differences := 0
	count := func(d audit.Difference) { differences++ }
	_, err := RunVerify(t.Context(), verification, testLogger(t), count)
	require.NoError(t, err)
	require.Zero(t, differences)
	conn := open(t, database)
	for _, damage := range []string{
		"DELETE FROM indexer.unknown_transactions WHERE seq = (SELECT min(seq) FROM indexer.unknown_transactions)",
		"UPDATE indexer.transactions SET kind = 'mint' WHERE seq = (SELECT min(seq) FROM indexer.unknown_transactions)",
		"UPDATE indexer.transactions SET date = now() WHERE seq = (SELECT min(seq) FROM indexer.transactions WHERE date IS NULL)",
	} {
		tag, err := conn.Exec(t.Context(), damage)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected(), damage)
		differences = 0
		result, err := RunVerify(t.Context(), verification, testLogger(t), count)
		require.NoError(t, err)
		require.Positive(t, differences, damage)
		require.Zero(t, result.Remaining(true), damage)
		require.Empty(t, sandbox.Diff(truth, historyRelations(t, database)), damage)
	}
}

// Each stream has a leader of its own, which may be another process, and who stands by takes over what becomes free.
func TestEachStreamHasALeaderOfItsOwn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for sessions that the server has to end, and that takes seconds")
	l := sandbox.NewLedger(sandbox.Options{Seed: 67})
	l.Grow(100)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	var firstLog, secondLog journal
	first := startLogged(t, cfg, firstLog.logger())
	firstLog.wait(t, "caught up")
	cfg.ScanURL, cfg.Listen = []string{serveScan(t, scan)}, "127.0.0.1:0"
	second := startLogged(t, cfg, secondLog.logger())
	secondLog.wait(t, "caught up")
	secondLog.wait(t, "not writing")
	status, body := readiness(t, &secondLog)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "\nupdates: standing by: another process leads\ntransactions: leading\n")
	l.Grow(50)
	waitFor(t, database, lastUpdate(l))
	waitForHistory(t, database, scan)

	require.NoError(t, first.finish())
	l.Grow(50)
	waitFor(t, database, lastUpdate(l))
	waitForHistory(t, database, scan)
	require.NoError(t, second.finish())
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// The history of another network is refused, at the start and while the daemon runs.
func TestAnotherNetwork(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	first, second := sandbox.NewLedger(sandbox.Options{Seed: 68}), sandbox.NewLedger(sandbox.Options{Seed: 69})
	first.Grow(100)
	second.Grow(100)
	require.NotEqual(t, first.DSO(), second.DSO())
	server := newSwitchable(t, sandbox.NewScan(first, sandbox.ScanOptions{}))
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, "", defaultScope())
	cfg.ScanURL = []string{server.URL}
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	log.wait(t, "caught up")
	server.turnTo(sandbox.NewScan(second, sandbox.ScanOptions{}))
	requireProblem(t, daemon.ended(t), first.DSO(), second.DSO(), "--scan-url")
	requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), first.DSO(), second.DSO(), "--scan-url")
	require.Empty(t, sandbox.Diff(sandbox.NewScan(first, sandbox.ScanOptions{}).Truth(), historyRelations(t, database)))
}
