package app

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	for _, name := range []string{"updates", "transactions"} {
		for _, when := range []string{"from the start", "later"} {
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
	for name, c := range map[string]struct {
		scan sandbox.ScanOptions
		says []string
	}{
		"both refused":           {says: []string{"; transactions: ", badRequest, "; transactions: " + seeScanURL}},
		"a Scan without history": {scan: sandbox.ScanOptions{Release: "0.7.1"}, says: []string{"; transactions: the Scan service has no transaction history", "; transactions: read the updates of the network instead"}},
	} {
		for _, first := range []string{"updates first", "transactions first"} {
			t.Run(name+", "+first, func(t *testing.T) {
				t.Parallel()
				l := sandbox.NewLedger(sandbox.Options{Seed: 82})
				l.Grow(100)
				var refused refusals
				options := refused.scan()
				options.Release = c.scan.Release
				// The one that is to fail last is away at first: it waits.
				ledger, scan := newSwitchable(t, page(http.StatusBadGateway)), newSwitchable(t, page(http.StatusBadGateway))
				failUpdates := func() { refused.updates.Store(true); ledger.turnTo(sandbox.NewServer(l, refused.server())) }
				failHistory := func() { refused.history.Store(c.scan.Release == ""); scan.turnTo(sandbox.NewScan(l, options)) }
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
					if c.scan.Release != "" {
						log.wait(t, "there is no transaction history to read; the updates continue without it")
					} else {
						log.wait(t, othersGoOn)
					}
					failUpdates()
				}
				requireProblem(t, daemon.ended(t), append(c.says, "no stream can continue: updates: ", lacksRight, "; updates: "+grantRight)[1:]...)
				require.Contains(t, daemon.err.Error(), c.says[0])
			})
		}
	}
}

// Until current: each stream becomes current or fails, and the process ends with the failure.
func TestUntilCurrentWithAStreamThatFails(t *testing.T) {
	t.Parallel()
	brief.Long(t, "takes a database for each stream that fails")
	for name, says := range map[string][]string{
		"updates":      {"updates: ", lacksRight, grantRight},
		"transactions": {"transactions: ", badRequest, seeScanURL},
		"both":         {"no stream can continue: updates: ", lacksRight, "; transactions: ", badRequest, "updates: " + grantRight},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := sandbox.NewLedger(sandbox.Options{Seed: 83})
			l.Grow(100)
			var refused refusals
			refused.updates.Store(name != "transactions")
			refused.history.Store(name != "updates")
			scan := sandbox.NewScan(l, refused.scan())
			database := throwaway.Migrated(t, migrate)
			cfg := indexerFor(database, serve(t, l, refused.server()), defaultScope())
			cfg.ScanURL = []string{serveScan(t, scan)}
			requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), says...)
			want := map[string][]sandbox.Row{}
			if name == "transactions" {
				want = l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())
			}
			require.Empty(t, sandbox.Diff(want, relations(t, database)))
			if name == "updates" {
				want = scan.Truth()
			}
			if name != "transactions" {
				require.Empty(t, sandbox.Diff(want, historyRelations(t, database)))
			}
		})
	}
}

// proxied is a proxy before a server that refuses every nth request for what matters, once it has let one through, as one
// does that finds them too many. It counts what it refused.
func proxied(t *testing.T, server, path string, nth int64) (address string, refused *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(server)
	require.NoError(t, err)
	behind := httputil.NewSingleHostReverseProxy(target)
	var seen atomic.Int64
	refused = &atomic.Int64{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, path) && seen.Add(1)%nth == 0 {
			refused.Add(1)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<html>403 Forbidden: too many requests from your address</html>")
			return
		}
		body, err := io.ReadAll(r.Body) // an answer that begins before the request was read to its end may be cut off
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, refused
}

// A proxy that now and then refuses a request ends nothing and loses nothing.
func TestRefusalsOfAProxyAreWaitedOut(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 84})
	l.Grow(300)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{PageLimit: 20})
	database := throwaway.Migrated(t, migrate)
	ledgerURL, ledgerRefused := proxied(t, serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 20}), "/v2/updates", 11)
	scanURL, scanRefused := proxied(t, serveScan(t, scan), "/v0/transactions", 13)
	cfg := indexerFor(database, ledgerURL, defaultScope())
	cfg.ScanURL = []string{scanURL}
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	for ledgerRefused.Load() < 2 || scanRefused.Load() < 2 {
		l.Grow(5)
		waitFor(t, database, lastUpdate(l))
		waitForHistory(t, database, scan)
	}
	require.NoError(t, daemon.finish())
	retries := log.lines(t, "retrying")
	require.NotEmpty(t, retries)
	for _, line := range retries {
		require.Contains(t, line["error"], "it let requests through before, so it is asked again")
	}
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// Behind a gateway that lets nothing through but the operations of interface.md, and refuses the rest, everything is read.
func TestAGatewayThatRefusesUnknownPaths(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.4", "3.5"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := sandbox.NewLedger(sandbox.Options{Seed: 85})
			l.Grow(100)
			behind := sandbox.NewServer(l, sandbox.ServerOptions{Version: version})
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/v2/state/active-contracts", "/v2/updates/flats", lookupPath, "/v2/updates/update-by-id", "/v2/package-vetting/update":
					behind.ServeHTTP(w, r)
				default:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"message":"Missing Authentication Token"}`)
				}
			}))
			t.Cleanup(gateway.Close)
			database := throwaway.Migrated(t, migrate)
			require.NoError(t, RunIndexer(t.Context(), indexerFor(database, gateway.URL, defaultScope()), testLogger(t)))
			require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: version}, l.End()), relations(t, database)))
		})
	}
}
