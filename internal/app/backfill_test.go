package app

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

func backfillFor(databaseURL, ledgerURL string, scope config.Scope, at int64) Backfill {
	b := Backfill{Database: config.Database{DatabaseURL: databaseURL}, Ledger: config.Ledger{LedgerURL: ledgerURL}, Scope: scope}
	if at >= 0 {
		b.AtOffset = &at
	}
	return b
}

// quietOffset is an offset in the middle of the ledger at which no reassignment is in flight, so that a server
// serves its snapshot.
func quietOffset(t *testing.T, l *sandbox.Ledger) int64 {
	t.Helper()
	for i := l.Len() / 2; i < l.Len(); i++ {
		if !l.InFlight(l.Offset(i)) {
			return l.Offset(i)
		}
	}
	t.Fatal("reassignments are in flight everywhere")
	return 0
}

func requireProblem(t *testing.T, err error, parts ...string) {
	t.Helper()
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	text := err.Error() + "; " + problem.Do
	for _, part := range parts {
		require.Contains(t, text, part)
	}
}

// A server without tokens that cuts a long snapshot without saying so is refused, and nothing of it is kept.
func TestBackfillOfASnapshotThatMayBeCut(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(800)
	at := quietOffset(t, l)
	database := throwaway.Migrated(t, migrate)
	cutting := serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 50, IgnoreLargeLimit: true})
	_, err := RunBackfill(t.Context(), backfillFor(database, cutting, defaultScope(), at), testLogger(t), nil)
	requireProblem(t, err, "may have cut it", "http-list-max-elements-limit", "--templates", "--start genesis")
	require.Equal(t, []string{"0"}, texts(t, database, "SELECT count(*)::text FROM indexer.snapshots"))

	long := serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 700, IgnoreLargeLimit: true})
	_, err = RunBackfill(t.Context(), backfillFor(database, long, defaultScope(), at), testLogger(t), nil)
	require.NoError(t, err)
	require.Empty(t, sandbox.Diff(l.TruthFromSnapshot(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, at, at), relations(t, database)))
}

// At the ledger's end reassignments may be in flight: their entries are kept, and are not active contracts.
func TestBackfillWithReassignmentsInFlight(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 5})
	l.Grow(300)
	for !l.InFlight(l.End()) {
		l.Grow(1)
	}
	at := l.End()
	database, ledgerURL := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{})
	_, err := RunBackfill(t.Context(), backfillFor(database, ledgerURL, defaultScope(), -1), testLogger(t), nil)
	require.NoError(t, err)
	truth := sandbox.Scope{Shape: sandbox.ACSDelta}
	want := l.TruthFromSnapshot(truth, at, at)
	require.NotEmpty(t, want["reassignments"])
	require.Empty(t, sandbox.Diff(want, relations(t, database)))

	l.Grow(200)
	t.Run("at an older offset the server refuses", func(t *testing.T) {
		_, err := RunBackfill(t.Context(), backfillFor(throwaway.Migrated(t, migrate), ledgerURL, defaultScope(), at), testLogger(t), nil)
		requireProblem(t, err, "reassignment", "in flight")
	})
}

// backfillToCommit runs a backfill that is stopped at its first commit. The participant serves one page, and no more
// before that: what is there is written together, and could be all of it.
func backfillToCommit(t *testing.T, database string, l sandbox.History, options sandbox.ServerOptions, at int64) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var served atomic.Bool
	participant := sandbox.NewServer(l, options)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "active-contracts") {
			participant.ServeHTTP(w, r)
			return
		}
		if served.Load() {
			<-ctx.Done()
		}
		answer := httptest.NewRecorder()
		participant.ServeHTTP(answer, r)
		if answer.Code == http.StatusOK && strings.Contains(answer.Body.String(), "contractEntry") { // the server was not merely asked what it has
			served.Store(true)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may have gone
	}))
	t.Cleanup(server.Close)
	_, err := RunBackfill(ctx, backfillFor(database, server.URL, defaultScope(), at), testLogger(t), func(int64) { stop() })
	return err
}

