package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

// Every table, and every partition that is made later, has a replica identity: with a publication of all tables, which
// is what Debezium makes by itself, PostgreSQL refuses to update or remove rows of others.
func TestEveryTableHasAReplicaIdentity(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	network := d.open(d.URL, func(cfg *Config) { cfg.Schemas = Schemas{Tables: "network_tables", Views: "network"} })
	_, err := network.Migrate(t.Context())
	require.NoError(t, err)
	for _, s := range []*Store{d.store(), network} {
		l := d.leadUpdates(s)
		require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 0, true))
		require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	}
	require.Empty(t, d.Rows(`SELECT c.oid::regclass::text FROM pg_class c
		WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.relnamespace::regnamespace::text !~ '^(pg_.*|information_schema)$' AND NOT CASE c.relreplident
			WHEN 'd' THEN EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
			WHEN 'i' THEN EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident)
			ELSE c.relreplident = 'f' END ORDER BY 1`))
	for _, schema := range []string{session.DefaultSchemas.Tables, "network_tables"} {
		require.NotEqual(t, "0", d.Row("SELECT count(*) FROM pg_class c WHERE c.relnamespace = $1::text::regnamespace AND c.relispartition AND c.relname LIKE 'created\\_p%'", schema))
	}
}
