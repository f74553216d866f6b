package app

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/scan"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// networkFor is a configuration that reads the updates of a network until current, without a listener.
func networkFor(databaseURL, scanURL string) Indexer {
	cfg := indexerFor(databaseURL, "", config.Scope{})
	cfg.ScanURL, cfg.ScanHistory = []string{scanURL}, "updates"
	return cfg
}

// networkRelations reads every relation of the pair of schemas of the network.
func networkRelations(t *testing.T, databaseURL string) map[string][]sandbox.Row {
	t.Helper()
	return rowsIn(t, databaseURL, "network", "row_to_json(r)", sandbox.Relations())
}

// scanOf returns a ledger and its Scan, which shows about a third of its updates, over two migrations.
func scanOf(seed uint64, updates int, options sandbox.ScanOptions) (*sandbox.Ledger, *sandbox.Scan) {
	return scanOfLedger(sandbox.Options{Seed: seed}, updates, options)
}

func scanOfLedger(of sandbox.Options, updates int, options sandbox.ScanOptions) (*sandbox.Ledger, *sandbox.Scan) {
	l := sandbox.NewLedger(of)
	l.Grow(updates)
	options.MigrateAfter = updates / 2
	return l, sandbox.NewScan(l, options)
}

// Every row of the network's pair is the truth, whatever the service does, and if the program is stopped in the middle.
func TestTheUpdatesOfANetworkAreIndexed(t *testing.T) {
	t.Parallel()
	brief.Long(t, "indexes thousands of updates from a service that fails")
	var requests atomic.Int64
	faults := roughly(71, 15)
	const updates = 3_000
	_, scan := scanOf(72, updates, sandbox.ScanOptions{Release: "0.7.1", Latency: time.Millisecond, Fault: func(r *http.Request) *sandbox.Fault {
		if strings.HasPrefix(r.URL.Path, "/v2/updates") {
			requests.Add(1)
		}
		return faults(r)
	}})
	want := scan.NetworkTruth()
	require.Greater(t, len(want["updates"]), updates/5)
	database := networkDatabase(t)
	cfg := networkFor(database, serveScan(t, scan))

	daemon := startIndexer(t, cfg)
	eventuallyIn(t, database, "some updates are stored", "(SELECT count(*) FROM network_indexer.updates) >= 300")
	require.NoError(t, daemon.finish())

	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(want, networkRelations(t, database)))
	t.Logf("%d updates, %d requests", len(want["updates"]), requests.Load())
	require.Less(t, requests.Load(), int64(400), "%d updates at a thousand per page, a gap between the migrations, and windows that grow", len(want["updates"]))
}

