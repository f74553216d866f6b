package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/sandbox"
)

// The daemon gathers statistics of the tables of a participant's updates, and of a network's, which autovacuum does of their partitions only.
func TestStatisticsOfPartitionedTables(t *testing.T) {
	t.Parallel()
	l, scan := scanOf(95, 30, sandbox.ScanOptions{})
	database := networkDatabase(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, scan)}, "updates"
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	for _, schema := range []string{"indexer", "network_indexer"} {
		execute(t, database,
			"INSERT INTO "+schema+".created SELECT (jsonb_populate_record(c, jsonb_build_object('ledger_offset', c.ledger_offset + 1000 + g))).* "+
				"FROM "+schema+".created c, generate_series(1, 10000) g WHERE (c.ledger_offset, c.node_id) = (SELECT ledger_offset, node_id FROM "+schema+".created ORDER BY 1 DESC, 2 DESC LIMIT 1)",
			"DO $$ BEGIN EXECUTE (SELECT string_agg(format('ANALYZE "+schema+".%I', name), ';') FROM "+schema+".partitions WHERE relation = 'created'); END $$")
	}
	startIndexer(t, cfg)
	const known = "(SELECT count(*) FROM pg_stats WHERE schemaname = $1 AND tablename = $2 AND inherited) > 0"
	eventuallyIn(t, database, "statistics of the ledger's creations", known, "indexer", "created")
	eventuallyIn(t, database, "statistics of the network's creations", known, "network_indexer", "created")
	require.Equal(t, []string{"-1"}, texts(t, database, "SELECT reltuples::text FROM pg_class WHERE oid = 'indexer.archived'::regclass"), "it is small")
}
