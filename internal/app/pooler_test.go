package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// Every job works through PgBouncer in session mode, from the empty database on.
func TestEverythingThroughAPooler(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs most of the commands, one after the other")
	l := sandbox.NewLedger(sandbox.Options{Seed: 44})
	l.Grow(600)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{})
	server := serve(t, l, sandbox.ServerOptions{})
	at := quietOffset(t, l)
	database := throwaway.Database(t)
	pooled := throwaway.PgBouncer(t, database, throwaway.PoolSessions)

	_, err := RunBackfill(t.Context(), backfillFor(pooled, server, defaultScope(), at), testLogger(t), nil)
	require.NoError(t, err)
	cfg := indexerFor(pooled, server, defaultScope())
	cfg.ScanURL = []string{serveScan(t, scan)}
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.NotZero(t, requireVerified(t, pooled, server))
	execute(t, database, "DELETE FROM indexer.created WHERE ledger_offset = (SELECT max(ledger_offset) FROM indexer.created)")
	var found []audit.Difference
	repair := verifyWith(pooled, server, true)
	repair.All = true
	_, err = RunVerify(t.Context(), repair, testLogger(t), func(d audit.Difference) { found = append(found, d) })
	require.NoError(t, err)
	require.NotEmpty(t, found)
	requireVerified(t, pooled, server)
	require.Equal(t, trueActiveAt(l, sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), activeAt(t, database, l.End()))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}

// Poolers that share sessions out are refused at the start, by every job that writes and by those that read.
func TestSharedSessionsAreRefused(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 45})
	l.Grow(10)
	server := serve(t, l, sandbox.ServerOptions{})
	database := throwaway.Migrated(t, migrate)
	for _, mode := range []string{throwaway.PoolTransactions, throwaway.PoolStatements} {
		pooled := throwaway.PgBouncer(t, database, mode)
		err := RunIndexer(t.Context(), indexerFor(pooled, server, defaultScope()), testLogger(t))
		requireProblem(t, err, "session mode")
		_, err = RunBackfill(t.Context(), backfillFor(pooled, server, defaultScope(), -1), testLogger(t), nil)
		requireProblem(t, err, "session mode")
		_, err = RunVerify(t.Context(), verifyWith(pooled, server, false), testLogger(t), func(audit.Difference) {})
		requireProblem(t, err, "session mode")
	}
	require.Zero(t, count(t, database, "indexer.updates"))
}
