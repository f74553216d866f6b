package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPathsByVersion(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{}, 5)
	post := map[string]string{
		"/v2/updates":                     "3.4 3.5.5 3.5 3.6",
		"/v2/updates/flats":               "3.4 3.5.5 3.5 strict",
		"/v2/updates/get-updates-page":    "3.5.5 3.5 3.6",
		"/v2/state/active-contracts":      "3.4 3.5.5 3.5 3.6 strict",
		"/v2/state/active-contracts-page": "3.5 3.6",
		"/v2/updates/update-by-id":        "3.4 3.5.5 3.5 3.6 strict",
		"/v2/contracts/contract-by-id":    "3.4 3.5.5 3.5 3.6 strict",
	}
	get := map[string]string{"/v2/state/active-contracts-page": "3.5.5 3.5 3.6"}
	for _, path := range []string{"/v2/state/ledger-end", "/v2/state/latest-pruned-offsets", "/v2/state/connected-synchronizers", "/v2/version", "/v2/parties/participant-id", "/livez", "/readyz"} {
		get[path] = "3.4 3.5.5 3.5 3.6"
	}
	for _, version := range []string{"3.4", "3.5.5", "3.5", "3.6", "strict"} {
		opts := ServerOptions{Version: version}
		if version == "strict" {
			opts = ServerOptions{StrictInterface: true}
		}
		c := serve(t, l, opts)
		has := func(paths map[string]string, path string) bool {
			return slices.Contains(strings.Fields(paths[path]), version)
		}
		check := func(method string, paths, others map[string]string) {
			for path := range paths {
				a := c.do(method, path, fmt.Sprintf(`{"eventFormat":%s}`, anyParty))
				switch {
				case has(paths, path):
					require.NotContains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, a.status, "%s %s %s", version, method, path)
				case has(others, path):
					require.Equal(t, http.StatusMethodNotAllowed, a.status, "%s %s %s", version, method, path)
					require.Equal(t, "Method Not Allowed", string(a.body))
				default:
					a.unrouted(method, c.url+path)
				}
			}
		}
		check(http.MethodPost, post, get)
		check(http.MethodGet, get, post)
		if version != "strict" { // what is a WebSocket to a participant is nothing else
			c.do(http.MethodGet, "/v2/updates", "").unrouted(http.MethodGet, c.url+"/v2/updates")
			require.Equal(t, http.StatusMethodNotAllowed, c.do(http.MethodGet, "/v2/updates/update-by-id", "").status)
		}
	}
	require.Panics(t, func() { NewServer(l, ServerOptions{Version: "2.0"}) })
}

// unrouted checks that there is no such operation.
func (a answer) unrouted(method, url string) {
	a.t.Helper()
	require.Equal(a.t, http.StatusNotFound, a.status, url)
	require.JSONEq(a.t, fmt.Sprintf(`{"errors":["HttpMethod(%s), uri: %s"],"status":404,"ledgerApiError":null}`, method, url), string(a.body))
}