// A ledger and the network it belongs to lie in one database, each in schemas of its own, and follow their sources.
func TestALedgerAndItsNetworkInOneDatabase(t *testing.T) {
	t.Parallel()
	brief.Long(t, "indexes two ledgers")
	l, scan := scanOf(73, 500, sandbox.ScanOptions{})
	database := throwaway.Database(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.ScanURL = []string{serveScan(t, scan)}
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.ScanHistory = config.ScanUpdates
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	scope := sandbox.Scope{Shape: sandbox.ACSDelta}
	require.Empty(t, sandbox.Diff(l.Truth(scope, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
	require.Zero(t, count(t, database, `network.updates WHERE to_timestamp((ledger_offset & 4503599627370495) / 1e6) <> record_time`),
		"the offset tells the record time, as network.md has it")
	require.Positive(t, count(t, database, "network.updates WHERE ledger_offset >> 52 = 2"))
	joined := count(t, database, "ledger.updates JOIN network.updates n USING (update_id)")
	require.Positive(t, joined)
	require.Equal(t, count(t, database, `ledger.updates u JOIN network.updates n USING (update_id) WHERE u.record_time = n.record_time`), joined)

	cfg.UntilCurrent = false
	daemon := startIndexer(t, cfg)
	l.Grow(100)
	want := scan.NetworkTruth()
	eventuallyOf(t, daemon, "all updates are there", func() bool { return count(t, database, "network.updates") == len(want["updates"]) })
	require.NoError(t, daemon.finish())
	require.Empty(t, sandbox.Diff(want, networkRelations(t, database)))
}

// The pair of schemas of a network holds nothing else.
func TestTheSchemasOfANetworkAreItsOwn(t *testing.T) {
	t.Parallel()
	history, participant, named := networkFor("postgres://h/d", "http://localhost"), indexerFor("postgres://h/d", "http://localhost", defaultScope()), config.Schemas{Network: true}
	history.ScanHistory, history.Schemas = config.ScanTransactions, named
	participant.TablesSchema, participant.ViewsSchema = config.NetworkSchemas.Tables, config.NetworkSchemas.Views
	for _, cfg := range []Indexer{history, participant} {
		require.ErrorContains(t, RunIndexer(t.Context(), cfg, testLogger(t)), "schema network_indexer is for the updates of a network")
	}
}

// What can't be read says what to do, and a database belongs to one network.
func TestNetworksThatAreRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOf(74, 200, sandbox.ScanOptions{})
	_, other := scanOf(75, 200, sandbox.ScanOptions{})
	_, strict := scanOf(74, 200, sandbox.ScanOptions{StrictInterface: true})
	_, old := scanOf(74, 200, sandbox.ScanOptions{Fault: func(r *http.Request) *sandbox.Fault {
		if !strings.HasPrefix(r.URL.Path, "/v2/updates") {
			return nil
		}
		return &sandbox.Fault{Status: http.StatusNotFound, ContentType: "application/json",
			Body: `{"error": "The requested resource could not be found."}`}
	}})
	database := networkDatabase(t)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, serveScan(t, scan)), testLogger(t)))
	for name, c := range map[string]struct {
		scan *sandbox.Scan
		want string
		do   string
	}{
		"another network":            {other, "schema network of database", "correct --scan-url or --database-url"},
		"no path of Splice's":        {strict, "the Scan service does not say of which network it is", "--scan-history=transactions"},
		"a Scan before Splice 0.4.2": {old, "the Scan service does not serve the updates of its network", "--scan-history=transactions"},
	} {
		cfg := networkFor(database, serveScan(t, c.scan))
		cfg.UntilCurrent = false
		err := RunIndexer(t.Context(), cfg, testLogger(t))
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem, name)
		require.Contains(t, problem.What, c.want)
		require.Contains(t, problem.Do, c.do)
	}
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
}

// What was stored ahead of the watermark was served once: a node that has not come as far yet lags behind, and has no
// other history.
func TestANodeThatLagsBehindWhatIsStoredAhead(t *testing.T) {
	t.Parallel()
	const all = 900
	var shown, lookups atomic.Int64 // the ledger's updates that the node has; how often it was asked for one that it lacks
	shown.Store(all / 3)
	_, service := scanOf(76, all, sandbox.ScanOptions{
		Rewrite: func(e sandbox.Element) []byte {
			if e.Offset > shown.Load() {
				return nil
			}
			return e.Raw
		},
		Fault: func(r *http.Request) *sandbox.Fault {
			if strings.HasPrefix(r.URL.Path, "/v2/updates/") && lookups.Add(1) == 3 {
				shown.Store(1 << 62) // it catches up
			}
			return nil
		},
	})
	database, url := networkDatabase(t), serveScan(t, service)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))

	// A daemon that was killed has stored the rest, and not projected it.
	shown.Store(1 << 62)
	client, err := scan.New(scan.Config{URL: url})
	require.NoError(t, err)
	defer client.Close()
	source := &Network{scan.NewUpdates(client)}
	identity, err := source.identify(t.Context())
	require.NoError(t, err)
	db, err := store.Open(config.StoreOf(database, config.NetworkSchemas, nil))
	require.NoError(t, err)
	defer db.Close()
	leader, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	watermark, _, err := leader.Watermark(t.Context())
	require.NoError(t, err)
	end, err := source.LedgerEnd(t.Context())
	require.NoError(t, err)
	page, err := source.ReadUpdates(t.Context(), watermark, end)
	require.NoError(t, err)
	require.Equal(t, end, page.To)
	require.NoError(t, leader.WriteAhead(t.Context(), identity.scope, []ledger.Page{page}))
	leader.Close()

	shown.Store(all * 2 / 3)
	lookups.Store(0)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	require.GreaterOrEqual(t, lookups.Load(), int64(3))
	require.Empty(t, sandbox.Diff(service.NetworkTruth(), networkRelations(t, database)))
}

