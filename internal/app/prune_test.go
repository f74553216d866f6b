package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// prune prunes the updates before an offset.
func prune(t *testing.T, databaseURL string, before int64) store.PrunePlan {
	t.Helper()
	plan, err := RunPrune(t.Context(), config.Database{DatabaseURL: databaseURL}, store.PruneBefore{Offset: new(ledger.Offset(before))}, true, testLogger(t))
	require.NoError(t, err)
	return plan
}

// offsetAfter is the first offset after another at which no contract is between two synchronizers.
func offsetAfter(l *sandbox.Ledger, after int64) int64 {
	for i := range l.Len() {
		if at := l.Offset(i); at > after && !l.InFlight(at) {
			return at
		}
	}
	panic("there is no such offset")
}

// Seals of what went are kept aside, also of the window that was pruned in part. What stays is sealed again, the
// snapshot that pruning made too, and damage in it is found without the ledger.
func TestSealsOfWhatWasPruned(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs the daemon several times")
	s := indexed(t, 450)
	s.sealUntil(allVerified)
	sealed := texts(t, s.database, "SELECT from_exclusive || ' ' || to_inclusive || ' ' || encode(digest, 'hex') FROM ledger.verifications ORDER BY from_exclusive")
	require.Len(t, sealed, 3)
	prune(t, s.database, s.Offset(300))
	require.Equal(t, sealed[:2], texts(t, s.database, "SELECT from_exclusive || ' ' || to_inclusive || ' ' || encode(digest, 'hex') FROM indexer.pruned_verifications ORDER BY from_exclusive"))
	require.Empty(t, s.damaged())
	s.Grow(20)
	s.index()
	s.sealUntil(allVerified + " AND EXISTS (SELECT FROM ledger.verifications WHERE stream = 'snapshot')")
	require.Equal(t, "pruned", s.windows("snapshot"))
	require.Empty(t, s.damaged())
	require.Empty(t, s.journal.lines(t, differs))
	require.Empty(t, s.journal.lines(t, hidden), "whoever pruned knows")
	s.exec("UPDATE indexer.created SET payload = '{}' WHERE (ledger_offset, node_id) = (SELECT ledger_offset, node_id FROM indexer.created WHERE origin = 'snapshot' ORDER BY 1, 2 LIMIT 1)")
	require.Len(t, s.damaged(), 1)
	require.Contains(t, s.damaged()[0], "verifications, stream snapshot")
}

