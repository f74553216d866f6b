package check

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/sandbox"
)

// What the clients refuse is a finding that repeats no secret.
func TestURLForms(t *testing.T) {
	t.Parallel()
	for given, says := range map[string]string{
		"participant.example.com:7575": "must be of the form http://host:port/prefix or https://host:port/prefix",
		"http://u:hunter2@host:port":   "must be of the form",
		"https://hunter2/y@host":       "an @ behind its host",
	} {
		report := look(t, Config{LedgerURL: given, ScanURL: given})
		for group, flag := range map[string]string{GroupLedger: "--ledger-url", GroupScan: "--scan-url"} {
			require.Equal(t, []string{"problem " + group + "/url"}, of(report, group), given)
			require.Contains(t, find(t, report, group, "url").Text, flag)
			require.Contains(t, find(t, report, group, "url").Text, says)
		}
		requireNoSecret(t, report, "hunter2")
	}
}

// Both servers are connected to in the same way.
func connecting(t *testing.T, cfg Config) (ledgerSide, scanSide []string, report Report) {
	t.Helper()
	cfg.ScanURL, cfg.ScanAccess = cfg.LedgerURL, cfg.LedgerAccess
	report = look(t, cfg)
	return of(report, GroupLedger), of(report, GroupScan), report
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		ledgerSide, scanSide, report := connecting(t, Config{LedgerURL: scheme + "://127.0.0.1:1"})
		require.Equal(t, []string{"ok ledger/url", "problem ledger/connection"}, ledgerSide)
		require.Equal(t, []string{"ok scan/url", "problem scan/connection"}, scanSide)
		require.Contains(t, find(t, report, GroupLedger, "connection").Text, "nothing listens at "+scheme+"://127.0.0.1:1: ")
		require.Contains(t, find(t, report, GroupScan, "connection").Do, "check the port in --scan-url")
	}
}

func TestNoSuchHost(t *testing.T) {
	t.Parallel()
	_, _, report := connecting(t, Config{LedgerURL: "https://participant.invalid:7575"})
	f := find(t, report, GroupLedger, "connection")
	require.Equal(t, Problem, f.Level)
	require.Contains(t, f.Text, "participant.invalid")
	require.Contains(t, f.Do, "DNS")
}

// silent takes connections and never says a word.
func silent(t *testing.T) (address string) {
	t.Helper()
	return speaking(t, "", false)
}

// speaking says something to everybody who says something, and then hangs up, or nothing more.
func speaking(t *testing.T, text string, hangsUp bool) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var connections sync.WaitGroup
	done, end := context.WithCancel(context.Background())
	t.Cleanup(connections.Wait)
	t.Cleanup(end)
	t.Cleanup(func() { _ = listener.Close() })
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write([]byte(text))
				if !hangsUp {
					<-done.Done()
				}
			})
		}
	})
	return listener.Addr().String()
}

func TestASilentServerIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	address := silent(t)
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			ledgerSide, scanSide, report := connecting(t, Config{
				LedgerURL: scheme + "://" + address, DatabaseURL: "postgres://u:hunter2@" + address + "/d", Timeout: shortPatience,
			})
			require.Equal(t, []string{"ok ledger/url", "problem ledger/connection"}, ledgerSide)
			require.Equal(t, []string{"ok scan/url", "problem scan/connection"}, scanSide)
			require.Equal(t, []string{"problem database/connection"}, of(report, GroupDatabase))
			require.Contains(t, find(t, report, GroupLedger, "connection").Text, shortPatience.String())
			require.Contains(t, find(t, report, GroupDatabase, "connection").Text, shortPatience.String())
			requireNoSecret(t, report, "hunter2")
		})
	}
}

func TestAnotherProtocolAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says    string
		hangsUp bool
		text    string
	}{
		"gRPC":    {"\x00\x00\x12\x04\x00\x00\x00\x00\x00", true, "as a port for gRPC does"},
		"SSH":     {"SSH-2.0-OpenSSH_9.2\r\n", false, "malformed HTTP"},
		"nothing": {"", true, "takes connections and sends no HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := speaking(t, c.says, c.hangsUp)
			ledgerSide, scanSide, report := connecting(t, Config{LedgerURL: "http://" + address})
			require.Equal(t, []string{"ok ledger/url", "problem ledger/connection"}, ledgerSide)
			require.Equal(t, []string{"ok scan/url", "problem scan/connection"}, scanSide)
			require.Contains(t, find(t, report, GroupLedger, "connection").Text, c.text)
		})
	}
}

func TestTheWrongSchemeIsSeen(t *testing.T) {
	t.Parallel()
	handler := sandbox.NewServer(grown(5), sandbox.ServerOptions{})
	secure := httptest.NewTLSServer(handler)
	defer secure.Close()
	plain := serve(t, handler)

	asPlain := strings.Replace(secure.URL, "https://", "http://", 1)
	ledgerSide, scanSide, report := connecting(t, Config{LedgerURL: asPlain})
	require.Equal(t, []string{"ok ledger/url", "problem ledger/answer"}, ledgerSide)
	require.Equal(t, []string{"ok scan/url", "problem scan/answer"}, scanSide)
	require.Equal(t, "write https:// in --ledger-url", find(t, report, GroupLedger, "answer").Do)

	asSecure := strings.Replace(plain.URL, "http://", "https://", 1)
	ledgerSide, scanSide, report = connecting(t, Config{LedgerURL: asSecure})
	require.Equal(t, []string{"ok ledger/url", "problem ledger/connection"}, ledgerSide)
	require.Equal(t, []string{"ok scan/url", "problem scan/connection"}, scanSide)
	require.Contains(t, find(t, report, GroupLedger, "connection").Text, "does not speak TLS")
}

