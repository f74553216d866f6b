package app

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// A proxy goes on with our other connections when the one that a request waits on ends with the participant. The
// request is then sent again over one of them, to the restored participant: no connection is new, and no request fails.
func TestAParticipantIsRestoredBehindAProxy(t *testing.T) {
	t.Parallel()
	options := sandbox.ServerOptions{Version: "3.4", ListLimit: 20} // many small requests at once take several connections
	first, other := backedUp(300), restored(220, 400)
	before, after := sandbox.NewServer(first, options), sandbox.NewServer(other, options)
	var turning, turned atomic.Bool
	var connections atomic.Int64
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case turned.Load():
			after.ServeHTTP(w, r)
		case turning.Load() && r.URL.Query().Has("stream_idle_timeout_ms"): // a long poll, which there always is but for moments
			turned.Store(true)
			panic(http.ErrAbortHandler)
		default:
			before.ServeHTTP(w, r)
		}
	}))
	proxy.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	proxy.Start()
	t.Cleanup(proxy.Close)
	database := throwaway.Migrated(t, migrate)
	daemon := startIndexer(t, indexerFor(database, proxy.URL, defaultScope()))
	waitFor(t, database, lastUpdate(first))
	require.Greater(t, connections.Load(), int64(1))
	turning.Store(true)
	requireProblem(t, daemon.ended(t), "another history", fmt.Sprintf("the last offset at which they agree is %d", other.Offset(219)), "`indexer reanchor`")
	require.Empty(t, sandbox.Diff(first.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: options.Version}, first.End()), relations(t, database)))
}
