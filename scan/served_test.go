package scan

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// What a service has is asked of it, and what it has not it has to say: anything else passes, and is asked again.
func TestWhatAServiceHas(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	l.Grow(50)
	simulated := func(o sandbox.ScanOptions) http.HandlerFunc { return sandbox.NewScan(l, o).ServeHTTP }
	// one answers otherwise at one path of a Scan that has both.
	one := func(path string, instead http.HandlerFunc) http.HandlerFunc {
		scan := simulated(sandbox.ScanOptions{})
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				instead(w, r)
				return
			}
			scan(w, r)
		}
	}
	participant := sandbox.NewServer(l, sandbox.ServerOptions{}).ServeHTTP
	for name, c := range map[string]struct {
		service http.HandlerFunc
		want    Served
	}{
		"0.6":                        {simulated(sandbox.ScanOptions{}), Served{Updates: true, Scan: true}},
		"0.7":                        {simulated(sandbox.ScanOptions{Release: "0.7.1"}), Served{Updates: true, Scan: true}},
		"the old history alone":      {simulated(sandbox.ScanOptions{StrictInterface: true}), Served{Transactions: true, Scan: true}},
		"updates not implemented":    {one(pathUpdates, answer(501, `{"error":"not implemented"}`)), Served{Transactions: true, Scan: true}},
		"updates not allowed by 405": {one(pathUpdates, answer(405, `{"error":"no"}`)), Served{Transactions: true, Scan: true}},
		"neither":                    {one(pathUpdates, answer(404, `{"error":"no"}`)), Served{Transactions: true, Scan: true}},
		"a page for everything": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>nothing here</html>", http.StatusNotFound)
		}, Served{}},
		"a participant":                  {participant, Served{}},
		"a participant has the old path": {one(pathUpdates, participant), Served{Transactions: true, Scan: true}},
		"a Scan that has neither": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == pathVersion {
				answer(200, `{"version":"0.3.0"}`)(w, r)
				return
			}
			answer(404, `{"error":"The requested resource could not be found."}`)(w, r)
		}, Served{Scan: true}},
	} {
		served, err := client(t, Config{URL: serve(t, c.service).URL}).Served(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, c.want, served, name)
	}
	for _, status := range []int{400, 401, 403, 429, 500, 502, 503, 504} {
		_, err := client(t, Config{URL: serve(t, one(pathUpdates, answer(status, `{"error":"not now"}`))).URL}).Served(t.Context())
		require.Error(t, err, status)
		require.NotErrorIs(t, err, ledger.ErrNotOffered)
	}
	_, err := client(t, Config{URL: serve(t, one(pathUpdates, answer(200, `{}`))).URL}).Served(t.Context())
	require.ErrorContains(t, err, "the answer is no page of updates")

	// A proxy that does not know a Scan while that starts: until it has, it does not count as one that has nothing.
	for _, c := range []struct {
		release string
		has     Served
	}{{"0.7.1", Served{Updates: true, Scan: true}}, {"0.4.0", Served{Transactions: true, Scan: true}}} {
		for unknown := range int64(6) {
			var asked atomic.Int64
			service := simulated(sandbox.ScanOptions{Release: c.release})
			served, err := client(t, Config{URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) <= unknown {
					http.NotFound(w, r)
					return
				}
				service(w, r)
			}).URL}).Served(t.Context())
			require.NoError(t, err)
			if served.Scan {
				require.Equal(t, c.has, served, "%s, known after %d requests", c.release, unknown)
			}
		}
	}
}

// Of several services one with updates is enough, and one that fails may have some.
func TestWhatServicesHave(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 1})
	l.Grow(50)
	of := func(h http.Handler) *Client { return client(t, Config{URL: serve(t, h.ServeHTTP).URL}) }
	with := of(sandbox.NewScan(l, sandbox.ScanOptions{Release: "0.7.1"}))
	without := of(sandbox.NewScan(l, sandbox.ScanOptions{StrictInterface: true}))
	fails := of(answer(503, `{"error":"not now"}`))
	for name, services := range map[string][]*Client{"the last": {without, fails, with}, "the first": {with, fails}} {
		served, err := ServedByAny(t.Context(), services)
		require.NoError(t, err, name)
		require.True(t, served.Updates, name)
	}
	_, err := ServedByAny(t.Context(), []*Client{without, fails})
	require.ErrorContains(t, err, "503 Service Unavailable")
	served, err := ServedByAny(t.Context(), []*Client{without, without})
	require.NoError(t, err)
	require.Equal(t, Served{Transactions: true, Scan: true}, served)
}
