package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

const (
	clientSecret   = "open&sesame=1234/+ x"
	fileToken      = "open-sesame-1234-of-the-file"
	ledgerPassword = "hunter2/&of the ledger"
	dbPassword     = "hunter2-5678-of-the-database"
)

// leaks is a run of the command at debug level with everything going wrong: what it prints anywhere, and the secrets
// that must not be in it.
type leaks struct {
	t       *testing.T
	environ map[string]string
	args    []string

	echo atomic.Int32 // so many more requests are answered with what they carry

	mu      sync.Mutex
	secrets map[string]bool
	printed strings.Builder
}

func newLeaks(t *testing.T, args ...string) *leaks {
	l := &leaks{t: t, secrets: map[string]bool{}, args: args}
	database, err := url.Parse(throwaway.Migrated(t, migrate))
	require.NoError(t, err)
	password, given := database.User.Password()
	if !given {
		password = dbPassword // the server asks for none
		database.User = url.UserPassword(database.User.Username(), password)
	}
	l.secret(password)
	l.environ = map[string]string{"INDEXER_DATABASE_URL": database.String(), "INDEXER_LISTEN": "127.0.0.1:0"}
	return l
}

// secret adds a text that must not be printed, in the forms in which it is sent.
func (l *leaks) secret(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secrets[text], l.secrets[url.QueryEscape(text)], l.secrets[url.PathEscape(text)] = true, true, true
}

// carries adds the secrets of a request, and is the text that says all of them.
func (l *leaks) carries(r *http.Request) string {
	scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if credentials != "" {
		l.secret(credentials)
	}
	if parts := strings.Split(credentials, "."); scheme == "Bearer" && len(parts) == 3 {
		l.secret(parts[1])
		l.secret(parts[2])
	}
	if _, password, ok := r.BasicAuth(); ok {
		l.secret(password)
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return fmt.Sprintf("a proxy says: %s %q %s", r.Header["Authorization"], r.Header["Authorization"], body)
}

// fault answers requests with what they carry as long as that is asked for, in the forms that servers and proxies have.
func (l *leaks) fault(r *http.Request) *sandbox.Fault {
	n := l.echo.Add(-1)
	if n < 0 {
		l.carries(r)
		return nil
	}
	text := l.carries(r)
	switch n % 3 {
	case 0:
		return &sandbox.Fault{Status: 500, ContentType: "text/plain", Body: text}
	case 1:
		return &sandbox.Fault{Status: 503, ContentType: "application/json",
			Body: fmt.Sprintf(`{"code":"SERVICE_NOT_RUNNING","cause":%q,"correlationId":%q,"context":{"got":%q}}`, text, text, text)}
	}
	return &sandbox.Fault{Status: 200, ContentType: "text/html", Body: strings.Repeat("-", 280) + text}
}

// command runs a command to its end.
func (l *leaks) command(code int, args ...string) {
	l.t.Helper()
	environ := maps.Clone(l.environ)
	environ["INDEXER_LOG_LEVEL"], environ["INDEXER_LOG_FORMAT"] = "debug", "json"
	got, stdout, stderr := command(l.t, environ, args...)
	require.Equal(l.t, code, got, stderr)
	l.saw(stdout + stderr)
}

func (l *leaks) saw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printed.WriteString(text)
}

// daemon runs the daemon until it is current, lets what it asks come back to it, and what spoil breaks go wrong.
func (l *leaks) daemon(ledger *sandbox.Ledger, spoil func(until func(message string) map[string]any)) {
	l.t.Helper()
	p := start(l.t, l.environ, append([]string{"run"}, l.args...)...)
	address := fmt.Sprint(p.until("listening")["address"])
	p.until("caught up")
	l.saw(processList(l.t, p))
	l.echo.Store(6)
	ledger.Grow(5)
	p.until("retrying")
	for _, answer := range []string{"/readyz", "/metrics", "/readyz", "/healthz", "/", "/status.json"} {
		l.echo.Store(2)
		l.saw(get(l.t, "http://"+address+answer))
	}
	l.echo.Store(0)
	spoil(p.until)
	l.saw(get(l.t, "http://"+address+"/readyz"))
	http.DefaultClient.CloseIdleConnections()
	p.signal(syscall.SIGTERM)
	require.Equal(l.t, config.ExitDone, p.wait(), p.text())
	l.saw(p.text())
}

