package app

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/participant"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// requireUpdatesEqual compares what was indexed with the updates that a server shows.
func requireUpdatesEqual(t *testing.T, database, ledgerURL string, scope config.Scope) {
	t.Helper()
	db, err := store.Open(store.Config{URL: database, Logger: testLogger(t)})
	require.NoError(t, err)
	defer db.Close()
	end, _, err := db.Watermark(t.Context())
	require.NoError(t, err)
	require.Positive(t, end)
	client, err := participant.New(participant.Config{URL: ledgerURL, Logger: testLogger(t)}, scope.Domain())
	require.NoError(t, err)
	defer client.Close()
	for at := ledger.Offset(0); at < end; {
		page, err := client.ReadUpdates(t.Context(), at, end)
		require.NoError(t, err)
		require.NoError(t, audit.New(db).Compare(t.Context(), page, func(d audit.Difference) { t.Error(d) }))
		at = page.To
	}
}

// comparedElsewhere are the relations that the simulator tells no rows of.
var comparedElsewhere = names(`
	exact_payloads unknown_updates offset_checkpoints looked_up_contracts coverage verifications stream_checkpoints rewrites redactions
	events active_events active_counts template_numbers contracts contract_lifetimes holding_lifetimes party_transfers parties token_transfers
	packages templates interfaces choices fields typed_views synchronizers hosted_parties vetted_packages vetting_changes
	amulet_sums burns rewards traffic_purchases mining_rounds`)

// Every relation is compared with what the simulator decided, row by row, or is named as one that other tests are
// about.
func TestEveryRelationIsCompared(t *testing.T) {
	t.Parallel()
	compared := slices.Concat(sandbox.Relations(), sandbox.HistoryRelations(), names("holdings holding_totals token_events pending_instructions"))
	require.ElementsMatch(t, texts(t, throwaway.Migrated(t, migrate), "SELECT relname::text FROM pg_class WHERE relnamespace = 'ledger'::regnamespace AND relkind = 'v'"),
		slices.Concat(compared, comparedElsewhere))
}
