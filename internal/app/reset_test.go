package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// Nothing is removed beside a process that writes, and who that is is said.
func TestResetBesideAWriter(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for sessions that the server has to end, and that takes seconds")
	database := throwaway.Migrated(t, migrate)
	db, err := store.Open(store.Config{URL: database, Holder: "another one"})
	require.NoError(t, err)
	defer db.Close()
	leader, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer leader.Close()
	_, err = RunReset(t.Context(), config.Database{DatabaseURL: database}, 1, true, testLogger(t))
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "another process writes this database: another one", problem.What)
	require.Equal(t, "stop it before resetting", problem.Do)
}