// others runs the commands that look at the same things, while what they ask comes back to them, and the help.
func (l *leaks) others() {
	l.t.Helper()
	for _, echoes := range []int32{0, 1, 2, 100} {
		l.echo.Store(echoes)
		l.command(config.ExitDone, append([]string{"status"}, l.args...)...)
	}
	l.echo.Store(0)
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"status", "--help"}, {"check", "--help"}, {"packages", "vet", "--help"}} {
		l.command(config.ExitDone, args...)
	}
	away, err := url.Parse(l.environ["INDEXER_DATABASE_URL"])
	require.NoError(l.t, err)
	query := away.Query()
	query.Set("host", "127.0.0.1")
	query.Set("port", "1")
	away.RawQuery = query.Encode()
	right := l.environ
	l.environ = maps.Clone(right)
	l.environ["INDEXER_DATABASE_URL"] = away.String()
	l.command(config.ExitFailed, "status")
	l.environ = right
}

// check requires that these texts were printed and that no secret was.
func (l *leaks) check(says ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	printed := l.printed.String()
	for _, text := range append(says, "a proxy says: ", "127.0.0.1:1", "Usage: indexer", "ledger_indexer_requests_total") {
		require.Contains(l.t, printed, text)
	}
	for secret := range l.secrets {
		require.NotContains(l.t, printed, secret)
	}
}

// processList is what the machine's other users see of a program.
func processList(t *testing.T, p *program) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return strings.Join(p.cmd.Args, " ")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
	require.NoError(t, err)
	require.Contains(t, string(text), "run")
	return string(text)
}

func get(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	return path
}

func noSecretOfOAuthIsPrinted(t *testing.T) {
	slow.Long(t, "runs the daemon, and command after command beside it")
	ledger := grown(50)
	file := secretFile(t, clientSecret)
	l := newLeaks(t, "--ledger-oauth-client-secret-file="+file, "--ledger-oauth-client-id=indexer")
	l.secret(clientSecret)
	var broken atomic.Bool
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{
		ParticipantID: ledger.ParticipantID(),
		Fault: func(r *http.Request) *sandbox.Fault {
			if !broken.Load() {
				return nil
			}
			text := l.carries(r)
			return &sandbox.Fault{Status: 401, ContentType: "application/json",
				Body: fmt.Sprintf(`{"error":"invalid_client","error_description":%q}`, text)}
		},
	})
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAsAnyParty()}})
	authority.AddClient("indexer", clientSecret, "reader")
	endpoint := httptest.NewServer(authority)
	t.Cleanup(endpoint.Close)
	l.environ["INDEXER_LEDGER_URL"] = participantOf(t, ledger, sandbox.ServerOptions{Authority: authority, Fault: l.fault})
	l.environ["INDEXER_LEDGER_OAUTH_TOKEN_URL"] = endpoint.URL + "/token?policy=p0licy"
	l.secret("p0licy")

	l.daemon(ledger, func(until func(string) map[string]any) {
		authority.Revoke("reader")
		broken.Store(true)
		for !strings.Contains(fmt.Sprint(until("retrying")["error"]), "no token from "+endpoint.URL+"/token") {
		}
	})
	l.others()
	broken.Store(false)
	l.others()
	l.check("invalid_client: a proxy says: [Basic [secret]]", "check --ledger-oauth-client-id and the secret in "+file, "fetched a token")
}

func noSecretOfAURLIsPrinted(t *testing.T) {
	slow.Long(t, "runs the daemon, and command after command beside it")
	ledger := grown(50)
	l := newLeaks(t)
	l.secret(ledgerPassword)
	l.secret(base64.StdEncoding.EncodeToString([]byte("joe:" + ledgerPassword)))
	var closed atomic.Bool
	participant := sandbox.NewServer(ledger, sandbox.ServerOptions{Fault: l.fault})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "joe" || password != ledgerPassword || closed.Load() {
			http.Error(w, l.carries(r), http.StatusUnauthorized)
			return
		}
		participant.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	address, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	address.User = url.UserPassword("joe", ledgerPassword)
	l.environ["INDEXER_LEDGER_URL"] = address.String()
	l.daemon(ledger, func(func(string) map[string]any) {})
	closed.Store(true)
	l.command(config.ExitProblem, "run")
	l.others()
	l.check("refused the user and password in --ledger-url")
}
