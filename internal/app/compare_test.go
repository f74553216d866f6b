package app

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

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
