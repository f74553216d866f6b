package app

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/admin"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// A job ends when the stream is current and the tasks have done what that left them.
func TestAJobFinishesItsTasks(t *testing.T) {
	t.Parallel()
	l, at := middle(57)
	cfg := indexerFor(throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{}), effects())
	cfg.Start, cfg.PackagesInterval, cfg.LookupRate, cfg.VerifyRate = strconv.FormatInt(at, 10), time.Hour, fast, 1_000_000
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	for _, wanted := range []string{nothingWanted, everyTypeKnown, allVerified, "EXISTS (SELECT FROM ledger.vetted_packages)"} {
		require.Equal(t, []string{"true"}, texts(t, cfg.DatabaseURL, "SELECT ("+wanted+")::text"), wanted)
	}
}

// What can't be done is said, with the exit code of its kind; what was done stays.
func TestAJobSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 58})
	l.Grow(20)
	unfinished := func(t *testing.T, cfg Indexer, parts ...string) {
		t.Helper()
		var missing *config.UnfinishedError
		err := RunIndexer(t.Context(), cfg, testLogger(t))
		require.ErrorAs(t, err, &missing)
		for _, part := range parts {
			require.ErrorContains(t, err, part)
		}
	}
	faulty := func(path string, fault sandbox.Fault) sandbox.ServerOptions {
		return sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
			if strings.HasPrefix(r.URL.Path, path) {
				return &fault
			}
			return nil
		}}
	}
	away := sandbox.Fault{Status: 503, ContentType: "application/json", Body: `{"code":"NA"}`}

	t.Run("a task that an operator must cure", func(t *testing.T) {
		t.Parallel()
		refused := sandbox.Fault{Status: 403, ContentType: "application/json", Body: `{"code":"NA"}`}
		cfg := indexerFor(throwaway.Migrated(t, migrate), serve(t, l, faulty("/v2/package-vetting", refused)), defaultScope())
		cfg.PackagesInterval = time.Hour
		err := RunIndexer(t.Context(), cfg, testLogger(t))
		requireProblem(t, err, "not all was done: updates: task vetting has not done all", "403 Forbidden")
		require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, cfg.DatabaseURL)))
	})
	t.Run("a task that does not get on", func(t *testing.T) {
		t.Parallel()
		cfg := indexerFor(throwaway.Migrated(t, migrate), serve(t, l, faulty("/v2/package-vetting", away)), defaultScope())
		cfg.PackagesInterval, cfg.Timeout = time.Hour, 5*time.Second
		unfinished(t, cfg, "not all was done within --timeout=5s: updates: ", "vetting")
	})
	t.Run("a stream that does not get on", func(t *testing.T) {
		t.Parallel()
		cfg := indexerFor(throwaway.Migrated(t, migrate), serve(t, l, faulty("/v2/updates", away)), defaultScope())
		cfg.Timeout = 3 * time.Second
		unfinished(t, cfg, "not all was done within --timeout=3s: updates: not current (waiting for the participant: ", "503")
	})
	t.Run("another process leads", func(t *testing.T) {
		t.Parallel()
		cfg := indexerFor(throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{}), defaultScope())
		daemon := startIndexer(t, cfg)
		waitFor(t, cfg.DatabaseURL, lastUpdate(l))
		requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "another process writes this database: ", "run with --until-current again")
		require.NoError(t, daemon.finish())
	})
}

// A stream whose tasks have finished is done, whenever the process is stopped after that.
func TestAJobThatIsStopped(t *testing.T) {
	t.Parallel()
	x := &indexer{daemon: &daemon{failures: map[*stream]error{}, health: admin.NewHealth(nil)}, metrics: admin.NewMetrics()}
	x.cfg.UntilCurrent = true
	done := &stream{indexer: x, title: "network", sourceName: scanService}
	waits := &stream{indexer: x, title: "records", sourceName: "the stored updates"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done.finish(ctx, newBackground())
	stop()
	waits.finish(ctx, newBackground())
	x.streams = []*stream{done}
	require.NoError(t, x.outcome(ctx))
	x.streams = []*stream{done, waits}
	require.EqualError(t, x.outcome(ctx), "stopped before all was done: records: not current (waiting for the stored updates)")
}
