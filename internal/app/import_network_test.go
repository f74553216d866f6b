package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// networkPair is the pair of schemas of a network in a database.
func networkPair(database string) config.Database {
	return config.Database{DatabaseURL: database, Schemas: config.Schemas{Network: true}}
}

// notOfUpdates are the relations of records. Those of pruned updates, and of what was redacted of others, stay where they were derived, and don't follow from what is left.
var notOfUpdates = append(names("party_transfers reported_balances exact_payloads"), sandbox.HistoryRelations()...)

// An import of a network makes the schemas that were exported, which a Scan service verifies, and every seal holds. The indexer goes on, and derives the records.
func TestAnImportMakesTheSameNetwork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		snapshot, pruned float64 // behind which part of the updates; 0: not
		redacted         bool
	}{
		"from the beginning": {}, "from a snapshot": {snapshot: 0.6}, "pruned": {pruned: 0.5}, "redacted": {redacted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l, scan := scanOf(101, 600, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second})
			database, url := networkDatabase(t), serveScan(t, scan)
			if c.snapshot > 0 {
				_, err := RunNetworkBackfill(t.Context(), networkBackfillFor(database, url, networkOffsetAt(t, scan, c.snapshot)), testLogger(t), nil)
				require.NoError(t, err)
			}
			run := networkFor(database, url)
			require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
			if c.pruned > 0 {
				before := store.PruneBefore{Offset: new(ledger.Offset(networkOffsetAt(t, scan, c.pruned)))}
				_, err := RunPrune(t.Context(), networkPair(database), before, true, testLogger(t))
				require.NoError(t, err)
			}
			if c.redacted {
				update := texts(t, database, `SELECT e.update_id FROM network.exercised_events e WHERE e.choice = ANY ($1::text[]) AND NOT EXISTS (
					SELECT FROM network.created_events c JOIN network.active_contracts x USING (contract_id) WHERE c.ledger_offset = e.ledger_offset) LIMIT 1`, ledger.MovingChoices())[0]
				_, err := RunRedact(t.Context(), networkPair(database), audit.Redaction{UpdateID: update}, "a test", true, testLogger(t))
				require.NoError(t, err)
				require.Positive(t, count(t, database, "network_indexer.redacted_records"))
			}
			run.VerifyRate = 100_000
			daemon := startIndexer(t, run)
			eventuallyIn(t, database, "all is sealed",
				"EXISTS (SELECT FROM network.verifications WHERE stream = 'updates' AND to_inclusive >= (SELECT max(ledger_offset) FROM network.updates))")
			require.NoError(t, daemon.finish())
			folder, other := t.TempDir(), throwaway.Database(t)
			wrote, err := exported(t, Export{Database: networkPair(database), To: folder})
			require.NoError(t, err)
			require.Greater(t, len(wrote), 2)

			done, err := RunImport(t.Context(), Import{Database: networkPair(other), From: folder}, testLogger(t))
			require.NoError(t, err)
			require.Equal(t, wrote[len(wrote)-1].To, done.Watermark)
			require.Equal(t, c.snapshot+c.pruned > 0, done.Entries > 0)
			require.Equal(t, count(t, database, "network.verifications WHERE stream <> 'transactions'"), done.Seals)
			require.Positive(t, done.Seals)
			sealed := `SELECT format('%s %s %s %s', stream, from_exclusive, to_inclusive, encode(digest, 'hex')) FROM network.verifications WHERE stream <> 'transactions' ORDER BY 1`
			require.Equal(t, texts(t, database, sealed), texts(t, other, sealed))
			result := requireNetworkVerified(t, other, url)
			require.Equal(t, int64(count(t, other, "network.updates")), result.Updates.Updates)

			l.Grow(200)
			for _, of := range []string{database, other} {
				require.NoError(t, RunIndexer(t.Context(), networkFor(of, url), testLogger(t)))
			}
			want, got := everythingIn(t, database, config.NetworkSchemas), everythingIn(t, other, config.NetworkSchemas)
			require.Greater(t, len(want["updates"]), int(result.Updates.Updates))
			require.NotEmpty(t, want["transfers"])
			delete(want, "verifications") // those of records come later
			for _, relation := range notOfUpdates {
				if c.pruned > 0 || c.redacted {
					delete(want, relation)
				}
			}
			requireAlike(t, want, got)
			requireNetworkVerified(t, other, url)
			verification := Verify{Database: networkPair(other), Verify: config.Verify{Offline: true}}
			result, err = RunVerify(t.Context(), verification, testLogger(t), func(d findings.Difference) { t.Error(d) })
			require.NoError(t, err)
			require.Positive(t, result.Sealed)
		})
	}
}

