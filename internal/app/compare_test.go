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

// pages reads a ledger again, up to what a database has of it, and opens a store on the database.
func pages(t *testing.T, database, ledgerURL string, scope config.Scope) (*store.Store, []ledger.Page) {
	t.Helper()
	db, err := store.Open(store.Config{URL: database, Logger: testLogger(t)})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	end, started, err := db.Watermark(t.Context())
	require.NoError(t, err)
	require.True(t, started)
	client, err := participant.New(participant.Config{URL: ledgerURL, Logger: testLogger(t)}, scope.Domain())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	var list []ledger.Page
	for at := ledger.Offset(0); at < end; {
		page, err := client.ReadUpdates(t.Context(), at, end)
		require.NoError(t, err)
		list = append(list, page)
		at = page.To
	}
	return db, list
}

func compare(t *testing.T, db *store.Store, pages []ledger.Page) []string {
	t.Helper()
	var list []string
	for _, page := range pages {
		err := audit.New(db).Compare(t.Context(), page, func(d audit.Difference) error {
			list = append(list, d.String())
			return nil
		})
		require.NoError(t, err)
	}
	return list
}

// compareActive compares the active set with a snapshot of the participant.
func compareActive(t *testing.T, db *store.Store, ledgerURL string, scope config.Scope, at ledger.Offset) (list []string) {
	t.Helper()
	client, err := participant.New(participant.Config{URL: ledgerURL, Logger: testLogger(t)}, scope.Domain())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	var met []audit.EntryKey
	entries := 0
	var page ledger.SnapshotPage
	for !page.Last {
		page, err = client.ReadSnapshot(t.Context(), at, page.Next)
		require.NoError(t, err)
		entries += len(page.Entries)
		keys, err := audit.New(db).CompareActive(t.Context(), at, page.Entries, func(d audit.Difference) error {
			list = append(list, d.String())
			return nil
		})
		require.NoError(t, err)
		met = append(met, keys...)
	}
	require.Greater(t, entries, 50)
	require.NoError(t, audit.New(db).ActiveAt(t.Context(), at, func(key audit.EntryKey, extra audit.Difference) error {
		if !slices.Contains(met, key) {
			list = append(list, extra.String())
		}
		return nil
	}))
	return list
}

// requireNothingDiffers compares what was indexed with what a server shows, and returns the store.
func requireNothingDiffers(t *testing.T, database, ledgerURL string, scope config.Scope) *store.Store {
	t.Helper()
	db, list := pages(t, database, ledgerURL, scope)
	require.Empty(t, compare(t, db, list))
	return db
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
