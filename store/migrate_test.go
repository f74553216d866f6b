package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

// The right to create schemas is needed once: an upgrade, and each start, does without.
func TestMigrateWithoutTheRightToCreateSchemas(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates databases from nothing, which takes a second or more")
	newest, err := SchemaVersion()
	require.NoError(t, err)
	for _, version := range []int64{2, newest} {
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			d := emptyDatabase(t)
			role, as := throwaway.Login(t, d.URL, "")
			right := "CREATE ON DATABASE " + pgx.Identifier{d.Row("SELECT current_database()")}.Sanitize()
			_, err := d.open(as, nil).Migrate(t.Context())
			storetest.RequireProblem(t, err, "can't be used", "grant")
			require.ErrorContains(t, err, "permission denied for database")

			d.Exec("GRANT " + right + " TO " + pgx.Identifier{role}.Sanitize())
			db := pooled(t, as)
			_, err = db.ExecContext(t.Context(), "CREATE SCHEMA indexer")
			require.NoError(t, err)
			provider, err := newProvider(db, session.DefaultSchemas, migrationsOf(session.DefaultSchemas))
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

// pooled opens a database as goose takes it.
func pooled(t *testing.T, url string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	config.RuntimeParams["search_path"] = session.DefaultSchemas.SearchPath()
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// laterRelease returns the migrations, and one more with these statements.
func laterRelease(t *testing.T, name, statements string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	released := migrationsOf(session.DefaultSchemas)
	entries, err := fs.ReadDir(released, ".")
	require.NoError(t, err)
	for _, entry := range entries {
		text, err := fs.ReadFile(released, entry.Name())
		require.NoError(t, err)
		files[entry.Name()] = &fstest.MapFile{Data: text}
	}
	further := "-- +goose Up\n-- +goose StatementBegin\n" + beginning(session.DefaultSchemas, statements) + statements + "-- +goose StatementEnd\n"
	files[name] = &fstest.MapFile{Data: []byte(further)}
	return files
}

// A newer version migrates while an older one leads: it waits for the transaction under way, and the older one writes
// nothing more and never leads again.
func TestAnOlderVersionStandsDown(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	older := d.started()
	require.NoError(t, older.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	repairs := d.lead(d.store(), LeaseRepair)
	newest, err := SchemaVersion()
	require.NoError(t, err)

	files := laterRelease(t, fmt.Sprintf("%05d_newer.sql", newest+1), "CREATE TABLE newer ();\n")
	for name, file := range files {
		require.Equal(t, !strings.HasPrefix(name, "00001_"), strings.Contains(string(file.Data), "UPDATE leadership SET epoch = epoch + 1"), name)
	}
	provider, err := newProvider(pooled(t, d.URL), session.DefaultSchemas, files)
	require.NoError(t, err)

	migrated := make(chan error, 1)
	require.NoError(t, older.term.Write(t.Context(), func(ctx context.Context, _ pgx.Tx) error {
		_, err := provider.Up(ctx)
		require.True(t, pg.HasCode(err, pg.LockNotAvailable), err)
		go func() {
			_, err := provider.Up(context.WithoutCancel(ctx))
			migrated <- err
		}()
		return nil
	}))
	require.NoError(t, <-migrated)
	require.Equal(t, "1", d.Row("SELECT count(*) FROM pg_tables WHERE tablename = 'newer'"))

	require.ErrorIs(t, older.Append(t.Context(), storetest.Scope, storetest.EveryKind(4)), ErrNotLeader)
	for _, leader := range []*Leader{older.Leader, repairs} { // also where nothing is written
		select {
		case <-leader.Lost():
		case <-time.After(5 * time.Minute):
			t.Fatal("the older version does not notice that its term has ended")
		}
		require.ErrorIs(t, leader.Err(), ErrNotLeader)
		leader.Close()
	}
	_, _, err = d.store().LeadUpdates(t.Context())
	storetest.RequireProblem(t, err, fmt.Sprintf("schema version %d, this program knows only %d", newest+1, newest), "newer release")
}
