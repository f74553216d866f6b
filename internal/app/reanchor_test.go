package app

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

func reanchorFor(database, ledgerURL string, apply bool) Reanchor {
	return Reanchor{Database: config.Database{DatabaseURL: database}, Ledger: config.Ledger{LedgerURL: ledgerURL}, Apply: apply}
}

// inTransit is the number of an update, from another one on, before which a contract is between two synchronizers.
func inTransit(t *testing.T, l *sandbox.Ledger, from int) int {
	t.Helper()
	for i := from; i < l.Len(); i++ {
		if l.InFlight(l.Offset(i - 1)) {
			return i
		}
	}
	t.Fatal("no contract is between two synchronizers")
	return 0
}

// dealtAnew is the ledger of a participant that was restored from a backup before an update: it has received the later
// ones again, at other offsets, has lost some, the last ones of all, and has gone on with others.
func dealtAnew(backup, received, since int) *sandbox.Ledger {
	l := backedUp(received)
	l.Redeal(backup, 7)
	l.Diverge(62)
	l.Grow(since)
	return l
}

// However a participant was restored, the database is what it would be had it been indexed from the restored one,
// whole.
func TestAReanchoredDatabaseIsThatOfTheRestoredParticipant(t *testing.T) {
	t.Parallel()
	brief.Long(t, "reads several histories one after the other")
	const size = 400
	first := backedUp(size)
	pages, lists := sandbox.ServerOptions{Version: "3.6"}, sandbox.ServerOptions{Version: "3.4", ListLimit: 5000}
	strict := sandbox.ServerOptions{StrictInterface: true, ListLimit: 60}
	cut := inTransit(t, first, 150)
	for name, c := range map[string]struct {
		options  sandbox.ServerOptions
		restored *sandbox.Ledger
	}{
		"as many, at other offsets":     {strict, dealtAnew(cut, size, 0)},
		"more":                          {lists, dealtAnew(cut, size, 90)},
		"some lost, and more":           {pages, dealtAnew(cut, size-60, 200)},
		"some lost, and fewer":          {pages, dealtAnew(cut, size-60, 10)},
		"some lost, and the end untold": {strict, dealtAnew(cut, size-60, 10)},
		"from the beginning":            {lists, dealtAnew(0, size, 30)},
		"another history":               {pages, restored(cut, 300)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			options, restored, scope := c.options, c.restored, defaultScope()
			scope.Shape = "ledger-effects"
			firstURL, restoredURL := serve(t, first, options), serve(t, restored, options)
			database := throwaway.Migrated(t, migrate)
			require.NoError(t, RunIndexer(t.Context(), indexerFor(database, firstURL, scope), testLogger(t)))
			before := relations(t, database)
			err := RunIndexer(t.Context(), indexerFor(database, restoredURL, scope), testLogger(t))
			var problem *ledger.Problem
			require.ErrorAs(t, err, &problem, "it stops")

			plan, err := RunReanchor(t.Context(), reanchorFor(database, restoredURL, false), testLogger(t))
			require.NoError(t, err)
			common, agreed := ledger.Offset(0), 0
			for i := range first.Len() {
				if i < restored.Len() && first.Offset(i) == restored.Offset(i) && first.UpdateID(i) == restored.UpdateID(i) && agreed == i {
					common, agreed = ledger.Offset(first.Offset(i)), i+1
				}
			}
			require.True(t, plan.Parted)
			require.Equal(t, common, plan.To)
			require.EqualValues(t, agreed, plan.Equal)
			require.EqualValues(t, first.Len()-agreed, plan.Moved+plan.Kept+plan.Lost)
			is := restored.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects, Version: options.Version}, restored.End())
			require.EqualValues(t, len(is["updates"]), plan.Equal+plan.Moved+plan.Kept+plan.New)
			require.Nil(t, plan.Reset)
			require.Empty(t, sandbox.Diff(before, relations(t, database)), "nothing was changed")

			done, err := RunReanchor(t.Context(), reanchorFor(database, restoredURL, true), testLogger(t))
			require.NoError(t, err)
			require.Equal(t, plan.Divergence, done.Divergence)
			require.GreaterOrEqual(t, done.Reset.From, ledger.Offset(lastUpdate(first)))
			require.Equal(t, []string{fmt.Sprintf("reset %d", common)}, texts(t, database, "SELECT reason || ' ' || from_exclusive FROM ledger.rewrites"))
			again, err := RunReanchor(t.Context(), reanchorFor(database, restoredURL, true), testLogger(t))
			require.NoError(t, err)
			require.False(t, again.Parted)

			require.NoError(t, RunIndexer(t.Context(), indexerFor(database, restoredURL, scope), testLogger(t)))
			require.Empty(t, sandbox.Diff(is, relations(t, database)))
			fresh := throwaway.Migrated(t, migrate)
			require.NoError(t, RunIndexer(t.Context(), indexerFor(fresh, restoredURL, scope), testLogger(t)))
			for _, relation := range []string{"contract_lifetimes", "holdings", "holding_lifetimes", "token_events", "contracts", "events"} {
				row := "to_jsonb(r) - 'template_number'" // which each database has of its own
				require.Equal(t, rowsAs(t, fresh, row, []string{relation}), rowsAs(t, database, row, []string{relation}), relation)
			}
			requireVerified(t, database, restoredURL)
		})
	}
}

