package app

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
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

// Bulk files are downloaded and read, and the daemon goes on where they end: the rows are those of the network. A
// second database is made of the same files without the service, and history below a snapshot too.
func TestANetworkIsReadFromBulkFiles(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(95, 500, inBulk)
	url, database, folder := serveScan(t, scan), throwaway.Database(t), t.TempDir()
	loaded, err := RunNetworkFiles(t.Context(), filesFor(database, folder, url), testLogger(t))
	require.NoError(t, err)
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
			_, scan := scanOf(95, 500, inBulk)
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
			mend()
			cfg.ScanURL = nil
			progress, err := RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
			require.NoError(t, err)
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

// A snapshot in bulk files that was begun is finished, whatever newer ones the service has by then: these are not
// downloaded.
func TestASnapshotInBulkFilesIsFinishedLater(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(95, 500, inBulk)
	cfg := networkBackfillFor(networkDatabase(t), serveScan(t, scan), -1)
	cfg.Files.Files, cfg.ActiveOnly = t.TempDir(), true
	_, err := RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), cfg.Files.Files, cfg.ScanURL[0]), testLogger(t))
	require.NoError(t, err)
	damaged, mend := damagedUpdates(t, cfg.Files.Files)
	_, err = RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
	require.ErrorContains(t, err, "the digest of file "+damaged)
	require.Positive(t, count(t, cfg.DatabaseURL, "network_indexer.created"))
	begun := texts(t, cfg.DatabaseURL, "SELECT snapshot_offset::text FROM network_indexer.snapshots")
	mend()
	l.Grow(300)
	finished, err := RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
	require.NoError(t, err)
	require.Equal(t, begun, []string{fmt.Sprint(int64(finished.At))})
	snapshots, err := filepath.Glob(filepath.Join(cfg.Files.Files, "*", "ACS_0.zstd"))
	require.NoError(t, err)
	require.Len(t, snapshots, 1)

	other := networkBackfillFor(networkDatabase(t), serveScan(t, scan), -1)
	other.Files, other.ActiveOnly = cfg.Files, true
	newer, err := RunNetworkBackfill(t.Context(), other, testLogger(t), nil)
	require.NoError(t, err)
	require.Greater(t, newer.At, finished.At, "there is a newer one")
}

// The files of a quiet network, whose service writes no folder where there is no update, are read as those of any
// other.
func TestBulkFilesOfAQuietNetwork(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(99, 200, sandbox.ScanOptions{BulkEvery: 2 * time.Second, SnapshotEvery: 2 * time.Second})
	url, database, folder := serveScan(t, scan), networkDatabase(t), t.TempDir()
	_, err := RunNetworkFiles(t.Context(), filesFor(database, folder, url), testLogger(t))
	require.NoError(t, err)
	list, err := os.ReadFile(filepath.Join(folder, "objects.json"))
	require.NoError(t, err)
	require.Contains(t, string(list), `"without_updates":["20`)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))

	other := networkDatabase(t)
	cfg := networkBackfillFor(other, url, networkOffsetAt(t, scan, 0.7))
	cfg.Files.Files, cfg.ActiveOnly = folder, true
	seeded, err := RunNetworkBackfill(t.Context(), cfg, testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), networkFor(other, url), testLogger(t)))
	migration, taken := seeded.At.NetworkPosition()
	require.Empty(t, sandbox.Diff(scan.NetworkTruthFromSnapshot(migration, taken), networkRelations(t, other)))
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

// A bulk file that is damaged, ends early, or is of another network stops the reading with an error that names it.
// Nothing of it is stored, and when it is mended nothing is lost.
func TestBulkFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads files again and again")
	_, scan := scanOf(96, 250, inBulk)
	_, other := scanOf(97, 150, inBulk)
	database, folder := networkDatabase(t), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "other"), 0o755))
	all, err := RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), folder, serveScan(t, scan)), testLogger(t))
	require.NoError(t, err)
	_, err = RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), folder, serveScan(t, other)), testLogger(t))
	require.ErrorContains(t, err, "has the bulk files of the network that")
	names, err := filepath.Glob(filepath.Join(folder, "*", "updates_0.zstd"))
	require.NoError(t, err)
	require.Greater(t, len(names), 3)
	name := names[2]
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	stored := -1
	for what, damaged := range map[string][]byte{"ends early": whole[:len(whole)-10], "has another byte": append([]byte{whole[0] ^ 1}, whole[1:]...), "is empty": {}} {
		require.NoError(t, os.WriteFile(name, damaged, 0o600))
		_, err = RunNetworkFiles(t.Context(), filesFor(database, folder), testLogger(t))
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem, what)
		require.Contains(t, problem.What, "the digest of file "+name)
		now := count(t, database, "network.updates")
		require.True(t, stored < 0 || stored == now, "nothing more is stored")
		stored = now
	}
	require.Positive(t, stored)
	require.Less(t, stored, int(all.Updates))
	require.NoError(t, os.WriteFile(name, whole, 0o600))
	loaded, err := RunNetworkFiles(t.Context(), filesFor(database, folder), testLogger(t))
	require.NoError(t, err)
	require.Equal(t, all.Updates, int64(stored)+loaded.Updates)

	elsewhere := t.TempDir()
	_, err = RunNetworkFiles(t.Context(), filesFor(networkDatabase(t), elsewhere, serveScan(t, other)), testLogger(t))
	require.NoError(t, err)
	_, err = RunNetworkFiles(t.Context(), filesFor(database, elsewhere), testLogger(t))
	require.ErrorContains(t, err, "holds the updates of another network than that of the bulk files")
	require.Equal(t, int(all.Updates), count(t, database, "network.updates"))
}

// A download that fails is tried again, and one that brings other bytes than the digest says is not kept.
func TestADownloadOfBulkFilesThatFails(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits after failures")
	var downloads atomic.Int64
	options := inBulk
	options.RewriteObject = func(_ string, object []byte) []byte {
		if downloads.Add(1) <= 2 {
			return object[:len(object)/2]
		}
		return object
	}
	_, scan := scanOf(98, 150, options)
	database := networkDatabase(t)
	loaded, err := RunNetworkFiles(t.Context(), filesFor(database, t.TempDir(), serveScan(t, scan)), testLogger(t))
	require.NoError(t, err)
	require.Positive(t, loaded.Updates)
	require.Equal(t, 1, count(t, database, fmt.Sprint("network.latest_offset() w WHERE w = ", int64(loaded.End))))
}
