package scan

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/access"
	"ledgerindexer/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const history = `{"transactions": [
	{"transaction_type": "transfer", "event_id": "#1220b:3", "date": "2026-07-02T10:00:00.123456Z", "domain_id": "global::1220", "round": 7,
	 "offset": "000000000000000007", "transfer": {"sender": {"party": "a"}, "receivers": [], "balance_changes": [{"party": "a"}, {"party": "b"}]}},
	{"transaction_type": "devnet_tap", "event_id": "#1220a:0", "date": "2026-07-01T10:00:00Z", "domain_id": "global::1220",
	 "tap": {"amulet_owner": "a", "amulet_amount": "1.0000000000"}, "something_new": [1]}]}`

func TestNewest(t *testing.T) {
	t.Parallel()
	c := client(t, Config{URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "POST /prefix/v0/transactions", r.Method+" "+r.URL.Path)
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Empty(t, r.Header.Get("Authorization"))
		var body map[string]any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		require.Equal(t, map[string]any{"page_size": 25.0, "sort_order": "desc"}, body)
		answer(200, history)(w, r)
	}) + "/prefix"})
	records, err := c.Newest(t.Context(), 25)
	require.NoError(t, err)
	require.Equal(t, []Record{
		{EventID: "#1220b:3", Date: time.Date(2026, 7, 2, 10, 0, 0, 123456000, time.UTC), Transfer: true, BalanceChanges: 2},
		{EventID: "#1220a:0", Date: time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)},
	}, records)
	for _, n := range []int{-1, 0, MaxPage + 1} {
		_, err := c.Newest(t.Context(), n)
		require.ErrorContains(t, err, "1 to 1000 records")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	version, err := client(t, Config{URL: serve(t, answer(200, `{"version": "0.6.12", "commit_ts": "2026-07-01T00:00:00Z"}`))}).Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, "0.6.12", version)
}

// asked is both operations.
func asked(t *testing.T, c *Client) map[string]error {
	t.Helper()
	_, newest := c.Newest(t.Context(), 1)
	_, version := c.Version(t.Context())
	return map[string]error{"transactions": newest, "version": version}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  int
		says    string
		missing bool
	}{
		"the servers' error": {answer(400, `{"error": "Exceeded limit maximum (2000 > 1000)."}`), 400, "HTTP status 400 Bad Request: Exceeded limit maximum (2000 > 1000).", false},
		"unknown path":       {answer(404, `{"error": "The requested resource could not be found."}`), 404, "does not offer", true},
		"another method":     {answer(405, ``), 405, "does not offer", true},
		"not implemented":    {answer(501, ``), 501, "does not offer", true},
		"busy":               {answer(503, `{"error": "\u001b[2J\nplease\twait"}`), 503, "[2J please wait", false},
		"an error, unusual":  {answer(500, `{"error": {"code": 7}}`), 500, `the answer begins "{\"error\"`, false},
		"a page":             {answer(502, "<html>\x00\x1b[31m"+long), 502, `the answer begins "<html>`, false},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 307, "307", false},
		"no JSON":         {answer(200, long), 200, "the answer begins", false},
		"an empty answer": {answer(200, ""), 200, "", false},
		"another answer":  {answer(200, `{}`), 200, "the answer holds no ", false},
		"nulls":           {answer(200, `{"transactions": null, "version": null}`), 200, "the answer holds no ", false},
		"other types": {answer(200, `{"transactions": {"a": 1}, "version": [3]}`), 200,
			`the answer is not what this operation serves; the answer begins "{\"transactions\": {`, false},
		"cut off":             {cut, 200, "", false},
		"larger than allowed": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(zeros{}, maxBody+2)) }, 200, "too large", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for operation, err := range asked(t, client(t, Config{URL: serve(t, c.handler)})) {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, operation, e.Operation)
				require.Equal(t, c.status, e.Status)
				require.Contains(t, err.Error(), c.says)
				require.Equal(t, c.missing, errors.Is(err, ledger.ErrNotOffered))
				require.Less(t, len(err.Error()), 1500)
				require.NotContains(t, err.Error(), "\x1b")
			}
		})
	}
	for _, err := range asked(t, client(t, Config{URL: "http://127.0.0.1:1"})) {
		require.ErrorContains(t, err, "connection refused")
		require.NotContains(t, err.Error(), "Post ", "the URL is known")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"transactions": [`)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestHowLongToWait(t *testing.T) {
	t.Parallel()
	c := client(t, Config{URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3")
		answer(429, `{"error": "too many"}`)(w, r)
	})})
	for _, err := range asked(t, c) {
		var waits interface{ Wait() time.Duration }
		require.ErrorAs(t, err, &waits)
		require.Equal(t, 3*time.Second, waits.Wait())
	}
}

// A proxy may want a token. One that was replaced since is tried once; none is ever printed.
func TestTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("old-s3cret"), 0o600))
	var requests atomic.Int64
	c := client(t, Config{Access: access.Config{TokenFile: path}, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer new-s3cret" {
			// Replaced while the request was on its way.
			_ = os.WriteFile(path, []byte("new-s3cret"), 0o600)
			http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		answer(200, history)(w, r)
	})})
	records, err := c.Newest(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.EqualValues(t, 2, requests.Load())

	refusing := client(t, Config{Access: access.Config{TokenFile: path}, URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})})
	for _, err := range asked(t, refusing) {
		require.ErrorContains(t, err, "401")
		require.NotContains(t, err.Error(), "s3cret")
	}

	gone := client(t, Config{Access: access.Config{TokenFile: path}, URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = os.Remove(path)
		http.Error(w, "no", http.StatusUnauthorized)
	})})
	_, err = gone.Newest(t.Context(), 1)
	require.ErrorContains(t, err, "401")
	require.ErrorContains(t, err, "no such file")

	withUser := client(t, Config{URL: strings.Replace(serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "joe" || password != "hunter2" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		answer(200, history)(w, r)
	}), "//", "//joe:hunter2@", 1)})
	_, err = withUser.Newest(t.Context(), 1)
	require.NoError(t, err)
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

func TestACallerWhoIsDone(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	c := client(t, Config{URL: serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is a client who leaves noticed
		close(held)
		<-r.Context().Done()
	})})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-held
		cancel()
	}()
	_, err := c.Newest(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}
