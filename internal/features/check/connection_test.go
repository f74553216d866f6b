package check

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/sandbox"
)

func TestURLForms(t *testing.T) {
	t.Parallel()
	for given, says := range map[string]string{
		"participant.example.com:7575":       "has no scheme",
		"grpc://participant:7575":            "has the scheme grpc",
		"postgres://u:hunter2@host/db":       "has the scheme postgres",
		"https://":                           "names no host",
		"http://127.0.0.1:99999":             "has the port 99999",
		"http://127.0.0.1:1/api\n":           "has white space around it",
		"http://host/?token=hunter2":         "has a query",
		"http://u:hunter2@host:port":         "can't be read as a URL",
		"http://u:1/hunter2@host":            "an @ behind its host",
		"https://hunter2/y@host":             "an @ behind its host",
		"http://\x00\x1b[31mhunter2":         "can't be read as a URL",
		strings.Repeat("x", 100_000) + "://": "has the scheme",
	} {
		for _, group := range []string{GroupLedger, GroupScan} {
			cfg := Config{LedgerURL: given}
			if group == GroupScan {
				cfg = Config{ScanURL: given}
			}
			report := look(t, cfg)
			require.Equal(t, []string{"problem " + group + "/url"}, of(report, group), given)
			require.Contains(t, find(t, report, group, "url").Text, says)
			requireNoSecret(t, report, "hunter2")
		}
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
		require.Contains(t, find(t, report, GroupLedger, "connection").Text, "127.0.0.1:1 refuses connections")
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
	for scheme, topic := range map[string]string{"http": "answer", "https": "tls"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			ledgerSide, scanSide, report := connecting(t, Config{
				LedgerURL: scheme + "://" + address, DatabaseURL: "postgres://u:hunter2@" + address + "/d", Timeout: shortPatience,
			})
			require.Equal(t, []string{"ok ledger/url", "ok ledger/connection", "problem ledger/" + topic}, ledgerSide)
			require.Equal(t, []string{"ok scan/url", "ok scan/connection", "problem scan/" + topic}, scanSide)
			require.Equal(t, []string{"problem database/connection"}, of(report, GroupDatabase))
			require.Contains(t, find(t, report, GroupLedger, topic).Text, shortPatience.String())
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
		"gRPC":    {"\x00\x00\x12\x04\x00\x00\x00\x00\x00", true, "HTTP/2"},
		"SSH":     {"SSH-2.0-OpenSSH_9.2\r\n", false, "sends no HTTP answer"},
		"garbage": {strings.Repeat("\x1b[31m\xff\n", 10_000), false, "sends no HTTP answer"},
		"no end":  {strings.Repeat("x", 10_000), false, "does not answer within"},
		"nothing": {"", true, "sends no HTTP answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := speaking(t, c.says, c.hangsUp)
			cfg := Config{LedgerURL: "http://" + address}
			if name == "no end" {
				cfg.Timeout = shortPatience
			}
			ledgerSide, _, report := connecting(t, cfg)
			require.Equal(t, []string{"ok ledger/url", "ok ledger/connection", "problem ledger/answer"}, ledgerSide)
			require.Contains(t, find(t, report, GroupLedger, "answer").Text, c.text)
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
	require.Equal(t, []string{"ok ledger/url", "ok ledger/connection", "problem ledger/tls"}, ledgerSide)
	require.Contains(t, scanSide, "problem scan/tls")
	require.Contains(t, find(t, report, GroupLedger, "tls").Do, secure.URL)

	asSecure := strings.Replace(plain.URL, "http://", "https://", 1)
	ledgerSide, scanSide, report = connecting(t, Config{LedgerURL: asSecure})
	require.Equal(t, []string{"ok ledger/url", "ok ledger/connection", "problem ledger/tls"}, ledgerSide)
	require.Contains(t, scanSide, "problem scan/tls")
	require.Contains(t, find(t, report, GroupLedger, "tls").Text, "does not speak TLS")

	// A server that hangs up instead of explaining is asked for a handshake.
	hangsUp := httptest.NewUnstartedServer(handler)
	hangsUp.Listener = &cutsPlain{Listener: hangsUp.Listener}
	hangsUp.StartTLS()
	defer hangsUp.Close()
	ledgerSide, _, report = connecting(t, Config{LedgerURL: strings.Replace(hangsUp.URL, "https://", "http://", 1)})
	require.Equal(t, []string{"ok ledger/url", "ok ledger/connection", "problem ledger/tls"}, ledgerSide)
	require.Contains(t, find(t, report, GroupLedger, "tls").Text, "speaks TLS")
}

// cutsPlain closes connections on which plain HTTP comes, without a word.
type cutsPlain struct{ net.Listener }

func (l *cutsPlain) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &cutPlain{Conn: conn}, nil
}

type cutPlain struct {
	net.Conn
	begun bool // what follows the first byte of a handshake is anything
	cut   bool
}

func (c *cutPlain) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.begun && p[0] == 'G' {
		c.cut = true
		_ = c.Conn.Close()
	}
	c.begun = c.begun || n > 0
	return n, err
}

func (c *cutPlain) Write(p []byte) (int, error) {
	if c.cut {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// Whatever stands before the API: the report says where the API is, or that there is none.
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
		"the API's own path in the URL": {api, "/v2", "", "/v2-less"},
		"one of its operations":         {api, "/v2/updates", "", "/v2-less"},
		"a prefix too many":             {api, "/ledger", "", "/v2-less"},
		"a prefix that is missing":      {under("/api/json-api"), "", "/api/json-api", "/api/json-api"},
		"an unknown prefix":             {under("/somewhere"), "", "no update stream", "path-prefix"},
		"a web page":                    {answer(200, "text/html; charset=UTF-8", "<!DOCTYPE html><p>Welcome"), "", "a web page answers (200 OK)", "path prefix"},
		"a page without its type":       {answer(404, "", " <html>"), "", "a web page answers (404 Not Found)", "path prefix"},
		"a login page":                  {redirect("https://login.example.com/?client_secret=hunter2"), "", "302 Found to https://login.example.com/", "redirects are not followed"},
		"a redirect to the secure port": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusMovedPermanently)
		}), "", "301 Moved Permanently", "use https:// in --ledger-url"},
		"a redirect to nowhere":   {redirect(""), "", "without a location", "--ledger-url"},
		"nobody behind the proxy": {answer(502, "text/html", "<html>Bad Gateway"), "", "502 Bad Gateway", "proxy"},
		"starting":                {answer(503, "text/plain", "\x1b[2Jnot ready\n"), "", "not ready", "ready"},
		"Scan":                    {scanService(t, scanOptions{}), "", "no update stream", "path prefix"},
		"an endless answer":       {answer(200, "text/html", strings.Repeat("<html>", 1<<20)), "", "a web page answers", "path prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, c.handler)
			report := look(t, Config{LedgerURL: server.URL + c.path})
			require.Equal(t, []string{"ok ledger/url", "ok ledger/connection", "problem ledger/answer"}, of(report, GroupLedger))
			require.Equal(t, 1, report.Problems, "one cause is one problem")
			f := find(t, report, GroupLedger, "answer")
			require.Contains(t, f.Text, c.says)
			do := c.do
			if do == "/v2-less" {
				require.True(t, strings.HasSuffix(f.Do, "use --ledger-url "+server.URL), f.Do)
				return
			}
			require.Contains(t, f.Do, do)
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
		require.Contains(t, levels(report), "problem scope/reading", body)
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

func TestNotReady(t *testing.T) {
	t.Parallel()
	inner := sandbox.NewServer(grown(5), sandbox.ServerOptions{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && !strings.Contains(r.Header.Get("Accept"), "text/plain"): // as 3.5.5 does
			w.WriteHeader(http.StatusNotAcceptable)
			return
		case r.URL.Path == "/readyz":
			http.Error(w, "[-] ledger failed (NOT_SERVING)", http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, r)
	})).URL
	report := look(t, Config{LedgerURL: url})
	require.Equal(t, []string{"warning ledger/ready", "note scan/url", "note database/url"}, wrong(report))
	require.Contains(t, find(t, report, GroupLedger, "ready").Text, "NOT_SERVING")
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
			fmt.Fprintf(w, `{"version": %q}`, version)
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

// An address must be understood with and without a port, and for the numeric addresses of both families.
func TestHostPort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://h": "h:443", "http://h": "h:80", "http://h:7575/p": "h:7575", "https://[::1]": "[::1]:443",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, hostPort(u))
	}
}
