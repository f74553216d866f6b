package app

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// Of three daemons, those that lead lose again and again the sessions that they lead with, that they write with, or
// all, at last without a word, as where another server takes over: one of them always continues, and nothing is lost or
// there twice.
func TestDaemonsThatLoseTheirSessions(t *testing.T) {
	t.Parallel()
	brief.Long(t, "waits for sessions that the server has to end, and that takes seconds")
	l := sandbox.NewLedger(sandbox.Options{Seed: 81})
	l.Grow(50)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{PageLimit: 20})
	database := throwaway.Migrated(t, migrate)
	wire, err := throwaway.NewWire(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(wire.Close)
	cfg := indexerFor(wire.URL(), serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 20}), defaultScope())
	cfg.ScanURL = []string{serveScan(t, scan)}
	daemons := []*running{startIndexer(t, cfg), startIndexer(t, cfg), startIndexer(t, cfg)}
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	random := rand.New(rand.NewPCG(8, 1))
	sessions := []string{
		"ledgerindexer updates lock", "ledgerindexer transactions lock", "ledgerindexer % lock",
		"ledgerindexer updates epoch %", "ledgerindexer transactions epoch %", "ledgerindexer%",
	}
	for range 3 {
		for range 2 {
			l.Grow(40)
			waitFor(t, database, l.Offset(l.Len()-1-random.IntN(40))) // the rest is under way
			_, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE $1`, sessions[random.IntN(len(sessions))])
			require.NoError(t, err)
		}
		waitFor(t, database, lastUpdate(l))
		waitForHistory(t, database, scan)
	}
	require.Greater(t, wire.Lose(), 3)
	l.Grow(40)
	waitFor(t, database, lastUpdate(l))
	waitForHistory(t, database, scan)
	var terms int
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT sum(epoch) FROM indexer.leadership").Scan(&terms))
	require.Greater(t, terms, 3)
	for _, daemon := range daemons {
		require.NoError(t, daemon.finish())
	}
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}