// Whatever stands before the API: one cause is one problem, with what the clients say of it.
func TestAnswersThatAreNotTheAPI(t *testing.T) {
	t.Parallel()
	api := sandbox.NewServer(grown(5), sandbox.ServerOptions{})
	under := func(prefix string) http.Handler {
		mux := http.NewServeMux()
		mux.Handle(prefix+"/", http.StripPrefix(prefix, api))
		return mux
	}
	answer := func(status int, kind, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	for name, c := range map[string]struct {
		handler http.Handler
		path    string
		says    string
		do      string
	}{
		"the API's own path in the URL": {api, "/v2", "no update stream", "without /v2"},
		"a prefix that is missing":      {under("/json-api"), "", "no update stream", "such as /json-api"},
		"a web page":                    {answer(200, "text/html; charset=UTF-8", "<!DOCTYPE html><p>Welcome"), "", "is --ledger-url the base of the JSON API?", "that it is the base of the participant's JSON API"},
		"a page without its type":       {answer(404, "", " <html>"), "", "no update stream", "path prefix"},
		"a login page":                  {redirect("https://login.example.com/?client_secret=hunter2"), "", "it redirects to https://login.example.com/, which is not followed", "the right server"},
		"nobody behind the proxy":       {answer(502, "text/html", "<html>Bad Gateway"), "", "a proxy may be what answers: see whether the server behind it runs", "the right server"},
		"starting":                      {answer(503, "text/plain", "\x1b[2Jnot ready\n"), "", "not ready", "the right server"},
		"Scan":                          {scanService(t, scanOptions{}), "", "no update stream", "path prefix"},
		"an endless answer":             {answer(200, "text/html", strings.Repeat("<html>", 1<<20)), "", "<html>", "what stands between here and --ledger-url"},
		"asked too often":               {answer(429, "text/plain", "slower"), "", "429 Too Many Requests", "wait a while"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, c.handler)
			report := look(t, Config{LedgerURL: server.URL + c.path})
			require.Equal(t, []string{"ok ledger/url", "problem ledger/answer"}, of(report, GroupLedger))
			require.Equal(t, 1, report.Problems, "one cause is one problem")
			f := find(t, report, GroupLedger, "answer")
			require.Contains(t, f.Text, c.says)
			require.Contains(t, f.Do, c.do)
			requireNoSecret(t, report, "hunter2")
		})
	}
}

// Where everything is answered with success, only reading shows that it is another API.
func TestAnotherJSONAPI(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"status": "up"}`, `[]`, `null`, `"\u001b[2J"`, ``, `{"version": {"major": 3}, "offset": "7"}`} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		})).URL
		report := look(t, Config{LedgerURL: url, Scope: ofAlice})
		require.Positive(t, report.Problems, body)
		require.Empty(t, report.Next)
	}
}

func redirect(to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(http.StatusFound)
	})
}

func TestTokenOverPlainHTTP(t *testing.T) {
	t.Parallel()
	token := file(t, "token", "s3cret")
	for host, level := range map[string]Level{"127.0.0.1": OK, "[::1]": OK, "localhost": OK, "192.0.2.1": Warning} {
		report := look(t, Config{LedgerURL: "http://" + host + ":1", LedgerAccess: access.Config{TokenFile: token}, Timeout: shortPatience})
		require.Equal(t, level, find(t, report, GroupLedger, "url").Level, host)
		requireNoSecret(t, report, "s3cret")
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(5), sandbox.ServerOptions{})
	for version, level := range map[string]Level{
		"2.10.1": Problem, "3.2.0": Problem, "3.3.9": Warning, "3.4.0-SNAPSHOT": OK, "3.6.12": OK, "3.7.0": Warning, "4.0.0": Warning,
		"main": Note, "3.x": Note, "3": Note, "99999999999999999999.1": Note, "3.5\x1b[2J": Note,
	} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/version" {
				inner.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"version": version})
		})).URL
		report := look(t, Config{LedgerURL: url})
		require.Equal(t, level, find(t, report, GroupLedger, "version").Level, version)
	}
}

func TestTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(5), sandbox.ServerOptions{})
	for date, level := range map[string]Level{
		"":                                   Note, // not told: no finding
		"yesterday":                          Note,
		httpDate(0):                          OK,
		httpDate(-10 * time.Minute):          Warning,
		httpDate(100 * 365 * 24 * time.Hour): Warning,
	} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Date"] = []string{date}
			if date == "" {
				w.Header()["Date"] = nil
			}
			inner.ServeHTTP(w, r)
		})).URL
		report := look(t, Config{LedgerURL: url})
		found := of(report, GroupClocks)
		if level == Note {
			require.Empty(t, found)
			continue
		}
		require.Equal(t, []string{string(level) + " clocks/participant"}, found)
	}
}

func httpDate(ahead time.Duration) string {
	return time.Now().Add(ahead).UTC().Format(http.TimeFormat)
}
