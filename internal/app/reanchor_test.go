package app

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

func reanchorFor(database, ledgerURL string, apply bool) Reanchor {
	return Reanchor{Database: config.Database{DatabaseURL: database}, Ledger: config.Ledger{LedgerURL: ledgerURL}, Apply: apply}
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
	database, l, ledgerURL := deltasWorld.indexed(t)
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
	database, first, _ := deltasWorld.indexed(t)
	strict := sandbox.ServerOptions{StrictInterface: true} // it does not say who it is
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

	require.Empty(t, sandbox.Diff(before, relations(t, database)))

	empty := throwaway.Migrated(t, migrate)
	_, err = RunReanchor(t.Context(), reanchorFor(empty, serve(t, first, strict), false), testLogger(t))
	requireProblem(t, err, "nothing has been indexed")
}
