package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// Profiles of the daemon can be taken while it works, and their address is free when it has ended.
func TestProfilesOfTheDaemon(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(5)
	cfg := indexerFor(throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.UntilCurrent, cfg.Profile = false, config.Profile{Pprof: "127.0.0.1:0"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log journal
	done := make(chan error, 1)
	go func() { done <- RunIndexer(ctx, cfg, log.logger()) }()
	address := log.wait(t, "profiles are served")["url"].(string)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(address + "goroutine?debug=1")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "RunIndexer")

	cancel()
	require.NoError(t, <-done)
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	_, err = net.Dial("tcp", parsed.Host)
	require.Error(t, err, "still listening")
}

// An address that is taken is an error of the start, of the daemon and of the backfill.
func TestAnAddressForProfilesThatIsTaken(t *testing.T) {
	t.Parallel()
	taken := serve(t, sandbox.NewLedger(sandbox.Options{}), sandbox.ServerOptions{})[len("http://"):]
	profile := config.Profile{Pprof: taken}
	require.ErrorContains(t, RunIndexer(t.Context(), Indexer{Profile: profile}, testLogger(t)), "--pprof: listen tcp "+taken)
	_, err := RunBackfill(t.Context(), Backfill{Profile: profile}, testLogger(t), nil)
	require.ErrorContains(t, err, "--pprof: listen tcp "+taken)
}
