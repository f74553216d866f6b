package sandbox

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
		"reset": {Fault{Reset: true}, true, func(t *testing.T, _ *http.Response, _ []byte, err error) {
			t.Helper()
			require.Error(t, err)
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
			var body []byte
			if err == nil {
				body, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			server.Close() // after the handler
			require.Equal(t, c.took, len(took) == 1)
			if c.check != nil {
				c.check(t, resp, body, err)
			}
		})
	}
}
