package store

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

func (d *testDB) inspect(url string) *Inspector {
	d.T.Helper()
	i, err := d.open(url, nil).Inspect(d.T.Context())
	require.NoError(d.T, err)
	d.T.Cleanup(func() { i.Close(context.Background()) })
	return i
}

// emptyDatabase has nothing of ours in it.
func emptyDatabase(t testing.TB) *testDB {
	t.Helper()
	return &testDB{storetest.New(t, throwaway.Database(t))}
}

func TestInspectAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	d := emptyDatabase(t)
	i := d.inspect(d.URL)
	server, err := i.Server(t.Context())
	require.NoError(t, err)
	require.Equal(t, d.Row("SELECT current_user"), server.User)
	require.Equal(t, "UTF8", server.Encoding)
	require.GreaterOrEqual(t, server.VersionNumber, MinServerVersion)
	require.NotEmpty(t, server.Version)
	require.False(t, server.InRecovery)
	require.False(t, server.ReadOnly)
	require.True(t, server.MayCreateSchemas)
	require.Positive(t, server.FreeConnections)
	require.True(t, server.Transport.Local)
	require.Empty(t, server.Transport.TLS)
	require.InDelta(t, 0, server.ClockAhead.Seconds(), 60, "it is this machine's clock")
	require.Equal(t, "on", server.Settings["autovacuum"].Value)
	require.Equal(t, Setting{Value: "0", Unit: "ms", Source: "default"}, server.Settings["statement_timeout"])

	schema, err := i.Schema(t.Context())
	require.NoError(t, err)
	newest, err := SchemaVersion()
	require.NoError(t, err)
	require.Equal(t, SchemaFacts{Pair: session.DefaultSchemas, Wanted: newest}, schema)

	require.Empty(t, d.Rows("SELECT nspname FROM pg_namespace WHERE nspname IN ('indexer', 'ledger')"), "nothing was made")
}

func TestInspectASchema(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	user := d.Row("SELECT current_user")
	schema, err := d.inspect(d.URL).Schema(t.Context())
	require.NoError(t, err)
	require.Equal(t, []SchemaFact{{Name: "indexer", Owner: user, Owned: true}, {Name: "ledger", Owner: user, Owned: true}}, schema.Schemas)
	require.Equal(t, schema.Wanted, schema.Version)
	require.Empty(t, schema.Foreign)
	require.Greater(t, schema.Relations, 50)
}

func TestStatusOfAnUnfinishedSnapshot(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	_, err := l.BeginSnapshot(t.Context(), "participant::1", storetest.Scope, 41)
	require.NoError(t, err)
	status, err := d.store().Status(t.Context())
	require.NoError(t, err)
	require.False(t, status.Started)
	require.Equal(t, ledger.Offset(41), status.Snapshot.At)
	require.Equal(t, storetest.Scope.Hash(), status.SnapshotScope)
}

// Who may do nothing still gets to know what is there.
func TestInspectAsAStranger(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	_, as := throwaway.Login(t, d.URL, "")
	i := d.inspect(as)
	server, err := i.Server(t.Context())
	require.NoError(t, err)
	require.False(t, server.Superuser)
	require.False(t, server.MayCreateSchemas)
	schema, err := i.Schema(t.Context())
	require.NoError(t, err)
	require.Len(t, schema.Schemas, 2)
	for _, s := range schema.Schemas {
		require.False(t, s.Owned, s.Name)
	}
	require.NotEmpty(t, schema.Foreign)
	require.Zero(t, schema.Version)
}

func TestInspectSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	d := emptyDatabase(t)
	name, as := throwaway.Login(t, d.URL, "CONNECTION LIMIT 5")
	role := pgx.Identifier{name}.Sanitize()
	d.Exec("ALTER ROLE " + role + " SET statement_timeout = '5s'")
	d.Exec("ALTER ROLE " + role + " SET default_transaction_isolation = 'serializable'")
	d.Exec("ALTER ROLE " + role + " SET default_transaction_read_only = on")
	server, err := d.inspect(as).Server(t.Context())
	require.NoError(t, err)
	require.Equal(t, Setting{Value: "5000", Unit: "ms", Source: "user"}, server.Settings["statement_timeout"])
	require.Equal(t, "serializable", server.Settings["default_transaction_isolation"].Value)
	require.True(t, server.ReadOnly)
	require.Equal(t, 4, server.FreeConnections)
}

func TestInspectSaysWhyItCannotConnect(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{URL: "postgres://u:hunter2@127.0.0.1:1/d"})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Inspect(t.Context())
	require.ErrorContains(t, err, "127.0.0.1:1 d")
	require.NotContains(t, err.Error(), "hunter2")
}