// A database that began at a snapshot, whose participant is pruned below where they part: with --since no more is read
// than has to be.
func TestReanchoringASnapshotWithAPrunedParticipant(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads several histories one after the other")
	first, restored := backedUp(400), dealtAnew(300, 390, 40)
	at := quietOffset(t, first)
	database := throwaway.Migrated(t, migrate)
	firstURL, restoredURL := serve(t, first, sandbox.ServerOptions{}), serve(t, restored, sandbox.ServerOptions{})
	_, err := RunBackfill(t.Context(), backfillFor(database, firstURL, defaultScope(), at), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, firstURL, defaultScope()), testLogger(t)))

	plan, err := RunReanchor(t.Context(), reanchorFor(database, restoredURL, false), testLogger(t))
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(at), plan.From)
	require.NoError(t, restored.Prune(restored.Offset(270)))
	cfg := reanchorFor(database, restoredURL, false)
	cfg.From = &store.PruneBefore{Offset: new(ledger.Offset(first.Offset(280)))}
	late, err := RunReanchor(t.Context(), cfg, testLogger(t))
	require.NoError(t, err)
	require.Equal(t, plan.To, late.To)
	require.Positive(t, late.Equal)
	require.LessOrEqual(t, late.Equal, int64(21))
	require.Equal(t, plan.Lost, late.Lost)
	cfg.From = &store.PruneBefore{Offset: new(ledger.Offset(first.Offset(310)))}
	_, err = RunReanchor(t.Context(), cfg, testLogger(t))
	requireProblem(t, err, "they part there or further down", "an earlier --since")

	done, err := RunReanchor(t.Context(), reanchorFor(database, restoredURL, true), testLogger(t))
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(restored.Offset(270)), done.From)
	require.Equal(t, ledger.Offset(first.Offset(299)), done.To)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, restoredURL, defaultScope()), testLogger(t)))
	require.Empty(t, sandbox.Diff(restored.TruthFromSnapshot(sandbox.Scope{Shape: sandbox.ACSDelta}, at, restored.End()), relations(t, database)))
	requireVerified(t, database, restoredURL)
}

// Where two updates were received in another order and the last one is where it was, the indexer notices nothing.
func TestReanchoringFindsWhatTheIndexerDoesNot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := backedUp(200)
	ledgerURL := serve(t, l, sandbox.ServerOptions{})
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), testLogger(t)))
	require.Len(t, texts(t, database, `WITH two AS (SELECT * FROM indexer.updates ORDER BY ledger_offset OFFSET 100 LIMIT 2)
		UPDATE indexer.updates u SET update_id = v.update_id, record_time = v.record_time, synchronizer_ref = v.synchronizer_ref
		FROM two v WHERE u.ledger_offset IN (SELECT ledger_offset FROM two) AND u.ledger_offset <> v.ledger_offset RETURNING u.update_id`), 2)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), testLogger(t)))
	done, err := RunReanchor(t.Context(), reanchorFor(database, ledgerURL, true), testLogger(t))
	require.NoError(t, err)
	require.True(t, done.Parted)
	require.EqualValues(t, 100, done.Equal)
	require.EqualValues(t, 2, done.Moved)
	require.Zero(t, done.New+done.Lost)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), testLogger(t)))
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)))
	requireVerified(t, database, ledgerURL)
}

