package app

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// scansOf are several services of one network.
func scansOf(seed uint64, updates int, options ...sandbox.ScanOptions) (l *sandbox.Ledger, scans []*sandbox.Scan) {
	l = sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(updates)
	for _, o := range options {
		o.MigrateAfter = updates / 2
		scans = append(scans, sandbox.NewScan(l, o))
	}
	return l, scans
}

// transactionIn is the ledger's offset of a transaction of a network at a part of its history, and its update id.
func transactionIn(t *testing.T, l *sandbox.Ledger, scan *sandbox.Scan, part float64) (offset int64, id string) {
	t.Helper()
	updates := scan.NetworkTruth()["updates"]
	at := int(part * float64(len(updates)))
	for updates[at]["kind"] != "transaction" {
		at++
	}
	id = fmt.Sprint(updates[at]["update_id"])
	for _, row := range l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, l.End())["updates"] {
		if row["update_id"] == id {
			return int64Of(t, row["ledger_offset"]), id
		}
	}
	t.Fatal("the ledger does not have update ", id)
	return 0, ""
}

// Of three services with pages of other sizes one lies, one lags behind and all fail now and then: what two send alike
// is what is stored, and followed. Of two that differ nothing is stored from there on, and when the one is mended
// nothing is lost.
func TestANetworkIsReadFromSeveralServices(t *testing.T) {
	t.Parallel()
	l, truth := scansOf(91, 900, sandbox.ScanOptions{})
	forged, id := transactionIn(t, l, truth[0], 0.6)
	var faults atomic.Bool
	faults.Store(true)
	fails := func(seed uint64) func(*http.Request) *sandbox.Fault {
		roughly := roughly(seed, 60)
		return func(r *http.Request) *sandbox.Fault {
			if !faults.Load() {
				return nil
			}
			return roughly(r)
		}
	}
	options := []sandbox.ScanOptions{
		{PageLimit: 40, LieAbout: forged, Fault: fails(1)}, {PageLimit: 37, UpdatesLag: 100, Fault: fails(2)}, {PageLimit: 300, Fault: fails(3)},
	}
	var scans []*sandbox.Scan
	database := networkDatabase(t)
	cfg := networkFor(database, "")
	cfg.ScanURL, cfg.ScanAgree = nil, 2
	for _, o := range options {
		o.MigrateAfter = 450
		scans = append(scans, sandbox.NewScan(l, o))
		cfg.ScanURL = append(cfg.ScanURL, serveScan(t, scans[len(scans)-1]))
	}
	cfg.UntilCurrent = false
	daemon := startIndexer(t, cfg)
	eventuallyIn(t, database, "what two services have is there",
		fmt.Sprintf("(SELECT count(*) FROM network.updates) > %d", len(truth[0].NetworkTruth()["updates"])*8/10))
	scans[1].SetUpdatesLag(0)
	l.Grow(100)
	want := truth[0].NetworkTruth()
	eventuallyOf(t, daemon, "all updates are there", func() bool { return count(t, database, "network.updates") == len(want["updates"]) })
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(want, networkRelations(t, database)))

	// The liar and one other: nothing is stored from the forged update on.
	faults.Store(false)
	database = networkDatabase(t)
	both := networkFor(database, "")
	both.ScanURL, both.ScanAgree = []string{cfg.ScanURL[0], cfg.ScanURL[2]}, 2
	err := RunIndexer(t.Context(), both, testLogger(t))
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "the first on which they differ is update "+ledger.Quoted(id))
	require.Contains(t, problem.What, cfg.ScanURL[0])
	require.Zero(t, count(t, database, fmt.Sprintf("network_indexer.updates WHERE update_id = '%s'", id)))
	both.ScanURL[0] = cfg.ScanURL[1]
	require.NoError(t, RunIndexer(t.Context(), both, testLogger(t)))
	require.Empty(t, sandbox.Diff(want, networkRelations(t, database)))
}

// One that is down from the start is passed over, and one of another network refused.
func TestAlternativeServicesOfANetwork(t *testing.T) {
	t.Parallel()
	_, scans := scansOf(92, 300, sandbox.ScanOptions{Fault: func(*http.Request) *sandbox.Fault { return &sandbox.Fault{Status: http.StatusServiceUnavailable} }}, sandbox.ScanOptions{})
	_, other := scansOf(93, 300, sandbox.ScanOptions{})
	database := networkDatabase(t)
	cfg := networkFor(database, serveScan(t, scans[0]))
	cfg.ScanURL = append(cfg.ScanURL, serveScan(t, scans[1]))
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(scans[1].NetworkTruth(), networkRelations(t, database)))

	database = networkDatabase(t)
	cfg = networkFor(database, serveScan(t, other[0]))
	cfg.ScanURL = append(cfg.ScanURL, serveScan(t, scans[1]))
	require.ErrorContains(t, RunIndexer(t.Context(), cfg, testLogger(t)), "the Scan services are of two networks")
	require.Zero(t, count(t, database, "network_indexer.updates"))
}

// A snapshot is read from several services too, of which two have to agree.
func TestANetworkIsSeededFromSeveralServices(t *testing.T) {
	t.Parallel()
	l, truth := scansOf(94, 400, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second})
	forged, _ := transactionIn(t, l, truth[0], 0.3)
	_, scans := scansOf(94, 400, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second, PageLimit: 30, LieAbout: forged},
		sandbox.ScanOptions{SnapshotEvery: 5 * time.Second, PageLimit: 50}, sandbox.ScanOptions{SnapshotEvery: 5 * time.Second, PageLimit: 70})
	database := networkDatabase(t)
	var urls []string
	for _, s := range scans {
		urls = append(urls, serveScan(t, s))
	}
	seed, run := networkBackfillFor(database, "", -1), networkFor(database, "")
	seed.ScanURL, run.ScanURL = urls, urls
	seed.ScanAgree, run.ScanAgree = 2, 2
	progress, err := RunNetworkBackfill(t.Context(), seed, testLogger(t), nil)
	require.NoError(t, err)
	migration, taken := progress.At.NetworkPosition()
	require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
	require.Empty(t, sandbox.Diff(truth[0].NetworkTruthFromSnapshot(migration, taken), networkRelations(t, database)))
	requireNetworkVerified(t, database, urls[1])
}
