package app

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// requireRecords compares what DuckDB reads of the records of an export with what PostgreSQL shows.
func requireRecords(t *testing.T, cfg Export, schema string) (rows map[string]int) {
	t.Helper()
	rows = requireRelations(t, cfg.DatabaseURL, schema, cfg.To, 1<<40, exportedRelations(t, cfg.DatabaseURL, schema, true))
	require.Positive(t, rows["transactions"])
	return rows
}

// The records of the transaction history, and those that follow from the updates of a network, are exported by their
// seqs, into places of their own.
func TestRecordsAreExported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(72, 150, sandbox.ScanOptions{BalanceChanges: true})
	database := databaseOfBoth(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), everything("ledger-effects"))
	cfg.ScanURL = []string{serveScan(t, scan)}
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.ScanHistory = config.ScanUpdates
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	for schema, schemas := range map[string]config.Schemas{"ledger": {}, "network": {Network: true}} {
		pair := Export{Database: config.Database{DatabaseURL: database, Schemas: schemas}, To: t.TempDir(), Options: export.Options{Updates: 7, Records: true}}
		wrote, err := exported(t, pair)
		require.NoError(t, err)
		require.Greater(t, len(wrote), 2)
		rows := requireRecords(t, pair, schema)
		for _, relation := range []string{"transfers", "transfer_receivers", "balance_changes", "mints"} {
			require.Positive(t, rows[relation], relation)
		}
		require.Equal(t, ledger.Offset(rows["transactions"]), wrote[len(wrote)-1].To)
		requireTables(t, pair, schema)
		before := filesOf(t, pair.To)
		pair.Check = true
		wrote, err = exported(t, pair)
		require.NoError(t, err)
		require.Empty(t, wrote)
		require.Equal(t, before, filesOf(t, pair.To))

		// What is of records is for nothing else.
		updates := pair
		updates.Options.Records = false
		_, err = exported(t, updates)
		requireProblem(t, err, "is of the records of the transaction history, and not of updates")
		_, _, err = RunPruneExported(t.Context(), pair.Database, nil, pair.To, false, testLogger(t))
		requireProblem(t, err, "is of the records of the transaction history, and not of updates")
		other := pair
		other.Network = !pair.Network
		_, err = exported(t, other)
		requireProblem(t, err, "each has a place of its own")
	}
	empty := Export{Database: config.Database{DatabaseURL: throwaway.Migrated(t, migrate)}, To: t.TempDir(), Options: export.Options{Records: true}}
	_, err := exported(t, empty)
	requireProblem(t, err, "no record of the transaction history is stored")
}

// Files of records that were derived again take the place of those of before. Of what was redacted the files have nothing
// any more.
func TestRecordsThatChangeAreExportedAgain(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "derives the records of a network twice")
	cfg, scan, _ := indexedNetwork(t)
	database := cfg.DatabaseURL
	to := Export{Database: cfg.Database, To: t.TempDir(), Options: export.Options{Updates: 20, Records: true}}
	to.Network = true
	first, err := exported(t, to)
	require.NoError(t, err)
	require.Greater(t, len(first), 2)
	rows := requireRecords(t, to, "network")

	described := texts(t, database, "SELECT t.update_id FROM network.transfers t WHERE t.seq > $1 AND t.seq <= $2 ORDER BY t.seq LIMIT 1", int64(first[1].From), int64(first[1].To))[0]
	_, err = RunRedact(t.Context(), to.Database, audit.Redaction{UpdateID: described}, "a test", true, testLogger(t))
	require.NoError(t, err)
	again, err := exported(t, to)
	require.NoError(t, err)
	require.Len(t, again, 1)
	require.Equal(t, first[1].Name(), again[0].Name())
	requireRecords(t, to, "network")

	_, err = RunReset(t.Context(), to.Database, ledger.Offset(networkOffsetAt(t, scan, 0.5)), true, testLogger(t))
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	before := filesOf(t, to.To)
	requireWaiting(t, to)
	require.Equal(t, before, filesOf(t, to.To), "nothing is verified")
	cfg.VerifyRate = 100_000
	daemon := startIndexer(t, cfg)
	eventuallyIn(t, database, "the records are verified", "network.verified_seq() = (SELECT max(seq) FROM network.transactions)")
	require.NoError(t, daemon.finish())
	anew, err := exported(t, to)
	require.NoError(t, err)
	require.Equal(t, rows, requireRecords(t, to, "network"))
	require.Less(t, len(anew), len(first), "what was before the reset stays")
	requireTables(t, to, "network")
	manifests, err := filepath.Glob(filepath.Join(to.To, "manifests", "*.json"))
	require.NoError(t, err)
	require.Len(t, manifests, len(first))
	require.True(t, slices.IsSortedFunc(anew, func(a, b export.Manifest) int { return int(a.From - b.From) }))
}

// Records whose updates were pruned can't be compared when the others are derived again. An export that follows does
// not wait for that.
func TestRecordsOfPrunedUpdatesAreExported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	cfg, scan, _ := indexedNetwork(t)
	database, of := cfg.DatabaseURL, cfg.Database
	of.Network = true
	_, err := RunPrune(t.Context(), of, store.PruneBefore{Offset: new(ledger.Offset(networkOffsetAt(t, scan, 0.3)))}, true, testLogger(t))
	require.NoError(t, err)
	_, err = RunReset(t.Context(), of, ledger.Offset(networkOffsetAt(t, scan, 0.7)), true, testLogger(t))
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.VerifyRate = 100_000
	daemon := startIndexer(t, cfg)
	eventuallyIn(t, database, "the records are verified", "network.verified_seq() = (SELECT max(seq) FROM network.transactions) AND network.verified_seq() > 0")
	require.NoError(t, daemon.finish())

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	to := Export{Database: of, To: t.TempDir(), Options: export.Options{Updates: 20, Records: true, Wrote: func(export.Manifest) { stop() }}}
	to.Follow = true
	require.NoError(t, RunExport(ctx, to, testLogger(t)))
	require.ErrorIs(t, ctx.Err(), context.Canceled, "it wrote a range")
}

// requireWaiting has an export follow until it waits for what is verified.
func requireWaiting(t *testing.T, cfg Export) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg.Follow, cfg.Options.Wrote = true, func(m export.Manifest) { t.Errorf("%s was written", m.Name()) }
	var log journal
	ended := make(chan error, 1)
	go func() { ended <- RunExport(ctx, cfg, log.logger()) }()
	log.wait(t, waitsForVerified)
	stop()
	require.NoError(t, <-ended)
}
