package throwaway

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// migrateExample is what a store's migration would be.
func migrateExample(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	_, err = conn.Exec(ctx, "CREATE TABLE example (n int)")
	return err
}

var migrations, preparations atomic.Int32

func migrateAndCount(ctx context.Context, url string) error {
	migrations.Add(1)
	return migrateExample(ctx, url)
}

func TestEachTestGetsADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	t.Run("tests", func(t *testing.T) {
		for n := range 6 {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				conn := connect(t, Migrated(t, migrateAndCount))
				_, err := conn.Exec(t.Context(), "INSERT INTO example VALUES ($1)", n)
				require.NoError(t, err)
				var count int
				require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM example").Scan(&count))
				require.Equal(t, 1, count)

				prepared := connect(t, Prepared(t, migrateAndCount, "two rows", func(ctx context.Context, url string) error {
					preparations.Add(1)
					conn, err := pgx.Connect(ctx, url)
					if err != nil {
						return err
					}
					_, err = conn.Exec(ctx, "INSERT INTO example VALUES (1), (2)")
					return errors.Join(err, conn.Close(ctx))
				}))
				_, err = prepared.Exec(t.Context(), "INSERT INTO example VALUES ($1)", n)
				require.NoError(t, err)
				require.NoError(t, prepared.QueryRow(t.Context(), "SELECT count(*) FROM example").Scan(&count))
				require.Equal(t, 3, count)

				empty := connect(t, Database(t))
				require.NoError(t, empty.QueryRow(t.Context(),
					"SELECT count(*) FROM pg_class WHERE relname = 'example'").Scan(&count))
				require.Zero(t, count)
			})
		}
	})
	require.EqualValues(t, 1, migrations.Load(), "the template is prepared once")
	require.EqualValues(t, 1, preparations.Load())
}

func TestDatabasesAreDroppedAfterTheTest(t *testing.T) {
	t.Parallel()
	var urls []string
	t.Run("test", func(t *testing.T) {
		urls = append(urls, Database(t), Migrated(t, migrateExample))
		connect(t, urls[0]) // is still connected when the database is dropped
	})
	for _, url := range urls {
		require.ErrorContains(t, ping(t.Context(), url), "does not exist")
	}
}

// TestRunsShareAGivenServer is two test processes on one TEST_DATABASE_URL, one
// of which was killed.
func TestRunsShareAGivenServer(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	s, err := Start(t.Context(), Options{URL: LocalServer(t, Options{}).URL("")})
	require.NoError(t, err)
	given := func() Options { return Options{URL: s.URL("")} }
	databases := func() []string {
		rows, err := connect(t, s.URL("")).Query(t.Context(),
			"SELECT datname FROM pg_database WHERE datname LIKE 'ledgerindexer_test_%'")
		require.NoError(t, err)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return names
	}

	killed, alive, later := &run{options: given}, &run{options: given}, &run{options: given}
	for _, r := range []*run{killed, alive} {
		require.NoError(t, r.start(t).migrated(migrateExample).make(t.Context()))
	}
	require.Len(t, databases(), 2)
	require.NoError(t, killed.lock.Close(t.Context()))
	require.Eventually(t, func() bool {
		r := &run{options: given}
		defer func() { require.NoError(t, r.stop()) }()
		r.start(t)
		return len(databases()) == 1
	}, 5*time.Minute, 20*time.Millisecond, "a later run drops what a killed run left")
	require.Contains(t, databases()[0], alive.name)

	require.NoError(t, later.start(t).migrated(migrateExample).make(t.Context()))
	require.Len(t, databases(), 2)
	require.NoError(t, later.stop())
	require.NoError(t, alive.stop())
	require.Empty(t, databases())
}

func TestAServerThatCannotStartFailsEveryTest(t *testing.T) {
	t.Parallel()
	r := &run{options: func() Options { return Options{Kind: "oracle"} }}
	for range 2 {
		said := &recorder{TB: t}
		finished := make(chan struct{})
		go func() { // Fatal ends the goroutine
			defer close(finished)
			r.start(said)
		}()
		<-finished
		require.Contains(t, said.fatal, `unknown kind of PostgreSQL server "oracle"`)
	}
	require.NoError(t, r.stop())
}

// recorder is a test whose Fatal does not end the real one.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatal(args ...any) {
	r.fatal = fmt.Sprint(args...)
	runtime.Goexit()
}