func TestKeysByVersion(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 100)
	scope := Scope{Interfaces: InterfaceNames()}
	for version, want := range map[string]string{
		"3.4": "", "3.5": "contractKeyHash implementationPackageId streamContinuationToken Onboarding",
		"3.5.5": "contractKeyHash implementationPackageId streamContinuationToken Onboarding",
		"3.6":   "contractKeyHash implementationPackageId streamContinuationToken Onboarding transactionHash synchronizerTimes",
	} {
		c := serve(t, l, ServerOptions{Version: version})
		all := string(c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), scope.UpdateFormat()).body) +
			string(c.post("/v2/state/active-contracts", `{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), scope.EventFormat()).body) +
			string(c.do(http.MethodGet, "/v2/state/ledger-end", "").body)
		for _, word := range strings.Fields("contractKeyHash implementationPackageId streamContinuationToken Onboarding transactionHash synchronizerTimes") {
			require.Equal(t, strings.Contains(want, word), strings.Contains(all, word), "%s: %s", version, word)
		}
		require.Contains(t, string(c.do(http.MethodGet, "/v2/version", "").body), `"version":"`+fullVersions[version]+`"`)
	}
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	c := serve(t, grown(t, Options{}, 5), ServerOptions{Token: "secret"})
	a := c.do(http.MethodGet, "/v2/state/ledger-end", "")
	a.redacted(401, 16, `{}`)
	require.Equal(t, 200, c.do(http.MethodGet, "/livez", "").status)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/v2/state/ledger-end", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer secret")
	resp, err := c.get.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
}

// While a server goes down, its JSON layer answers that something unexpected has happened to it.
func TestServerGoesDown(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 5)
	down := make(chan struct{})
	c := serve(t, l, ServerOptions{Down: down, IdleTimeout: time.Hour, NoCheckpoints: true})
	waiting := make(chan answer, 1)
	go func() {
		waiting <- c.post("/v2/updates", `{"beginExclusive":%d,"updateFormat":%s}`, l.End(), allUpdates)
	}()
	require.Equal(t, 200, c.do(http.MethodGet, "/v2/state/ledger-end", "").status)
	close(down)
	for _, a := range []answer{<-waiting, c.do(http.MethodGet, "/v2/state/ledger-end", "")} {
		require.Empty(t, a.refused(500, "LEDGER_API_INTERNAL_ERROR"))
		require.Contains(t, string(a.body), `"errorCategory":4,"grpcCodeValue":13,"retryInfo":null`)
	}
}

// A server that is ready says so in text, and only to a client that takes it.
func TestReadyIsText(t *testing.T) {
	t.Parallel()
	c := serve(t, grown(t, Options{}, 1), ServerOptions{})
	for accept, want := range map[string]int{"": 200, "text/plain": 200, "*/*": 200, "application/json": 406} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/readyz", nil)
		require.NoError(t, err)
		r.Header.Set("Accept", accept)
		resp, err := c.get.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, want, resp.StatusCode, accept)
	}
}

func TestBodiesThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	c := serve(t, grown(t, Options{}, 5), ServerOptions{MaxBody: 1000})
	for _, body := range []string{"", "{", "[]", "null", `{"beginExclusive":"x"}`, `{"beginExclusive":1.5}`, `{"updateFormat":{"includeTransactions":7}}`} {
		a := c.do(http.MethodPost, "/v2/updates", body)
		require.Equal(t, 400, a.status, body)
		require.Contains(t, a.kind, "text/plain")
		require.True(t, strings.HasPrefix(string(a.body), "Invalid value for: body ("), "%s", a.body)
	}
	a := c.do(http.MethodPost, "/v2/updates", `{"x":"`+strings.Repeat("x", 1000)+`"}`)
	require.Equal(t, 413, a.status)
	require.Contains(t, string(a.body), "exceeded size limit (1000 bytes)")
	// Keys are case-sensitive, and unknown ones are ignored.
	c.do(http.MethodPost, "/v2/updates", `{"UpdateFormat":{},"more":1}`).refused(400, "INVALID_ARGUMENT")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 100)
	var fault atomic.Pointer[Fault] // set between requests; the server reads it in its own goroutine
	c := serve(t, l, ServerOptions{Fault: func(*http.Request) *Fault { return fault.Load() }})
	ask := func() (int, string, error) {
		// Of topology, which is the same bytes whenever it is read.
		body := strings.NewReader(fmt.Sprintf(`{"endInclusive":%d,"updateFormat":{"includeTopologyEvents":{"includeParticipantAuthorizationEvents":{}}}}`, l.End()))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v2/updates?limit=5", body)
		require.NoError(t, err)
		resp, err := c.get.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
	_, whole, err := ask()
	require.NoError(t, err)
	fault.Store(&Fault{Status: 503, ContentType: "text/plain", Body: "down"})
	status, body, err := ask()
	require.NoError(t, err)
	require.Equal(t, 503, status)
	require.Equal(t, "down", body)
	fault.Store(&Fault{Cut: 1000})
	_, body, err = ask()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, whole[:1000], body)
	fault.Store(&Fault{Reset: true})
	_, _, err = ask()
	require.Error(t, err)
	fault.Store(&Fault{Stall: time.Millisecond})
	_, body, err = ask()
	require.NoError(t, err)
	require.Equal(t, whole, body)
}

func TestRewriteReplacesElements(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 30)
	target, dropped := l.Offset(5), l.Offset(6)
	c := serve(t, l, ServerOptions{Rewrite: func(e Element) []byte {
		switch e.Offset {
		case target:
			return []byte(`{"broken":`)
		case dropped:
			return nil
		}
		return e.Raw
	}})
	for path, body := range map[string]string{
		"/v2/updates":                  `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`,
		"/v2/updates/get-updates-page": `{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"updateFormat":%s}`,
	} {
		a := c.post(path, body, l.Offset(3), l.Offset(7), allUpdates)
		require.Contains(t, string(a.body), `{"broken":,{"update"`)
		require.Equal(t, 2, strings.Count(string(a.body), `{"update":{`))
	}
}

// A disturbance tells when it has had its effect, and only then.
func TestFaultsTellWhenTheyTookEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault Fault
		took  bool
		check func(t *testing.T, resp *http.Response, body []byte, err error)
	}{
		"status": {Fault{Status: 429, Body: "slow down", RetryAfter: 7}, true, func(t *testing.T, resp *http.Response, body []byte, _ error) {
			t.Helper()
			require.Equal(t, 429, resp.StatusCode)
			require.Equal(t, "7", resp.Header.Get("Retry-After"))
			require.Equal(t, "slow down", string(body))
		}},
		"cut": {Fault{Cut: 3}, true, func(t *testing.T, _ *http.Response, body []byte, err error) {
			t.Helper()
			require.Len(t, body, 3)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}},
		"pause": {Fault{Cut: 3, Pause: time.Millisecond}, true, func(t *testing.T, _ *http.Response, body []byte, err error) {
			t.Helper()
			require.NoError(t, err)
			require.True(t, json.Valid(body))
		}},
		"stall":     {Fault{Stall: time.Millisecond}, true, nil},
		"too short": {Fault{Cut: 1 << 20}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := make(chan struct{}, 2)
			c.fault.Took = func() { took <- struct{}{} }
			server := httptest.NewServer(NewServer(NewLedger(Options{Seed: 1}), ServerOptions{Fault: func(*http.Request) *Fault { return &c.fault }}))
			resp, err := http.Get(server.URL + "/v2/state/ledger-end")
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			server.Close() // after the handler
			require.Equal(t, c.took, len(took) == 1)
			if c.check != nil {
				c.check(t, resp, body, err)
			}
		})
	}
}
