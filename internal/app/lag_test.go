package app

import (
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

var lagMetric = regexp.MustCompile(`(?m)^ledger_indexer_(lag_\S+) (\S+)$`)

// lagOf are the metrics of lag, by name and labels.
func lagOf(t *testing.T, log *journal) map[string]string {
	t.Helper()
	_, metrics := ask(t, log, "/metrics")
	lag := map[string]string{}
	for _, found := range lagMetric.FindAllStringSubmatch(metrics, -1) {
		lag[found[1]] = found[2]
	}
	require.Len(t, lag, 3)
	return lag
}

// waitForLag waits until all of it is this.
func waitForLag(t *testing.T, log *journal, daemon *running, want string) {
	t.Helper()
	eventuallyOf(t, daemon, "a lag of "+want, func() bool {
		all := map[string]bool{}
		for _, value := range lagOf(t, log) {
			all[value] = true
		}
		return all[want] && len(all) == 1
	})
}

// Before its sources have answered, and while they don't, the daemon does not know how far behind it is, and does not
// say that it is not.
func TestLagIsNotKnownWhileTheSourcesAreAway(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 74})
	l.Grow(200)
	var away atomic.Bool
	away.Store(true)
	fault := func(*http.Request) *sandbox.Fault {
		if away.Load() {
			return &sandbox.Fault{Status: http.StatusServiceUnavailable, ContentType: "text/plain", Body: "away"}
		}
		return nil
	}
	scan := sandbox.NewScan(l, sandbox.ScanOptions{Fault: fault})
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{Fault: fault, CheckpointInterval: 20 * time.Millisecond}), defaultScope())
	cfg.ScanURL, cfg.Listen = []string{serveScan(t, scan)}, "127.0.0.1:0"
	var log journal
	daemon := startLogged(t, cfg, log.logger())
	eventuallyOf(t, daemon, "trying again", func() bool { return len(log.lines(t, "trying again"))+len(log.lines(t, "retrying")) > 0 })
	for name, value := range lagOf(t, &log) {
		require.Equal(t, "NaN", value, name)
	}
	_, metrics := ask(t, &log, "/metrics")
	require.Contains(t, metrics, "\nledger_indexer_ledger_end_offset NaN\n")

	away.Store(false)
	waitForLag(t, &log, daemon, "0")
	away.Store(true)
	l.Grow(50) // which nobody is told
	waitForLag(t, &log, daemon, "NaN")
	away.Store(false)
	waitFor(t, database, lastUpdate(l))
	waitForHistory(t, database, scan)
	waitForLag(t, &log, daemon, "0")
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
}
