package app

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

var inBulk = sandbox.ScanOptions{BulkEvery: 20 * time.Second, BulkLines: 15, SnapshotEvery: 5 * time.Second}

// filesFor is a configuration that reads bulk files.
func filesFor(databaseURL, folder string, scanURL ...string) NetworkBackfill {
	return NetworkBackfill{Database: config.Database{DatabaseURL: databaseURL}, Scan: config.Scan{ScanURL: scanURL}, Files: config.Files{Files: folder}}
}

// Bulk files are downloaded and read, also where a service writes no folder since there is no update, and the daemon goes
// on where they end: the rows are those of the network. A second database is made of the same files without the service.
func TestANetworkIsReadFromBulkFiles(t *testing.T) {
	t.Parallel()
	options := inBulk
	options.BulkEvery /= 5
	_, scan := scanOf(95, 500, options)
	url, database, folder := serveScan(t, scan), throwaway.Database(t), t.TempDir()
	loaded, err := RunNetworkFiles(t.Context(), filesFor(database, folder, url), testLogger(t))
	require.NoError(t, err)
	list, err := os.ReadFile(filepath.Join(folder, "objects.json"))
	require.NoError(t, err)
	require.Contains(t, string(list), `"without_updates":["20`)
	require.Equal(t, loaded.End, loaded.Watermark)
	stored := count(t, database, "network.updates")
	require.Greater(t, stored, len(scan.NetworkTruth()["updates"])/2)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
	requireNetworkFloors(t, database, 0)
	loaded, err = RunNetworkFiles(t.Context(), filesFor(database, folder), testLogger(t))
	require.NoError(t, err)
	require.Zero(t, loaded.Updates, "everything is stored")

	database = networkDatabase(t)
	loaded, err = RunNetworkFiles(t.Context(), filesFor(database, folder), testLogger(t))
	require.NoError(t, err)
	require.EqualValues(t, stored, loaded.Updates)
	require.Equal(t, stored, count(t, database, "network.updates"))
}

// A database that is seeded from a snapshot in bulk files, in several runs, the last without the service, has the rows
// of one that is seeded from the service page by page. The daemon continues from there, and everything is verified.
func TestANetworkIsSeededFromBulkFiles(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]float64{"an earlier one": 0.85, "newest": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			l, scan := scanOf(95, 500, inBulk)
			url, database, folder := serveScan(t, scan), networkDatabase(t), t.TempDir()
			at := int64(-1)
			if part > 0 {
				at = networkOffsetAt(t, scan, part)
			}
			cfg := networkBackfillFor(database, url, at)
			cfg.Files.Files, cfg.ActiveOnly = folder, true
			_, err := RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), folder, url), testLogger(t))
			require.NoError(t, err)
			damaged, mend := damagedUpdates(t, folder)
			_, err = RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
			require.ErrorContains(t, err, "the digest of file "+damaged)
			begun := count(t, database, "network_indexer.created")
			require.Positive(t, begun)
			snapshots := texts(t, database, "SELECT snapshot_offset::text FROM network_indexer.snapshots")
			mend()
			if at < 0 {
				l.Grow(300) // newer ones are not downloaded
			} else {
				cfg.ScanURL = nil
			}
			progress, err := RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
			require.NoError(t, err)
			require.Equal(t, []string{fmt.Sprint(int64(progress.At))}, snapshots)
			require.Greater(t, progress.Entries, int64(begun))

			paged := networkDatabase(t)
			pages, err := RunNetworkBackfill(t.Context(), networkBackfillFor(paged, url, int64(progress.At)), testLogger(t), nil)
			require.NoError(t, err)
			require.Equal(t, pages.At, progress.At)
			require.Equal(t, pages.Entries, progress.Entries)
			require.Empty(t, sandbox.Diff(networkRelations(t, paged), networkRelations(t, database)))

			migration, taken := progress.At.NetworkPosition()
			require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
			require.Empty(t, sandbox.Diff(scan.NetworkTruthFromSnapshot(migration, taken), networkRelations(t, database)))
			requireNetworkFloors(t, database, int64(progress.At))
			require.Positive(t, requireNetworkVerified(t, database, url).Updates.Carried)
		})
	}
}

// damagedUpdates empties a file of updates in a folder, the one after seven tenths of them, until mend is called.
func damagedUpdates(t *testing.T, folder string) (damaged string, mend func()) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*", "updates_0.zstd"))
	require.NoError(t, err)
	damaged = names[len(names)*7/10]
	away := damaged + ".away"
	require.NoError(t, os.Rename(damaged, away))
	require.NoError(t, os.WriteFile(damaged, nil, 0o600))
	return damaged, func() { require.NoError(t, os.Rename(away, damaged)) }
}

// Of a snapshot in bulk files nothing is stored if one of its files is damaged, and nothing is shown if one of updates
// is. When that is mended, the same command finishes it.
func TestSnapshotsInBulkFilesThatAreDamaged(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(96, 250, inBulk)
	_, other := scanOf(97, 150, inBulk)
	database, folder := networkDatabase(t), t.TempDir()
	cfg := filesFor(database, folder)
	cfg.ActiveOnly = true
	_, err := RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), folder, serveScan(t, scan)), testLogger(t))
	require.NoError(t, err)
	_, err = RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), folder, serveScan(t, other)), testLogger(t))
	require.ErrorContains(t, err, "has the bulk files of the network that")
	_, err = RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
	require.ErrorContains(t, err, "the bulk files have no snapshot")
	download := filesFor(networkDatabase(t), folder, serveScan(t, scan))
	download.ActiveOnly = true
	whole, err := RunNetworkBackfill(t.Context(), download, testLogger(t), nil)
	require.NoError(t, err)
	names, err := filepath.Glob(filepath.Join(folder, "*", "ACS_0.zstd"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	updates, err := filepath.Glob(filepath.Join(folder, "*", "updates_0.zstd"))
	require.NoError(t, err)
	for i, name := range []string{names[0], updates[len(updates)*7/10]} {
		right, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, right[:len(right)-10], 0o600))
		_, err = RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, "the digest of file "+name)
		require.Equal(t, i == 1, count(t, database, "network_indexer.created") > 0)
		require.Zero(t, count(t, database, "network.active_contracts"))
		require.NoError(t, os.WriteFile(name, right, 0o600))
	}
	_, err = RunNetworkFiles(t.Context(), filesFor(database, folder), testLogger(t))
	require.ErrorContains(t, err, "is not finished")
	seeded, err := RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
	require.NoError(t, err)
	require.Equal(t, whole.Entries, seeded.Entries)
	require.Positive(t, count(t, database, "network.active_contracts"))

	elsewhere := filesFor(database, t.TempDir(), serveScan(t, other))
	elsewhere.ActiveOnly = true
	_, err = RunNetworkBackfill(t.Context(), elsewhere, testLogger(t), nil)
	require.ErrorContains(t, err, "holds the updates of another network than that of the bulk files")
}
