package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/base/access"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a server for one test, which notes what it was asked.
type service struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // method, path and body
}

// serve starts a service; handle finds the body unread.
func serve(t *testing.T, handle http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		s.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// requests gives what was asked since the last time.
func (s *service) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func plain(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// raw answers with bytes as they are, so that an answer can be as broken as the network makes it.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, text)
	}
}

// tap is a record, and page an answer with records.
func tap(id string) string {
	return fmt.Sprintf(`{"transaction_type":"devnet_tap","event_id":%q,"date":"2026-07-01T10:00:00Z","domain_id":"global::1220","round":7,
		"tap":{"amulet_owner":"a::1220","amulet_amount":"1.0000000000"}}`, id)
}

func page(ids ...string) string {
	var records []string
	for _, id := range ids {
		records = append(records, tap(id))
	}
	return `{"transactions":[` + strings.Join(records, ",") + `]}`
}

func ids(records []ledger.Record) []string {
	var ids []string
	for _, r := range records {
		ids = append(ids, r.EventID)
	}
	return ids
}

// each asks everything that there is to ask, with an event id where one is taken.
func each(t *testing.T, c *Client) map[string]error {
	t.Helper()
	_, after := c.TransactionsAfter(t.Context(), "#1220a:0")
	_, newest := c.NewestTransactions(t.Context(), 1)
	_, version := c.Version(t.Context())
	return map[string]error{"transactions": after, "transactions-newest": newest, "version": version}
}

// retryable requires an error that may pass.
func retryable(t *testing.T, err error) *Error {
	t.Helper()
	var p *ledger.Problem
	var d *ledger.DecodeError
	var e *Error
	require.Error(t, err)
	require.False(t, errors.As(err, &p), "must not need an operator: %v", err)
	require.False(t, errors.As(err, &d), "is not about what the server meant: %v", err)
	require.NotErrorIs(t, err, ledger.ErrNotOffered)
	require.NotErrorIs(t, err, ledger.ErrCursorRefused)
	require.ErrorAs(t, err, &e)
	return e
}

// problem requires an error that an operator must act on, and gives it as it is printed.
func problem(t *testing.T, err error) string {
	t.Helper()
	var p *ledger.Problem
	var e *Error
	require.ErrorAs(t, err, &p)
	require.ErrorAs(t, err, &e, "what the server said is kept")
	require.NotEmpty(t, p.Do)
	return p.What + ". " + p.Do
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"empty":      {},
		"no scheme":  {URL: "scan.example.com"},
		"bad port":   {URL: "http://u:hunter2@h:port"},
		"query":      {URL: "http://h/?token=hunter2"},
		"no token":   {URL: "http://h", Access: access.Config{TokenFile: "/nowhere"}},
		"user twice": {URL: "http://u:hunter2@h", Access: access.Config{TokenFile: "/nowhere"}},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, "--scan-", name)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// A proxy may want a token. One that was replaced since is tried once.
func TestARefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	path := fileOf(t, "old-s3cret")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new-s3cret" {
			// Replaced while the request was on its way.
			_ = os.WriteFile(path, []byte("new-s3cret"), 0o600)
			http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		answer(200, page("#1:0"))(w, r)
	})
	records, err := client(t, Config{URL: s.URL, Access: access.Config{TokenFile: path}}).NewestTransactions(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Len(t, s.requests(), 2)

	gone := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = os.Remove(path)
		http.Error(w, "no", http.StatusUnauthorized)
	})
	_, err = client(t, Config{URL: gone.URL, Access: access.Config{TokenFile: path}}).NewestTransactions(t.Context(), 1)
	require.Equal(t, http.StatusUnauthorized, retryable(t, err).Status)
	require.ErrorContains(t, err, "no such file")
	require.Len(t, gone.requests(), 1)
}

// What a server sends back of a token, or of the user in the URL, stands in no error, wherever it stands in the answer.
func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	const token = "s3cret-token-of-some-length"
	echo := func(status int, kind, format string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "/login/"+token+"?x="+token)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(format, "%", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"error":           echo(500, "application/json", `{"error":"with % it fails"}`),
		"near the cut":    echo(502, "text/plain", strings.Repeat("y", 290)+"%"),
		"instead of data": echo(200, "application/json", `{"version":["%"],"transactions":["%"]}`),
		"as data":         echo(200, "application/json", `{"version":"%","transactions":[{"event_id":"%","date":"%","transaction_type":"mint"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, handle)
			for operation, err := range each(t, client(t, Config{URL: s.URL, Access: access.Config{TokenFile: fileOf(t, token)}})) {
				require.Error(t, err, operation)
				var e *Error
				text := fmt.Sprintf("%v %+v", err, err)
				if errors.As(err, &e) {
					text += fmt.Sprintf("%+v", *e)
				}
				require.NotContains(t, text, "s3cret", operation)
			}
		})
	}
	for _, err := range each(t, client(t, Config{URL: "http://joe:hunter2@127.0.0.1:1"})) {
		require.ErrorContains(t, err, "connection refused")
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "Post ", "the URL is known")
	}
}

// A service that says nothing is given up.
func TestASilentService(t *testing.T) {
	t.Parallel()
	c := client(t, Config{URL: serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL})
	c.silence = 20 * time.Millisecond
	for _, err := range each(t, c) {
		_ = retryable(t, err)
		require.ErrorContains(t, err, "the server went silent for 20ms")
	}
}

// Each request is observed under the name of its operation.
func TestRequestsAreObserved(t *testing.T) {
	t.Parallel()
	var seen []string
	s := serve(t, answer(200, page("#1:0")))
	c := client(t, Config{URL: s.URL, Observe: func(_ context.Context, operation string, status int, _ time.Duration, bytes int64) {
		require.Equal(t, http.StatusOK, status)
		require.Positive(t, bytes)
		seen = append(seen, operation)
	}})
	require.ElementsMatch(t, slices.Collect(maps.Keys(each(t, c))), seen)
}