// The daemon compares the updates of a network with the service again and seals them, across migrations, and one
// command verifies them, where they are and as they were sealed.
func TestTheUpdatesOfANetworkAreVerified(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(77, 600, sandbox.ScanOptions{PageLimit: 10})
	database := networkDatabase(t)
	run := networkFor(database, serveScan(t, scan))
	require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
	run.UntilCurrent, run.VerifyRate = false, 100_000
	daemon := startIndexer(t, run)
	eventuallyIn(t, database, "all is sealed", "network.verified_offset() = network.latest_offset() AND network.latest_offset() > 2::bigint << 52")
	require.NoError(t, daemon.finish())

	cfg := VerifyConfig{Database: run.Database, Sources: run.Sources, Verify: config.Verify{Sample: 12, Seed: 9}}
	cfg.Network = true
	verified := func() (VerifyResult, []audit.Difference) {
		var found []audit.Difference
		result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { found = append(found, d) })
		require.NoError(t, err)
		return result, found
	}
	result, found := verified()
	require.Empty(t, found)
	require.Greater(t, result.Updates.Updates, int64(30), "random places are where updates are, and not between the migrations")
	execute(t, database, "UPDATE network_indexer.exercised SET choice = 'other' WHERE ledger_offset > 2::bigint << 52")
	cfg.From = new(int64(2) << 52)
	result, found = verified()
	require.NotEmpty(t, found)
	require.Equal(t, int64(count(t, database, "network.updates WHERE ledger_offset > 2::bigint << 52")), result.Updates.Updates)
	cfg.From, cfg.Offline = nil, true
	result, found = verified()
	require.Positive(t, result.Sealed)
	require.NotEmpty(t, found)
	cfg.Offline, cfg.All, cfg.Repair = false, true, true
	result, _ = verified()
	require.Zero(t, result.Remaining(true))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
	cfg.Offline, cfg.All, cfg.Repair = true, false, false
	_, found = verified()
	require.Empty(t, found, "the repair sealed the windows again")
}

// A Scan service can't be asked for a contract, so no look-up waits for an answer.
func TestNoLookUpOfANetworkWaits(t *testing.T) {
	t.Parallel()
	_, scan := scanOf(78, 300, sandbox.ScanOptions{Rewrite: func(e sandbox.Element) []byte {
		if e.Offset%3 == 0 { // creations are missing
			return nil
		}
		return e.Raw
	}})
	database := networkDatabase(t)
	run := networkFor(database, serveScan(t, scan))
	run.UntilCurrent = false
	daemon := startIndexer(t, run)
	eventuallyIn(t, database, "all look-ups are answered", `
		EXISTS (SELECT FROM network.looked_up_contracts WHERE status = 'not_found')
		AND NOT EXISTS (SELECT FROM network_indexer.lookups WHERE status = 'wanted')`)
	require.NoError(t, daemon.finish())
}

// A node that lags behind what is stored is waited for by a verification too. It is no shorter ledger, and nothing is
// repaired from it.
func TestVerifyWaitsForANodeThatLagsBehind(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for tries")
	const all = 300
	var shown, asked atomic.Int64
	shown.Store(all)
	l, service := scanOf(80, all, sandbox.ScanOptions{
		Rewrite: func(e sandbox.Element) []byte {
			if e.Offset > shown.Load() {
				return nil
			}
			return e.Raw
		},
		Fault: func(*http.Request) *sandbox.Fault {
			asked.Add(1)
			return nil
		},
	})
	shown.Store(l.End())
	database, url := networkDatabase(t), serveScan(t, service)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, url), testLogger(t)))
	m := newMutator(t, database, "network_indexer", 1)
	before := m.state()
	shown.Store(l.Offset(all / 2))
	asked.Store(0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error, 1)
	cfg := VerifyConfig{Database: config.Database{DatabaseURL: database}, Sources: config.Sources{ScanURL: []string{url}}, Verify: config.Verify{All: true, Repair: true}}
	cfg.Network = true
	go func() {
		_, err := RunVerify(ctx, cfg, testLogger(t), func(d audit.Difference) { t.Errorf("compared: %v", d) })
		stopped <- err
	}()
	eventually(t, "it is tried again", func() bool { return asked.Load() >= 5 })
	stop()
	if err := <-stopped; !errors.Is(err, context.Canceled) { // it ended between two tries: then why it was to be tried again
		require.ErrorContains(t, err, "lags behind")
	}
	require.Equal(t, before, m.state())
}