// A daemon that is to retain so much prunes by itself, while it follows the ledger, and a verification beside it finds
// nothing.
func TestTheDaemonRetainsSoMuch(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs the daemon beside a verification")
	l := sandbox.NewLedger(sandbox.Options{Seed: 97, ActiveShare: 0.4})
	l.Grow(400)
	database, ledgerURL := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{Version: "3.6"})
	cfg := indexerFor(database, ledgerURL, defaultScope())
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	age := func(part string) (age time.Duration) {
		require.NoError(t, open(t, database).QueryRow(t.Context(), `SELECT (extract(epoch FROM max(u.record_time) - (
			SELECT o.record_time FROM ledger.updates o WHERE o.ledger_offset >= ledger.latest_offset() * `+part+` ORDER BY o.ledger_offset LIMIT 1)) * 1e9)::bigint FROM ledger.updates u`).Scan(&age))
		return age
	}
	cfg.Retain, cfg.VerifyRate = config.Age(age("0.2")), 100_000
	var journal journal
	daemon := startLogged(t, cfg, journal.logger())
	waitUntil(t, database, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'pruning' AND succeeded_at IS NOT NULL)")
	require.NoError(t, daemon.finish())
	requireFloors(t, database, 0, 0) // more would have been copied than goes

	cfg.Retain = config.Age(age("0.7"))
	daemon = startLogged(t, cfg, journal.logger())
	verified := make(chan error, 1)
	go func() {
		_, err := RunVerify(context.WithoutCancel(t.Context()), VerifyConfig{
			Database: config.Database{DatabaseURL: database}, Sources: config.Sources{LedgerURL: ledgerURL}, Verify: config.Verify{All: true},
		}, testLogger(t), func(d audit.Difference) { t.Errorf("verify: %v", d) })
		verified <- err
	}()
	for range 10 {
		l.Grow(10)
	}
	journal.wait(t, "pruned what is older than --retain")
	require.NoError(t, <-verified)
	waitUntil(t, database, fmt.Sprintf("(SELECT max(ledger_offset) FROM ledger.updates) = %d", lastUpdate(l)))
	require.NoError(t, daemon.finish())
	floor := int64(count(t, database, "generate_series(1, ledger.oldest_offset())"))
	require.Greater(t, floor, l.Offset(200))
	require.Equal(t, trueActiveAt(l, sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.6"}, floor), activeAt(t, database, floor))
	require.Equal(t, trueActiveAt(l, sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.6"}, l.End()), activeAt(t, database, l.End()))
	requireVerified(t, database, ledgerURL)
}

// A daemon that asks an export keeps what that does not hold.
func TestTheDaemonRetainsWhatIsNotExported(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 98, ActiveShare: 0.4})
	l.Grow(400)
	database, ledgerURL := throwaway.Migrated(t, migrate), serve(t, l, sandbox.ServerOptions{})
	cfg := indexerFor(database, ledgerURL, defaultScope())
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	cfg.Retain = config.Age(time.Nanosecond) // all but the last
	files := Export{Database: config.Database{DatabaseURL: database}, To: filepath.Join(t.TempDir(), "ledger"), Options: export.Options{Updates: 40}}
	until := func(done string) *journal {
		t.Helper()
		journal := new(journal)
		daemon := startLogged(t, cfg, journal.logger())
		journal.wait(t, done)
		require.NoError(t, daemon.finish())
		return journal
	}
	cfg.RetainExportedNetwork = files.To
	cfg.VerifyRate = 100_000
	daemon := startLogged(t, cfg, testLogger(t))
	waitUntil(t, database, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'verification' AND succeeded_at IS NOT NULL)")
	require.NoError(t, daemon.finish())
	requireFloors(t, database, 0, 0) // only the network's updates have an export that may be asked

	cfg.RetainExported = files.To
	failed := until("a background task failed; the stream continues without it")
	require.Contains(t, failed.all(), files.To)
	requireFloors(t, database, 0, 0)

	files.Options.Through = ledger.Offset(l.Offset(80))
	_, err := exported(t, files)
	require.NoError(t, err)
	until("what is older than --retain stays: too little of it lies in whole ranges of the export")
	requireFloors(t, database, 0, 0)

	files.Options.Through = ledger.Offset(l.Offset(300))
	wrote, err := exported(t, files)
	require.NoError(t, err)
	end := int64(wrote[len(wrote)-1].To)
	daemon = startLogged(t, cfg, testLogger(t))
	// The export has stopped: there are more updates than one of its ranges has.
	waitUntil(t, database, fmt.Sprintf(`EXISTS (SELECT FROM indexer.tasks WHERE task = 'pruning' AND failure LIKE
		'%%, because the export has stopped, or does not keep up: no manifest in %s has what is after offset %d; what to do: see that %%')`, files.To, end))
	require.NoError(t, daemon.finish())
	requireFloors(t, database, end, end)
	requireVerified(t, database, ledgerURL)

	// It has not if the rest is no full range.
	files.Options.Through = ledger.Offset(l.Offset(370))
	_, err = exported(t, files)
	require.NoError(t, err)
	daemon = startLogged(t, cfg, testLogger(t))
	waitUntil(t, database, "EXISTS (SELECT FROM indexer.tasks WHERE task = 'pruning' AND succeeded_at > failed_at)")
	require.NoError(t, daemon.finish())
}

// A daemon prunes the updates of a network in their own pair of schemas, and asks their own export.
func TestTheDaemonPrunesANetwork(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	run, _, _ := indexedNetwork(t)
	cfg := config.Database{DatabaseURL: run.DatabaseURL, Schemas: config.Schemas{TablesSchema: config.NetworkSchemas.Tables, ViewsSchema: config.NetworkSchemas.Views}}
	files := t.TempDir()
	wrote, err := exported(t, Export{Database: cfg, To: files})
	require.NoError(t, err)
	run.Retain, run.RetainExportedNetwork = config.Age(time.Nanosecond), files
	journal := new(journal)
	daemon := startLogged(t, run, journal.logger())
	journal.wait(t, "pruned what is older than --retain")
	require.NoError(t, daemon.finish())
	floor := fmt.Sprint(int64(wrote[len(wrote)-2].To))
	require.Equal(t, []string{floor}, texts(t, run.DatabaseURL, "SELECT network.oldest_offset()::text"), "whole ranges")
}

// Where the disk becomes full under a daemon, pruning and redacting leave everything as it was, and the daemon waits;
// when there is room again all of them get through.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	brief.Long(t, "fills a disk")
	throwaway.NeedPrograms(t)
	disk, err := throwaway.NewSmallDisk(200 << 20)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(disk.Close)
	var server *throwaway.Server
	require.NoError(t, disk.Run(func() (err error) {
		server, err = throwaway.Start(t.Context(), throwaway.Options{
			Kind: throwaway.Local, TCP: true, Settings: map[string]string{"shared_buffers": "16MB", "max_wal_size": "48MB", "min_wal_size": "32MB"},
		})
		return err
	}))
	t.Cleanup(func() { require.NoError(t, disk.Run(server.Stop)) })
	w := begunWorldIn(t, server.URL(""), 100, sandbox.ServerOptions{Version: "3.6"}, "acs-delta")
	require.NoError(t, migrate(t.Context(), w.database))
	w.ledger.Grow(900)
	w.index(t, true)
	at := offsetAfter(w.ledger, w.at+400)
	what := audit.Redaction{ContractID: texts(t, w.database, `SELECT max(c.contract_id) FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
		WHERE c.ledger_offset > $1`, at)[0]}
	pair := config.Database{DatabaseURL: w.database}
	var journal journal
	daemon := startLogged(t, indexerFor(w.database, w.ledgerURL, w.scope), journal.logger())
	journal.wait(t, "leading")
	require.NoError(t, disk.Fill())
	w.ledger.Grow(500)
	_, err = RunPrune(t.Context(), pair, store.PruneBefore{Offset: new(ledger.Offset(at + 1))}, true, testLogger(t))
	require.Error(t, err)
	_, err = RunRedact(t.Context(), pair, what, "a test", true, testLogger(t))
	require.Error(t, err)
	journal.wait(t, "retrying")
	require.NoError(t, disk.Free())
	require.NoError(t, disk.Run(func() error { return server.Restart(t.Context()) }))
	waitFor(t, w.database, lastUpdate(w.ledger))
	requireFloors(t, w.database, 0, 0)
	require.Empty(t, sandbox.Diff(w.ledger.Truth(w.truth, w.ledger.End()), relations(t, w.database)))
	prune(t, w.database, at+1)
	_, err = RunRedact(t.Context(), pair, what, "a test", true, testLogger(t))
	require.NoError(t, err)
	require.NoError(t, daemon.finish())
	requireFloors(t, w.database, at, at)
	truth := sandbox.Redact(w.ledger.TruthFromSnapshot(w.truth, at, w.ledger.End()), map[string]bool{what.ContractID: true}, nil)
	require.Empty(t, sandbox.Diff(truth, relations(t, w.database)))
}

