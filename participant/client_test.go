package participant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/base/access"
	"ledgerindexer/internal/base/jsonhttp"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var anyParty = ledger.Scope{Shape: ledger.ShapeACSDelta, Reassignments: true, Topology: true}

// with35 is a server that has everything, with34 one that has no pages.
var (
	with35 = Server{Version: "3.5.1", UpdatesPath: pathUpdatesPage, TailPath: pathUpdates, SnapshotPath: pathSnapshotPage, LedgerEnd: true}
	with34 = Server{Version: "3.4.1", UpdatesPath: pathUpdatesFlats, TailPath: pathUpdates, SnapshotPath: pathSnapshot, LedgerEnd: true}
)

// seen is a request as the server got it.
type seen struct {
	method, path, query, authorization, agent string
	body                                      map[string]any
}

// fake is a server for one test; handlers are by path and everything else is an unknown path.
type fake struct {
	*httptest.Server
	opened atomic.Int64 // connections
	away   atomic.Bool  // answers as a proxy does that finds nothing behind it
	mu     sync.Mutex
	seen   []seen
}

func (f *fake) requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]seen(nil), f.seen...)
}

func newFake(t *testing.T, handlers map[string]http.HandlerFunc) *fake {
	f := &fake{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		s := seen{method: r.Method, path: r.URL.Path, query: r.URL.RawQuery, authorization: r.Header.Get("Authorization"), agent: r.UserAgent()}
		if len(text) > 0 {
			if err := json.Unmarshal(text, &s.body); err != nil {
				t.Errorf("the body of %s is not JSON: %s", r.URL.Path, text)
			}
		}
		f.mu.Lock()
		f.seen = append(f.seen, s)
		f.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(text)))
		handle, ok := handlers[r.URL.Path]
		if !ok || f.away.Load() {
			unknownPath(w, r)
			return
		}
		handle(w, r)
	}))
	f.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			f.opened.Add(1)
		}
	}
	f.Start()
	t.Cleanup(f.Close)
	return f
}

func unknownPath(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"errors":["The requested resource could not be found."],"status":404}`)
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func plain(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cantonError answers with the servers' error object.
func cantonError(status int, code, cause, context string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code":%q,"cause":%q,"correlationId":"corr-1","traceId":null,"context":{%s},"resources":[],
			"errorCategory":0,"grpcCodeValue":9,"retryInfo":null,"definiteAnswer":null}`, code, cause, context)
	}
}

// newClient makes a client of a fake that has found out already what the server has.
func newClient(t *testing.T, f *fake, found Server, scope ledger.Scope, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: f.URL, Reached: found != (Server{})}
	for _, ch := range change {
		ch(&cfg)
	}
	c, err := New(cfg, scope)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	if found != (Server{}) {
		c.found.Store(&found)
		c.reached.Store(true)
	}
	return c
}

// limited makes a client ask for so many elements in one list call.
func limited(c *Client, limit int) *Client {
	c.updatesList, c.snapshotList = jsonhttp.NewSize(limit), jsonhttp.NewSize(limit)
	return c
}

func withToken(t *testing.T, token string) func(*Config) { return withTokenFile(fileOf(t, token)) }

func withTokenFile(file string) func(*Config) {
	return func(cfg *Config) { cfg.Access.TokenFile = file }
}

// problem requires that an error is one that an operator must act on and gives it as it is printed.
func problem(t *testing.T, err error) string {
	t.Helper()
	var p *ledger.Problem
	require.ErrorAs(t, err, &p)
	require.NotEmpty(t, p.Do)
	return p.What + ". " + p.Do
}

// retryable requires the opposite.
func retryable(t *testing.T, err error) *Error {
	t.Helper()
	var p *ledger.Problem
	var e *Error
	require.Error(t, err)
	require.False(t, errors.As(err, &p), "must not need an operator: %v", err)
	require.ErrorAs(t, err, &e)
	return e
}

