package bench

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/store"
)

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

// What the limit writes is found by the tables' columns: a table of events that is added belongs to it without being
// named here.
func TestTablesAreFoundByTheirColumns(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), throwaway.Migrated(t, migrate))
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), "CREATE TABLE indexer.novelties (ledger_offset bigint, node_id integer, novelty text) PARTITION BY RANGE (ledger_offset)")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "CREATE TABLE indexer.novelties_p0 PARTITION OF indexer.novelties FOR VALUES FROM (0) TO (100)")
	require.NoError(t, err)
	of := func(places []string) []table {
		list, err := tablesOf(t.Context(), conn, "indexer", places...)
		require.NoError(t, err)
		return list
	}
	facts, snapshot, records := of(ofFacts), of(ofSnapshot), of(ofRecords)
	require.Equal(t, table{"updates", "ledger_offset"}, facts[0])
	require.Equal(t, table{"transactions", "seq"}, records[0])
	require.Subset(t, facts, []table{{"created", "ledger_offset"},
		{"offset_checkpoints", "ledger_offset"}, {"party_lists", "party_list_ref"}, {"novelties", "ledger_offset"}})
	require.Subset(t, snapshot, append([]table{{"active_contracts", "activated_offset"}, {"lifetimes", "activated_offset"}}, facts...))
	require.Subset(t, records, []table{{"transfers", "seq"}, {"party_transfers", "seq"}})
	for _, found := range slices.Concat(snapshot, records) {
		require.NotContains(t, []string{"checkpoints", "novelties_p0", "coverage"}, found.Name)
	}
}