// What the participant can't show again is not removed.
func TestReanchoringIsRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	first := backedUp(200)
	strict := sandbox.ServerOptions{StrictInterface: true} // it does not say who it is
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, first, strict), defaultScope()), testLogger(t)))
	before := relations(t, database)

	other := sandbox.NewLedger(sandbox.Options{Seed: 63})
	other.Grow(300)
	_, err := RunReanchor(t.Context(), reanchorFor(database, serve(t, other, strict), true), testLogger(t))
	requireProblem(t, err, "none of the updates that are stored", "another ledger")
	_, err = RunReanchor(t.Context(), reanchorFor(database, serve(t, sandbox.NewLedger(sandbox.Options{Seed: 61}), strict), true), testLogger(t))
	requireProblem(t, err, "none of the updates that are stored")

	pruned := dealtAnew(100, 200, 50)
	require.NoError(t, pruned.Prune(pruned.Offset(140)))
	_, err = RunReanchor(t.Context(), reanchorFor(database, serve(t, pruned, sandbox.ServerOptions{}), true), testLogger(t))
	requireProblem(t, err, fmt.Sprintf("after offset %d there", pruned.Offset(140)), "the participant is pruned there")

	network := reanchorFor(database, serve(t, first, strict), false)
	network.Network = true
	_, err = RunReanchor(t.Context(), network, testLogger(t))
	requireProblem(t, err, "migration id", "indexer reset --network")

	db, err := store.Open(store.Config{URL: database, Holder: "another one"})
	require.NoError(t, err)
	defer db.Close()
	leader, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	if !testing.Short() { // it waits for the lead
		_, err = RunReanchor(t.Context(), reanchorFor(database, serve(t, dealtAnew(100, 200, 50), strict), true), testLogger(t))
		requireProblem(t, err, "another process writes this database: another one", "stop it before reanchoring")
	}
	leader.Close()
	require.Empty(t, sandbox.Diff(before, relations(t, database)))

	empty := throwaway.Migrated(t, migrate)
	_, err = RunReanchor(t.Context(), reanchorFor(empty, serve(t, first, strict), false), testLogger(t))
	requireProblem(t, err, "nothing has been indexed")
}

// Killed at any point and started again it comes to its end, and the indexer goes on.
func TestReanchoringIsKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	first, restored := backedUp(600), dealtAnew(200, 570, 100)
	database := throwaway.Migrated(t, migrate)
	options := sandbox.ServerOptions{Version: "3.4", ListLimit: 20}
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, first, options), defaultScope()), testLogger(t)))
	restoredURL := serve(t, restored, options)
	env := []string{"INDEXER_DATABASE_URL=" + database, "INDEXER_LEDGER_URL=" + restoredURL, "INDEXER_LISTEN=", deltas}
	random := rand.New(rand.NewPCG(3, 4))
	kills := killUntilDone(t, random, env, build(t, "indexer"), "reanchor", "--apply")
	kills += killUntilDone(t, random, env, build(t, "indexer"), "run", "--until-current")
	require.Positive(t, kills)
	require.Empty(t, sandbox.Diff(restored.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, restored.End()), relations(t, database)))
}

// reanchor stops the daemon at a restored participant, and has the database fit it.
func (w *begunWorld) reanchor(t *testing.T, restored *sandbox.Ledger, options sandbox.ServerOptions) Reanchored {
	t.Helper()
	w.ledger, w.ledgerURL = restored, serve(t, restored, options)
	err := RunIndexer(t.Context(), indexerFor(w.database, w.ledgerURL, w.scope), testLogger(t))
	requireProblem(t, err, "`indexer reanchor`")
	done, err := RunReanchor(t.Context(), reanchorFor(w.database, w.ledgerURL, true), testLogger(t))
	require.NoError(t, err)
	require.True(t, done.Parted)
	return done
}

// A database whose scope was changed is made to fit a restored
// participant, wherever they part.
func TestReanchoringAfterAChangeOfTheScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads several histories one after the other")
	parties := backedUp(1).Parties()
	options := sandbox.ServerOptions{Version: "3.5", ListLimit: 15}
	begin := func(t *testing.T, before, now []string) (w *begunWorld, earlier inForce) {
		t.Helper()
		w = &begunWorld{ledger: backedUp(160), scope: defaultScope(), database: throwaway.Migrated(t, migrate)}
		w.ledgerURL = serve(t, w.ledger, options)
		w.scope.Topology, w.scope.Parties = false, before
		w.index(t, true)
		earlier, w.scope.Parties = inForce{simulatedScope(w.scope), w.ledger.End()}, now
		w.truth = simulatedScope(w.scope)
		w.ledger.Grow(60)
		require.NoError(t, w.change(t))
		return w, earlier
	}
	for name, cut := range map[string]int{"below the change": 120, "above the change": 190} {
		t.Run("taken away, they part "+name, func(t *testing.T) {
			t.Parallel()
			w, earlier := begin(t, parties[1:4], parties[1:2])
			done := w.reanchor(t, dealtAnew(cut, 220, 40), options)
			if int64(done.To) < earlier.upTo { // the scope of then is in force again
				requireProblem(t, RunIndexer(t.Context(), indexerFor(w.database, w.ledgerURL, w.scope), testLogger(t)), "--change-scope")
				w.scope.Parties = parties[1:4]
				w.index(t, true)
				w.scope.Parties, earlier.upTo = parties[1:2], w.ledger.End()
				require.NoError(t, w.change(t))
				w.ledger.Grow(20)
			}
			w.index(t, true)
			w.requireScopes(t, earlier)
			requireVerified(t, w.database, w.ledgerURL)
		})
	}
}

