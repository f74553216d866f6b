package app

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// During a rolling restart a newer version migrates the schema: the older daemon, though it has nothing to write,
// stands down.
func TestADaemonStandsDownForANewerVersion(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 8})
	l.Grow(10)
	database := throwaway.Migrated(t, migrate)
	daemon := startIndexer(t, indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope()))
	waitFor(t, database, lastUpdate(l))
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `BEGIN; UPDATE indexer.leadership SET epoch = epoch + 1;
		INSERT INTO indexer.schema_version (version_id, is_applied) SELECT max(version_id) + 1, true FROM indexer.schema_version; COMMIT`)
	require.NoError(t, err)
	select {
	case <-daemon.done:
	case <-time.After(5 * time.Minute):
		t.Fatal("the older daemon goes on")
	}
	requireProblem(t, daemon.err, "this program knows only", "newer release")
}

func TestADaemonWaitsForTheSchemaOfSomebodyElse(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 8})
	l.Grow(10)
	database := throwaway.Database(t)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), defaultScope())
	cfg.Migrate = "check"
	requireProblem(t, RunIndexer(t.Context(), cfg, testLogger(t)), "has schema version 0", "indexer migrate")

	cfg.Migrate = "off"
	said := &journal{}
	daemon := startLogged(t, cfg, said.logger())
	require.Contains(t, said.wait(t, "retrying")["error"], "--migrate=off waits for `indexer migrate`")
	require.NoError(t, migrate(t.Context(), database))
	waitFor(t, database, lastUpdate(l))
	require.NoError(t, daemon.finish())
}
