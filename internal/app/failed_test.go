package app

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// refusals are what a participant and a Scan service can be told to say that trying again can't cure.
type refusals struct{ updates, history atomic.Bool }

func (r *refusals) server() sandbox.ServerOptions {
	return sandbox.ServerOptions{Fault: func(req *http.Request) *sandbox.Fault {
		if r.updates.Load() && strings.HasPrefix(req.URL.Path, "/v2/updates") {
			return &sandbox.Fault{Status: 403, ContentType: "application/json", Body: `{"code":"NA"}`}
		}
		return nil
	}}
}

func (r *refusals) scan() sandbox.ScanOptions {
	return sandbox.ScanOptions{Fault: func(req *http.Request) *sandbox.Fault {
		if r.history.Load() && req.URL.Path == "/v0/transactions" {
			return &sandbox.Fault{Status: 400, ContentType: "application/json", Body: `{"error":"no such order, alice::1220ab"}`}
		}
		return nil
	}}
}

const (
	lacksRight  = "the participant does not let the token's user read as any party"
	grantRight  = "grant the user CanReadAsAnyParty"
	badRequest  = "the Scan service refuses the request as invalid"
	seeScanURL  = "see that --scan-url is a Scan service of Splice 0.6 or earlier"
	othersGoOn  = "the stream can't continue; the other one does without it"
	failedState = `ledger_indexer_stream_state{state="failed",stream="`
)

// What ends one stream for good leaves the other alone, is told wherever an operator looks, and is over when it is
// cured.
func TestAStreamThatFailsLeavesTheOtherAlone(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]string{"updates": "from the start", "transactions": "later"} {
		t.Run(name+" "+when, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l := sandbox.NewLedger(sandbox.Options{Seed: 80})
			l.Grow(100)
			var refused refusals
			scan := sandbox.NewScan(l, refused.scan())
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, refused.server()), defaultScope())
			cfg.ScanURL, cfg.Listen = []string{serveScan(t, scan)}, "127.0.0.1:0"
			fails, says, does, other := &refused.updates, lacksRight, grantRight, "transactions"
			if name == "transactions" {
				fails, says, does, other = &refused.history, badRequest, seeScanURL, "updates"
			}
			goesOn := func() {
				l.Grow(50)
				if other == "updates" {
					waitFor(t, database, lastUpdate(l))
				} else {
					waitForHistory(t, database, scan)
				}
			}
			fails.Store(when == "from the start")
			var log journal
			daemon := startLogged(t, cfg, log.logger())
			goesOn()
			if when == "later" {
				waitFor(t, database, lastUpdate(l))
				waitForHistory(t, database, scan)
				fails.Store(true)
				l.Grow(50)
			}
			line := log.wait(t, othersGoOn)
			require.Equal(t, "ERROR", line["level"])
			require.Equal(t, name, line["stream"])
			require.Contains(t, line["error"], says)
			require.Contains(t, line["error"], "what to do: "+does)
			require.Equal(t, name == "transactions", strings.Contains(line["error"].(string), "alice::1220ab"), "the log is for the operator")
			waitUntil(t, database, "EXISTS (SELECT FROM indexer.tasks WHERE task = '"+name+"' AND failed_at > coalesce(succeeded_at, '-infinity') "+
				"AND failure LIKE '%what to do: "+does+"%')")
			goesOn()
			status, body := readiness(t, &log)
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Regexp(t, `(?m)^`+name+`: failed: .*`+says+`.*; what to do: `+does+`.*; it is looked at again every 10m0s$`, body)
			require.Contains(t, body, "\n"+other+": leading\n")
			require.NotContains(t, body, "alice", "whoever connects may read it")
			_, metrics := ask(t, &log, "/metrics")
			require.Contains(t, metrics, failedState+name+"\"} 1\n")
			require.Contains(t, metrics, `ledger_indexer_stream_state{state="leads",stream="`+name+"\"} 0\n")
			require.Contains(t, metrics, `ledger_indexer_stream_state{state="leads",stream="`+other+"\"} 1\n")
			require.Contains(t, metrics, failedState+other+"\"} 0\n")

			// Another process whose source lets it read takes the stream over, which is over with the failure.
			cfg.LedgerURL, cfg.ScanURL, cfg.Listen = serve(t, l, sandbox.ServerOptions{}), []string{serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{}))}, ""
			second := startIndexer(t, cfg)
			waitFor(t, database, lastUpdate(l))
			waitForHistory(t, database, scan)
			waitUntil(t, database, "EXISTS (SELECT FROM indexer.tasks WHERE task = '"+name+"' AND succeeded_at > failed_at)")
			require.NoError(t, second.finish())
			require.NoError(t, daemon.finish(), "told to stop")
			require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
			require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
		})
	}
}