// Windows that were sealed above where participant and database part are sealed anew.
func TestReanchoringBelowSeals(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs the daemon several times")
	s := indexed(t, 61, 200, sandbox.ServerOptions{})
	s.sealUntil(allSealed)
	s.Ledger = dealtAnew(100, 190, 60)
	s.cfg.LedgerURL = serve(t, s.Ledger, sandbox.ServerOptions{})
	done, err := RunReanchor(t.Context(), reanchorFor(s.database, s.cfg.LedgerURL, true), testLogger(t))
	require.NoError(t, err)
	require.True(t, done.Parted)
	require.Equal(t, []string{"true"}, texts(t, s.database, "SELECT (ledger.verified_offset() <= $1)::text", int64(done.To)))
	s.index()
	s.sealUntil(allSealed)
	require.Positive(t, requireVerified(t, s.database, s.cfg.LedgerURL).Updates.Updates)
}

// What was redacted stays so in a restored participant's history: of a contract that is active again, and of updates
// that are lost.
func TestReanchoringWhatWasRedacted(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads several histories one after the other")
	w := &begunWorld{ledger: backedUp(240), scope: everything("ledger-effects"), database: throwaway.Migrated(t, migrate)}
	options := sandbox.ServerOptions{Version: "3.5"}
	w.ledgerURL = serve(t, w.ledger, options)
	w.index(t, true)
	other, at := restored(150, 60), w.ledger.Offset(149)
	truth := sandbox.Scope{Shape: sandbox.LedgerEffects, Version: options.Version, Interfaces: w.scope.Interfaces, Blobs: true}
	var active []string
	for _, row := range other.Truth(truth, other.End())["active_contracts"] {
		active = append(active, row["contract_id"].(string))
	}
	const ended = `SELECT c.contract_id FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
		WHERE c.payload IS NOT NULL AND NOT EXISTS (SELECT FROM ledger.active_contracts x WHERE x.contract_id = c.contract_id) AND `
	again := texts(t, w.database, ended+"c.contract_id = ANY ($1) GROUP BY 1 ORDER BY bool_or(c.entity_name LIKE '%Amulet') DESC, 1 LIMIT 5", active)
	lost := texts(t, w.database, ended+"c.ledger_offset > $1 GROUP BY 1 ORDER BY 1 LIMIT 1", at)
	exercised := texts(t, w.database, `SELECT e.update_id FROM ledger.exercised_events e WHERE e.ledger_offset > $1 AND NOT EXISTS (SELECT FROM ledger.created_events c
		WHERE c.ledger_offset = e.ledger_offset) ORDER BY e.ledger_offset LIMIT 1`, at)
	require.NotEmpty(t, again)
	contracts, updates := map[string]bool{}, map[string]bool{exercised[0]: true}
	for _, id := range append(again, lost[0]) {
		contracts[id] = true
		_, err := RunRedact(t.Context(), config.Database{DatabaseURL: w.database}, audit.Redaction{ContractID: id}, "a test", true, testLogger(t))
		require.NoError(t, err)
	}
	_, err := RunRedact(t.Context(), config.Database{DatabaseURL: w.database}, audit.Redaction{UpdateID: exercised[0]}, "a test", true, testLogger(t))
	require.NoError(t, err)

	done := w.reanchor(t, other, options)
	require.Equal(t, ledger.Offset(at), done.To)
	w.index(t, true)
	redacted := func(of map[string][]sandbox.Row) map[string][]sandbox.Row {
		return sandbox.Redact(of, contracts, updates)
	}
	require.Empty(t, sandbox.Diff(redacted(w.ledger.Truth(truth, w.ledger.End())), relations(t, w.database)))
	require.Empty(t, sandbox.Diff(redacted(w.ledger.Holdings(truth, w.ledger.End())), rowsOf(t, w.database, []string{"holdings", "holding_totals"})))
	require.ElementsMatch(t, again, texts(t, w.database, "SELECT contract_id FROM ledger.active_contracts WHERE contract_id = ANY ($1) AND payload IS NULL", again))
	v := Verify{Database: config.Database{DatabaseURL: w.database}, Sources: config.Sources{LedgerURL: w.ledgerURL}, Verify: config.Verify{All: true}}
	result, err := RunVerify(t.Context(), v, testLogger(t), func(d findings.Difference) { t.Error(d) })
	require.NoError(t, err)
	require.EqualValues(t, len(contracts), result.RedactedContracts)
}
