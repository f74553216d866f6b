package app

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// backedUp is a ledger of some updates, which grows as another one of the same seed would.
func backedUp(updates int) *sandbox.Ledger {
	l := sandbox.NewLedger(sandbox.Options{Seed: 61})
	l.Grow(updates)
	return l
}

// restored is the ledger of a participant that was restored from a backup, and has gone on with another history.
func restored(backup, since int) *sandbox.Ledger {
	l := backedUp(backup)
	l.Diverge(62)
	l.Grow(since)
	return l
}

// A participant that was restored from a backup and has gone on with another history is refused, whatever it can be
// asked: where its ledger ends below the checkpoint, where it has grown past it, and where its server is replaced under
// a daemon. The error tells the last offset that both have, and nothing of the other history is stored. No alarm:
// restored exactly where it was it is the same ledger, and continues; what was stored last can have been pruned since.
func TestARestoredParticipant(t *testing.T) {
	t.Parallel()
	brief.Long(t, "reads several histories one after the other")
	random := rand.New(rand.NewPCG(7, 7))
	for name, options := range map[string]sandbox.ServerOptions{
		"pages": {Version: "3.6"}, "lists": {Version: "3.4", ListLimit: 50}, "strict": {StrictInterface: true},
	} {
		cut := 1 + random.IntN(198)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			first, database := backedUp(200), throwaway.Migrated(t, migrate)
			index := func(l *sandbox.Ledger, logger *slog.Logger) error {
				return RunIndexer(t.Context(), indexerFor(database, serve(t, l, options), defaultScope()), logger)
			}
			requireStored := func(l *sandbox.Ledger) {
				t.Helper()
				require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: options.Version}, l.End()), relations(t, database)))
			}
			commonAt := func(l *sandbox.Ledger, backup int) string {
				return fmt.Sprintf("the last offset at which they agree is %d", l.Offset(backup-1))
			}
			require.NoError(t, index(first, testLogger(t)))

			other := restored(150, 10)
			err := index(other, testLogger(t))
			if options.StrictInterface { // it does not tell where it ends, and refuses what is beyond
				requireProblem(t, err, "ends below an offset that it had before", "restored from an older backup")
			} else {
				requireProblem(t, err, fmt.Sprintf("the ledger ends below the checkpoint, at offset %d", other.End()), commonAt(other, 150), "`indexer reanchor`")
			}
			for _, cut := range []int{199, cut} {
				other := restored(cut, 600)
				require.Greater(t, other.End(), first.End())
				requireProblem(t, index(other, testLogger(t)), "another history", first.UpdateID(199),
					fmt.Sprintf("at offset %d", lastUpdate(first)), commonAt(other, cut), "`indexer reanchor`")
			}
			server := newSwitchable(t, sandbox.NewServer(first, options))
			daemon := startIndexer(t, indexerFor(database, server.URL, defaultScope()))
			first.Grow(100)
			waitFor(t, database, lastUpdate(first))
			other = restored(220, 400)
			server.turnTo(sandbox.NewServer(other, options))
			requireProblem(t, daemon.ended(t), "another history", commonAt(other, 220), "`indexer reanchor`")
			requireStored(first)

			same := restored(300, 0)
			require.NoError(t, index(same, testLogger(t)))
			same.Grow(200)
			require.NoError(t, index(same, testLogger(t)))
			requireStored(same)
			at := lastUpdate(same)
			same.Grow(100)
			require.NoError(t, same.Prune(at))
			var log journal
			require.NoError(t, index(same, log.logger()))
			require.Len(t, log.lines(t, "whether the ledger still has the history that is stored can't be found out"), 1)
			requireStored(same)
		})
	}
}

// It is refused too where the watermark is an offset checkpoint's and what is new lies below it.
func TestARestoredParticipantBelowAnOffsetCheckpoint(t *testing.T) {
	t.Parallel()
	first, cut := backedUp(200), 0
	for n := 200; cut == 0; n++ { // ends with a gap behind its last update
		if first = backedUp(n); first.End() > lastUpdate(first) {
			cut = n
		}
	}
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, first, sandbox.ServerOptions{}), defaultScope()), testLogger(t)))
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	// As if the gap had been longer.
	for _, sql := range []string{
		"UPDATE indexer.checkpoints SET ledger_offset = ledger_offset + 20 WHERE stream = 'updates'", "UPDATE indexer.coverage SET to_inclusive = to_inclusive + 20",
	} {
		_, err = conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	err = RunIndexer(t.Context(), indexerFor(database, serve(t, restored(cut, 300), sandbox.ServerOptions{}), defaultScope()), testLogger(t))
	requireProblem(t, err, "where there was none", fmt.Sprintf("the last offset at which they agree is %d", lastUpdate(first)), "`indexer reanchor`")
}

// A scope that shows little of the ledger has its own last common update.
func TestARestoredParticipantOfANarrowScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	first, other := backedUp(400), restored(250, 400)
	alone := func(party string) sandbox.Scope {
		return sandbox.Scope{Shape: sandbox.LedgerEffects, Parties: []string{party}, NoTopology: true}
	}
	parties := first.Parties()
	quiet := slices.IndexFunc(parties, func(party string) bool { // that does not see the last common update
		updates := first.Truth(alone(party), other.Offset(249))["updates"]
		return len(updates) > 0 && int64Of(t, updates[len(updates)-1]["ledger_offset"]) < other.Offset(249)
	})
	require.GreaterOrEqual(t, quiet, 0)
	scope := config.Scope{Shape: "ledger-effects", Contracts: config.Contracts{Parties: parties[quiet : quiet+1]}, Reassignments: true}
	database := throwaway.Migrated(t, migrate)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, first, sandbox.ServerOptions{}), scope), testLogger(t)))
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, serve(t, first, sandbox.ServerOptions{}), scope), testLogger(t)), "the same ledger")
	var common int64
	for _, row := range relations(t, database)["updates"] {
		if at := int64Of(t, row["ledger_offset"]); at <= other.Offset(249) {
			common = max(common, at)
		}
	}
	require.Less(t, common, other.Offset(249), "or the scope is not narrow here")
	err := RunIndexer(t.Context(), indexerFor(database, serve(t, other, sandbox.ServerOptions{}), scope), testLogger(t))
	requireProblem(t, err, fmt.Sprintf("the last offset at which they agree is %d", common), "`indexer reanchor`")
}

// No alarm: what was stored last is damaged in the database.
func TestADamagedLastUpdateIsNoOtherHistory(t *testing.T) {
	t.Parallel()
	database, l, ledgerURL := deltasWorld.indexed(t)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "UPDATE indexer.updates SET workflow_id = 'another' WHERE ledger_offset = $1", lastUpdate(l))
	require.NoError(t, err)
	l.Grow(50)
	var log journal
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, ledgerURL, defaultScope()), log.logger()))
	lines := log.lines(t, "the last stored update is not stored as the ledger shows it: run `indexer verify --repair`")
	require.Len(t, lines, 1)
	require.Equal(t, l.UpdateID(199), lines[0]["update_id"])
	require.Len(t, l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End())["updates"], count(t, database, "ledger.updates"))
}
