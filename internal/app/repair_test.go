package app

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// What a participant shows as active, or does not show any more, although none of its updates says so, is found, and
// taken in by a repair of all: from there on the active contracts are those that it shows, and what was before stays.
func TestContractsThatComeAndGoWithoutAnUpdate(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 42, ActiveShare: 0.6})
	l.Grow(300)
	scope := defaultScope()
	scope.Topology = false
	held := func(list []string) []string { // without where it began
		for i, text := range list {
			list[i] = text[:strings.LastIndexByte(text, ' ')]
		}
		return list
	}
	activeOf := func(template string, at int64) []string {
		s := simulatedScope(scope)
		s.Templates = []string{template}
		return held(trueActiveAt(l, s, at))
	}
	stored, shown := lockedTemplate, amuletTemplate
	scope.Templates = []string{stored}
	var moved atomic.Bool // what is active is of another template
	participant := sandbox.NewServer(l, sandbox.ServerOptions{Version: "3.5", ListLimit: 40})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if moved.Load() && strings.Contains(r.URL.Path, "active-contracts") {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			body = bytes.ReplaceAll(body, []byte(stored), []byte(shown))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		participant.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, server.URL, scope), testLogger(t)))
	requireVerified(t, database, server.URL)
	before, events := activeAt(t, database, l.End()), relations(t, database)["created_events"]
	moved.Store(true)

	cfg := VerifyConfig{
		Database: config.Database{DatabaseURL: database}, Sources: config.Sources{LedgerURL: server.URL}, Verify: config.Verify{Repair: true},
	}
	verify := func() (VerifyResult, map[audit.Disagreement]int) {
		found := map[audit.Disagreement]int{}
		result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { found[d.Kind]++ })
		require.NoError(t, err)
		return result, found
	}
	result, found := verify()
	require.Positive(t, result.Remaining(true), "other updates may say it")
	require.Positive(t, found[audit.Missing])
	require.Positive(t, found[audit.Extra])
	require.Equal(t, before, activeAt(t, database, l.End()))

	cfg.All = true
	result, _ = verify()
	require.Zero(t, result.Remaining(true))
	require.Contains(t, strings.Join(result.Notes, "; "), "because the participant shows otherwise there")
	require.Equal(t, activeOf(shown, l.End()), held(activeAt(t, database, l.End())))
	require.Equal(t, activeOf(stored, l.End()-1), held(activeAt(t, database, l.End()-1)), "it was not so before")
	require.Subset(t, relations(t, database)["created_events"], events)
	requireVerified(t, database, server.URL)
	result, _ = verify()
	require.Zero(t, result.Updates.Repaired)
}