// What the server or the database refuses comes out with what to do.
func TestBackfillRefusals(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "takes a database for each refusal")
	l := sandbox.NewLedger(sandbox.Options{Seed: 6})
	l.Grow(600)
	at := quietOffset(t, l)
	ledgerURL := serve(t, l, sandbox.ServerOptions{})
	run := func(t *testing.T, database, ledgerURL string, at int64, change func(*Backfill)) error {
		t.Helper()
		b := backfillFor(database, ledgerURL, defaultScope(), at)
		if change != nil {
			change(&b)
		}
		_, err := RunBackfill(t.Context(), b, testLogger(t), nil)
		return err
	}
	small := sandbox.ServerOptions{StrictInterface: true, ListLimit: 20}
	// begun leaves an unfinished snapshot of one page.
	begun := func(t *testing.T, l sandbox.History) string {
		t.Helper()
		database := throwaway.Migrated(t, migrate)
		require.ErrorIs(t, backfillToCommit(t, database, l, small, at), context.Canceled)
		return database
	}

	t.Run("above the ledger's end", func(t *testing.T) {
		t.Parallel()
		requireProblem(t, run(t, throwaway.Migrated(t, migrate), ledgerURL, l.End()+10, nil), "above the ledger's end", "--at-offset")
	})
	t.Run("above the ledger's end, server tells no end", func(t *testing.T) {
		t.Parallel()
		requireProblem(t, run(t, throwaway.Migrated(t, migrate), serve(t, l, small), l.End()+10, nil), "end")
	})
	t.Run("below the pruned offset", func(t *testing.T) {
		t.Parallel()
		pruned := sandbox.NewLedger(sandbox.Options{Seed: 6})
		pruned.Grow(600)
		require.NoError(t, pruned.Prune(at))
		requireProblem(t, run(t, throwaway.Migrated(t, migrate), serve(t, pruned, sandbox.ServerOptions{}), at-5, nil), "pruned", "--at-offset")
		requireProblem(t, run(t, throwaway.Migrated(t, migrate), serve(t, pruned, small), at-5, nil), "pruned")
	})
	t.Run("into a database that holds data", func(t *testing.T) {
		t.Parallel()
		database := throwaway.Migrated(t, migrate)
		require.NoError(t, RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), testLogger(t)))
		requireProblem(t, run(t, database, ledgerURL, at, nil), "already holds", "new database")
	})
	t.Run("into another participant's database", func(t *testing.T) {
		t.Parallel()
		database := throwaway.Migrated(t, migrate)
		require.NoError(t, run(t, database, ledgerURL, at, nil))
		other := sandbox.NewLedger(sandbox.Options{Seed: 66})
		other.Grow(600)
		err := RunIndexer(t.Context(), indexerFor(database, serve(t, other, sandbox.ServerOptions{}), defaultScope()), testLogger(t))
		requireProblem(t, err, "belongs to participant", "--ledger-url")
	})
	t.Run("another offset than was begun", func(t *testing.T) {
		t.Parallel()
		ledgerURL := serve(t, l, small)
		database := begun(t, l)
		requireProblem(t, run(t, database, ledgerURL, l.End(), nil), "unfinished snapshot", "--restart")
		require.NoError(t, run(t, database, ledgerURL, l.End(), func(b *Backfill) { b.Restart = true }))
	})
	t.Run("another scope than was begun", func(t *testing.T) {
		t.Parallel()
		ledgerURL := serve(t, l, small)
		database := begun(t, l)
		requireProblem(t, run(t, database, ledgerURL, at, func(b *Backfill) { b.Blobs = true }), "unfinished snapshot", "--restart")
	})
	t.Run("token of another version", func(t *testing.T) {
		t.Parallel()
		database := begun(t, l)
		upgraded := small
		upgraded.Version = "3.6"
		ledgerURL := serve(t, l, upgraded)
		requireProblem(t, run(t, database, ledgerURL, at, nil), "token", "--restart")
		require.NoError(t, run(t, database, ledgerURL, at, func(b *Backfill) { b.Restart = true }))
	})
	t.Run("pruned since it was begun", func(t *testing.T) {
		t.Parallel()
		pruned := sandbox.NewLedger(sandbox.Options{Seed: 6})
		pruned.Grow(600)
		ledgerURL := serve(t, pruned, small)
		database := begun(t, pruned)
		require.NoError(t, pruned.Prune(at+1))
		requireProblem(t, run(t, database, ledgerURL, at, nil), "pruned")
	})
	t.Run("3.4 has no tokens and too many contracts for one answer", func(t *testing.T) {
		t.Parallel()
		database, ledgerURL := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 20})
		requireProblem(t, run(t, database, ledgerURL, at, func(b *Backfill) { b.Blobs = true }), "http-list-max-elements-limit", "--templates")
		// It left nothing: an indexer does not wait for it, and begins as if it had never been.
		require.NoError(t, RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), testLogger(t)))
		require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End()), relations(t, database)))
	})
}

// While a snapshot is unfinished the daemon waits, alive and not ready, and continues when it is finished.
func TestIndexerWaitsForTheSnapshot(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits between tries, as the commands do")
	l := sandbox.NewLedger(sandbox.Options{Seed: 9})
	l.Grow(600)
	at := quietOffset(t, l)
	options := sandbox.ServerOptions{StrictInterface: true, ListLimit: 20}
	ledgerURL := serve(t, l, options)
	database := throwaway.Migrated(t, migrate)
	require.ErrorIs(t, backfillToCommit(t, database, l, options, at), context.Canceled)

	indexed := make(chan error, 1)
	go func() {
		defer close(indexed)
		indexed <- RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), testLogger(t))
	}()
	t.Cleanup(func() {
		for range indexed { // until it has ended: it writes to the test's log
		}
	})
	_, err := RunBackfill(t.Context(), backfillFor(database, ledgerURL, defaultScope(), at), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, <-indexed)
	truth := sandbox.Scope{Shape: sandbox.ACSDelta}
	require.Empty(t, sandbox.Diff(l.TruthFromSnapshot(truth, at, l.End()), relations(t, database)))
}