// The export of a network and that of a participant get into the schemas of their own kind only, one network's into no other's, and both into one database.
func TestImportsOfBothLedgers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(102, 200, sandbox.ScanOptions{})
	remote, elsewhere := scanOf(103, 200, sandbox.ScanOptions{})
	database, foreign := databaseOfBoth(t), networkDatabase(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), everything("ledger-effects"))
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, scan)}, "both"
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.NoError(t, RunIndexer(t.Context(), networkFor(foreign, serveScan(t, elsewhere)), testLogger(t)))
	folderOf := func(of config.Database) string {
		folder := t.TempDir()
		_, err := exported(t, Export{Database: of, To: folder})
		require.NoError(t, err)
		return folder
	}
	participant, network, another := folderOf(cfg.Database), folderOf(networkPair(database)), folderOf(networkPair(foreign))
	other := config.Database{DatabaseURL: databaseOfBoth(t)}
	both := networkPair(other.DatabaseURL)
	for _, i := range []Import{{Database: both, From: network}, {Database: other, From: participant}, {Database: both, From: network}} {
		_, err := RunImport(t.Context(), i, testLogger(t))
		require.NoError(t, err)
	}
	for _, schemas := range []store.Schemas{{Tables: "indexer", Views: "ledger"}, config.NetworkSchemas} {
		want, got := everythingIn(t, database, schemas), everythingIn(t, other.DatabaseURL, schemas)
		require.NotEmpty(t, want["updates"])
		for _, relation := range names("updates created_events archived_events exercised_events active_contracts contract_lifetimes") {
			requireAlike(t, map[string][]string{relation: want[relation]}, got)
		}
	}

	for _, c := range []struct {
		Import
		schemas store.Schemas
		parts   []string
	}{
		{Import{Database: other, From: network}, store.Schemas{Tables: "indexer", Views: "ledger"}, []string{"is of a network, and not of a participant's database", "give --network"}},
		{Import{Database: both, From: participant}, config.NetworkSchemas, []string{"is of a participant's database, and not of a network", "leave --network out"}},
		{Import{Database: both, From: another}, config.NetworkSchemas, []string{"the export is of the network that " + remote.DSO(), "a Scan service of the network that " + l.DSO()}},
		{Import{Database: both, From: damagedCopy(t, network)}, config.NetworkSchemas, []string{"bytes instead of"}},
	} {
		stored := everythingIn(t, other.DatabaseURL, c.schemas)
		_, err := RunImport(t.Context(), c.Import, testLogger(t))
		requireProblem(t, err, c.parts...)
		requireAlike(t, stored, everythingIn(t, other.DatabaseURL, c.schemas))
	}
}

// An export of a participant, or of a network, is refused where the database holds what a Scan service of another network sent, in whichever pair of schemas.
func TestImportsOfAnotherNetwork(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(104, 100, sandbox.ScanOptions{})
	remote, elsewhere := scanOf(105, 100, sandbox.ScanOptions{})
	folders := map[bool]string{false: t.TempDir(), true: t.TempDir()} // of the network
	from := databaseOfBoth(t)
	cfg := indexerFor(from, serve(t, remote, sandbox.ServerOptions{}), everything("ledger-effects"))
	cfg.ScanURL, cfg.ScanHistory = []string{serveScan(t, elsewhere)}, "both"
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	for ofNetwork, folder := range folders {
		_, err := exported(t, Export{Database: config.Database{DatabaseURL: from, Schemas: config.Schemas{Network: ofNetwork}}, To: folder})
		require.NoError(t, err)
	}
	for _, history := range []config.ScanHistory{"updates", "transactions"} {
		database := databaseOfBoth(t)
		run := networkFor(database, serveScan(t, scan))
		run.ScanHistory = history
		require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
		for ofNetwork, folder := range folders {
			_, err := RunImport(t.Context(), Import{Database: config.Database{DatabaseURL: database, Schemas: config.Schemas{Network: ofNetwork}}, From: folder}, testLogger(t))
			requireProblem(t, err, "the export is of the network that "+remote.DSO(), "the database holds data from a Scan service of the network that "+l.DSO()+" operates")
		}
		require.Zero(t, count(t, database, "ledger.updates"))
		require.Equal(t, history == "updates", count(t, database, "network.updates") > 0)
	}
}

// damagedCopy copies an export, of which one file is cut.
func damagedCopy(t *testing.T, folder string) (damaged string) {
	t.Helper()
	damaged = t.TempDir()
	require.NoError(t, os.CopyFS(damaged, os.DirFS(folder)))
	files, err := filepath.Glob(filepath.Join(damaged, "updates", "*.parquet"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(files[len(files)-1], 10))
	return damaged
}