func transaction(offset int64) string {
	return fmt.Sprintf(`{"update":{"Transaction":{"value":{"updateId":"u%d","commandId":"","workflowId":"","effectiveAt":"2025-01-01T00:00:00Z",
		"events":[],"offset":%d,"synchronizerId":"s::1","traceContext":null,"recordTime":"2025-01-01T00:00:00Z"}}}}`, offset, offset)
}

func checkpoint(offset int64) string {
	return fmt.Sprintf(`{"update":{"OffsetCheckpoint":{"value":{"offset":%d,"synchronizerTimes":[{"synchronizerId":"s::1","recordTime":"2025-01-01T00:00:00Z"}]}}}}`, offset)
}

func transactions(offsets ...int64) string {
	var list []string
	for _, o := range offsets {
		list = append(list, transaction(o))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestNewRefusesWhatItCannotUseWithoutPrintingSecrets(t *testing.T) {
	t.Parallel()
	const good = "http://localhost:7575"
	for name, test := range map[string]struct {
		cfg   Config
		scope ledger.Scope
		want  string
	}{
		"no URL":    {Config{}, anyParty, "--ledger-url must be of the form"},
		"no scheme": {Config{URL: "localhost:7575"}, anyParty, "--ledger-url must be of the form"},
		"bad port":  {Config{URL: "http://joe:s3cret@host:port"}, anyParty, "--ledger-url must be of the form"},
		"query":     {Config{URL: good + "?token=s3cret"}, anyParty, "--ledger-url must be of the form"},
		"user and token": {
			Config{URL: "http://joe:s3cret@host", Access: access.Config{TokenFile: fileOf(t, "s3cret")}}, anyParty, "choose one",
		},
		"unknown shape":   {Config{URL: good}, ledger.Scope{Shape: "acs"}, `--shape must be acs-delta or ledger-effects, not "acs"`},
		"party not UTF-8": {Config{URL: good}, ledger.Scope{Shape: ledger.ShapeACSDelta, Parties: []string{"\xff"}}, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(test.cfg, test.scope)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestUserOfTheURLIsSentAndNeverPrinted(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{"/prefix" + pathLedgerEnd: answer(`{"offset":7}`)})
	at := "http://joe:s3cret@" + strings.TrimPrefix(f.URL, "http://") + "/prefix/"
	c := newClient(t, f, with35, anyParty, func(cfg *Config) { cfg.URL = at })
	end, err := c.LedgerEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(7), end)
	require.Contains(t, f.requests()[0].authorization, "Basic ")
	require.Equal(t, "ledgerindexer", f.requests()[0].agent)

	f.Close()
	_, err = c.LedgerEnd(t.Context())
	require.Equal(t, 0, retryable(t, err).Status)
	require.NotContains(t, err.Error(), "s3cret")
	require.NotContains(t, err.Error(), "joe")
}

func TestObserveIsToldOfEveryRequest(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{
		pathLedgerEnd:   answer(`{"offset":7}`),
		pathUpdatesPage: plain(http.StatusServiceUnavailable, "away"),
	})
	var told []string
	c := newClient(t, f, with35, anyParty, func(cfg *Config) {
		cfg.Observe = func(_ context.Context, operation string, status int, _ time.Duration, bytes int64) {
			told = append(told, fmt.Sprint(operation, " ", status, " ", bytes))
		}
	})
	_, err := c.LedgerEnd(t.Context())
	require.NoError(t, err)
	_, err = c.ReadUpdates(t.Context(), 0, 5)
	require.Error(t, err)
	f.Close()
	_, err = c.LedgerEnd(t.Context())
	require.Error(t, err)
	require.Equal(t, []string{"ledger-end 200 12", "updates-page 503 4", "ledger-end 0 0"}, told)
}

func TestCallerWhoIsDoneIsToldSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := newFake(t, map[string]http.HandlerFunc{pathUpdates: func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}})
	_, _, err := newClient(t, f, with35, anyParty).TailUpdates(ctx, 3, 10, time.Second)
	require.ErrorIs(t, err, context.Canceled)
}