// Who has cured what ended a stream need not start anything again.
func TestAStreamThatIsCuredGoesOn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 81})
	l.Grow(100)
	var refused refusals
	scan := sandbox.NewScan(l, refused.scan())
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, refused.server()), defaultScope())
	cfg.ScanURL, cfg.Listen, cfg.lookAgain = []string{serveScan(t, scan)}, "127.0.0.1:0", 10*time.Millisecond
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	for _, fails := range []*atomic.Bool{&refused.updates, &refused.history, &refused.updates} {
		before := len(log.lines(t, othersGoOn))
		fails.Store(true)
		l.Grow(50)
		eventually(t, "three failures", func() bool { return len(log.lines(t, othersGoOn)) >= before+3 })
		fails.Store(false)
		waitFor(t, database, lastUpdate(l))
		waitForHistory(t, database, scan)
		eventually(t, "leading both streams", func() bool {
			status, body := readiness(t, &log)
			return status == http.StatusOK && strings.Contains(body, "\nupdates: leading\ntransactions: leading\n")
		})
	}
	_, metrics := ask(t, &log, "/metrics")
	require.NotContains(t, metrics, failedState+"updates\"} 1\n")
	require.Contains(t, metrics, `ledger_indexer_stream_state{state="leads",stream="updates"} 1`+"\n")
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// Only where nothing that was asked for can continue the process ends, and says why of each.
func TestTheProcessEndsWhenNoStreamCanGoOn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	for first, c := range map[string]struct {
		release string // of Splice; without a history from 0.7 on
		says    []string
	}{
		"updates first":      {"", []string{"; transactions: ", badRequest, "; transactions: " + seeScanURL}},
		"transactions first": {"0.7.1", []string{"; transactions: the Scan service has no transaction history", "; transactions: read the updates of the network instead"}},
	} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			l := sandbox.NewLedger(sandbox.Options{Seed: 82})
			l.Grow(100)
			var refused refusals
			options := refused.scan()
			options.Release = c.release
			// The one that is to fail last is away at first: it waits.
			ledger, scan := newSwitchable(t, page(http.StatusBadGateway)), newSwitchable(t, page(http.StatusBadGateway))
			failUpdates := func() { refused.updates.Store(true); ledger.turnTo(sandbox.NewServer(l, refused.server())) }
			failHistory := func() { refused.history.Store(c.release == ""); scan.turnTo(sandbox.NewScan(l, options)) }
			cfg := indexerFor(throwaway.Migrated(t, migrate), ledger.URL, defaultScope())
			cfg.ScanURL = []string{scan.URL}
			var log journal
			daemon := startLogged(t, cfg, log.logger())
			if first == "updates first" {
				failUpdates()
				log.wait(t, othersGoOn)
				failHistory()
			} else {
				failHistory()
				log.wait(t, othersGoOn)
				failUpdates()
			}
			requireProblem(t, daemon.ended(t), append(c.says, "no stream can continue: updates: ", lacksRight, "; updates: "+grantRight)[1:]...)
			require.Contains(t, daemon.err.Error(), c.says[0])
		})
	}
}

// Until current: each stream becomes current or fails, and the process ends with the failure.
func TestUntilCurrentWithAStreamThatFails(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 83})
	l.Grow(100)
	var refused refusals
	refused.history.Store(true)
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, refused.server()), defaultScope())
	cfg.ScanURL = []string{serveScan(t, sandbox.NewScan(l, refused.scan()))}
	requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "transactions: ", badRequest, seeScanURL)
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
	refused.updates.Store(true)
	requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)),
		"no stream can continue: updates: ", lacksRight, "; transactions: ", badRequest, "updates: "+grantRight)
}
