package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
)

// recorded finds a file of recorded responses, which lie beside the project where they are at hand.
func recorded(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "recorded", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no recorded responses beside the project: %v", err)
	}
	return path
}

// What a live test network's participant answered is indexed with every event of it.
func TestIndexRecordedUpdates(t *testing.T) {
	t.Parallel()
	replay, err := sandbox.LoadReplay(recorded(t, "updates-ledger-effects-31.json"))
	require.NoError(t, err)
	database := throwaway.Migrated(t, migrate)
	scope := defaultScope()
	scope.Shape = "ledger-effects"
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, replay, sandbox.ServerOptions{}), scope), testLogger(t)))

	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for query, want := range map[string]int{
		"SELECT count(*) FROM ledger.updates":                                31,
		"SELECT count(*) FROM ledger.created_events":                         59,
		"SELECT count(*) FROM ledger.exercised_events":                       98,
		"SELECT count(*) FROM ledger.exercised_events WHERE consuming":       47,
		"SELECT count(*) FROM ledger.archived_events":                        47,
		"SELECT count(*) FROM ledger.updates WHERE record_time IS NULL":      0,
		"SELECT count(*) FROM ledger.created_events WHERE update_id IS NULL": 0,
		"SELECT count(*) FROM ledger.unknown_updates":                        0,
		"SELECT ledger.latest_offset()":                                      31,
		"SELECT count(*) FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id) WHERE a.ledger_offset = c.ledger_offset AND NOT a.acs_delta AND NOT c.acs_delta": 12,
		// Active: created for a stakeholder, and not archived.
		"SELECT count(*) - (SELECT count(*) FROM ledger.created_events c WHERE acs_delta AND NOT EXISTS (SELECT FROM ledger.archived_events a WHERE a.contract_id = c.contract_id)) FROM ledger.active_contracts": 0,
	} {
		var got int
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&got), query)
		require.Equal(t, want, got, query)
	}
	requirePublishedTokenEvents(t, conn)
	requirePublishedHoldings(t, conn)
}

// A recorded snapshot seeds a database with its contracts and their views.
func TestBackfillRecordedSnapshot(t *testing.T) {
	t.Parallel()
	replay, err := sandbox.LoadReplay(recorded(t, "active-contracts-6.json"))
	require.NoError(t, err)
	database, ledgerURL := throwaway.Migrated(t, migrate), serve(t, replay, sandbox.ServerOptions{})
	progress, err := RunBackfill(t.Context(), backfillFor(database, ledgerURL, defaultScope(), -1), testLogger(t), nil)
	require.NoError(t, err)
	require.EqualValues(t, 6, progress.Entries)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for query, want := range map[string]int{
		"SELECT count(*) FROM ledger.active_contracts":                           6,
		"SELECT count(*) FROM ledger.created_events WHERE origin = 'snapshot'":   6,
		"SELECT count(*) FROM ledger.interface_views":                            10,
		"SELECT count(*) FROM ledger.active_contracts WHERE payload IS NOT NULL": 6,
	} {
		var got int
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&got), query)
		require.Equal(t, want, got, query)
	}
}
