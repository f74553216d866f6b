package app

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// A repair beside the daemon that changes what numbers mean ends its terms: the daemon leads again, with what they mean
// now, and continues by itself.
func TestARepairOfTheDictionariesBesideTheDaemon(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 43})
	l.Grow(100)
	database, server := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{})
	daemon := startIndexer(t, indexerFor(database, server, defaultScope()))
	waitFor(t, database, lastUpdate(l))

	db, read := pages(t, database, server, defaultScope())
	repairer, ok, err := audit.LeadRepair(t.Context(), db)
	require.NoError(t, err)
	require.True(t, ok)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	_, err = conn.Exec(t.Context(), "DELETE FROM indexer.synchronizers WHERE synchronizer_ref = 1")
	require.NoError(t, err)
	epoch := func() (n int64) {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT epoch FROM indexer.leadership WHERE role = 'updates'").Scan(&n))
		return n
	}
	before := epoch()
	for _, page := range read {
		require.NoError(t, repairer.RepairUpdates(t.Context(), defaultScope().Domain(), page))
	}
	require.NoError(t, repairer.RepairDerived(t.Context(), nil))
	repairer.Close()
	require.Empty(t, compare(t, db, read))

	l.Grow(100)
	waitFor(t, database, lastUpdate(l))
	require.Equal(t, before+2, epoch(), "it leads again")
	require.NoError(t, daemon.finish())
	want := l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())
	require.Empty(t, sandbox.Diff(want, relations(t, database)))
}