// Whoever asks about what stays is answered as before: roles that are limited to parties, typed views, queries for the
// Participant Query Store, holdings and the past. Below the floor the error is that of a database that began there.
func TestReadersAreAnsweredAsBeforePruning(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads all packages of a ledger")
	database, l, _ := typedWorld.indexed(t)
	_, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	db, err := store.Open(store.Config{URL: database})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.EnablePQS(t.Context(), "pqs"))
	party := texts(t, database, "SELECT p FROM ledger.active_contracts, unnest(signatories) p GROUP BY p ORDER BY count(*) DESC, p LIMIT 1")
	_, limited := limitedRole(t, database, "_limited", store.Reader{Parties: party})
	at := offsetAfter(l, l.Offset(280))
	past := l.Offset(300)
	// Of what was an event before, and a contract that moved, a snapshot does not say that either.
	const gone = " - '{update_id,record_time,workflow_id,origin,created_offset}'::text[]"
	questions := []string{
		"SELECT (to_jsonb(x)" + gone + ")::text FROM ledger.active_contracts x WHERE $1::bigint > 0",
		"SELECT (to_jsonb(x) - 'ended_at')::text FROM ledger.active_at($1::bigint) x",
		"SELECT to_jsonb(x)::text FROM (" + strings.ReplaceAll(recipeOf(t, "Which active contracts are the oldest?"), "FROM ", "FROM ledger.") + ") x WHERE $1::bigint > 0",
		"SELECT to_jsonb(x)::text FROM ledger.holdings x WHERE $1::bigint > 0",
		"SELECT to_jsonb(x)::text FROM ledger.holdings_at($1::bigint) x",
		"SELECT to_jsonb(x)::text FROM ledger.holding_totals_at($1::bigint) x",
		"SELECT to_jsonb(x)::text FROM ledger.holding_totals x WHERE $1::bigint > 0",
		"SELECT (to_jsonb(x) - 'parent_node_id')::text FROM ledger.events x WHERE x.ledger_offset > $1::bigint",
		"SELECT concat(h.contract_id, h.argument) FROM ledger.active_contracts a, ledger.contract_history(a.contract_id) h WHERE h.ledger_offset = a.activated_offset AND h.node_id = a.activated_node_id AND $1::bigint > 0",
	}
	owners := append(slices.Clone(questions),
		"SELECT (to_jsonb(x)"+gone+")::text FROM typed.bank_account x WHERE x.active AND $1::bigint > 0",
		"SELECT (to_jsonb(x)"+gone+")::text FROM typed.trade_agreement x WHERE x.active AND $1::bigint > 0",
		"SELECT concat(x.contract_id, x.payload) FROM pqs.active() x WHERE $1::bigint > 0",
		"SELECT concat(x.contract_id, x.payload) FROM pqs.creates(from_offset => $1::bigint) x")
	answers := func() (all [][]string) {
		for _, asked := range []struct {
			as        string
			questions []string
		}{{database, owners}, {limited, questions}} {
			for _, question := range asked.questions {
				rows := jsonRows(t, open(t, asked.as), question, past)
				require.NotEmpty(t, rows, question)
				all = append(all, append([]string{question}, rows...))
			}
		}
		return all
	}
	before := answers()
	prune(t, database, at+1)
	require.Equal(t, before, answers())
	for _, question := range []string{"SELECT FROM ledger.active_at($1)", "SELECT FROM ledger.holdings_at($1)", "SELECT ledger.time_at($1)", "SELECT FROM pqs.active(\"offset\" => $1)"} {
		_, err := open(t, database).Exec(t.Context(), question, at-1)
		require.ErrorContains(t, err, fmt.Sprint(at), question)
	}
}
