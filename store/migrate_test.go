package store

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

// The right to create schemas is needed once: an upgrade, and each start, does without.
func TestMigrateWithoutTheRightToCreateSchemas(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates databases from nothing, which takes a second or more")
	newest, err := SchemaVersion()
	require.NoError(t, err)
	for _, version := range []int64{2, newest - 1, newest} {
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			d := emptyDatabase(t)
			role, as := throwaway.Login(t, d.URL, "")
			right := "CREATE ON DATABASE " + pgx.Identifier{d.Row("SELECT current_database()")}.Sanitize()
			_, err := d.open(as, nil).Migrate(t.Context())
			storetest.RequireProblem(t, err, "can't be used", "grant")
			require.ErrorContains(t, err, "permission denied for database")

			d.Exec("GRANT " + right + " TO " + pgx.Identifier{role}.Sanitize())
			config, err := pgx.ParseConfig(as)
			require.NoError(t, err)
			config.RuntimeParams["search_path"] = session.DefaultSchemas.SearchPath()
			db := stdlib.OpenDB(*config)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			_, err = db.ExecContext(t.Context(), "CREATE SCHEMA indexer")
			require.NoError(t, err)
			provider, err := newProvider(db, session.DefaultSchemas)
			require.NoError(t, err)
			_, err = provider.UpTo(t.Context(), version)
			require.NoError(t, err)
			d.Exec("REVOKE " + right + " FROM " + pgx.Identifier{role}.Sanitize())

			s := d.open(as, nil)
			applied, err := s.Migrate(t.Context())
			require.NoError(t, err)
			require.Len(t, applied, int(newest-version))
			require.NoError(t, s.CheckSchema(t.Context()))
			l := d.leadUpdates(s)
			require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 0, true))
			require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
			require.Equal(t, "4", d.Watermark())
		})
	}
}
