package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

// behind is a way to the database through PgBouncer.
func (d *testDB) behind(mode string, settings ...string) string {
	d.T.Helper()
	return throwaway.PgBouncer(d.T, d.URL, mode, settings...)
}

// Everything works through a pooler in session mode: the sessions have their settings, one leads, and what it lets go
// of is free.
func TestPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a pooler")
	d := emptyDatabase(t)
	ctx := t.Context()
	url := d.behind(throwaway.PoolSessions)
	first, second := d.open(url, nil), d.open(url, nil)
	applied, err := first.Migrate(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, applied)

	l := d.leadUpdates(first)
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 0, true))
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)))
	require.Equal(t, "4", d.Watermark())
	require.Equal(t, []string{"ledgerindexer updates epoch 1", "ledgerindexer updates lock"},
		d.Rows("SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ledgerindexer updates %' ORDER BY 1"))
	var limit string
	require.NoError(t, l.term.Pool.QueryRow(ctx, "SELECT concat_ws(' ', current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), current_setting('timezone'))").Scan(&limit))
	require.Equal(t, "30s 1min UTC", limit)

	_, ok, err := second.LeadUpdates(ctx)
	require.NoError(t, err)
	require.False(t, ok, "another one leads")
	l.Close()
	d.leadUpdates(second).Close()

	// PgBouncer continues with the lock's session, and another client's does not end when it rests.
	require.NotEqual(t, "0", d.Row("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"))
	conn, err := second.db.Connect(ctx, second.db.Conn)
	require.NoError(t, err)
	defer pg.Close(ctx, conn)
	require.NoError(t, conn.QueryRow(ctx, "SHOW idle_in_transaction_session_timeout").Scan(&limit))
	require.Equal(t, "0", limit)
}

// A leader that is cut off, however, loses its lock through a pooler too.
func TestPoolerFreesTheLockOfALeaderThatIsGone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.open(d.behind(throwaway.PoolSessions), nil)
	free := "SELECT NOT EXISTS (SELECT FROM indexer.lock_holders('indexer.lead_updates'))"
	for name, goes := range map[string]string{"it vanishes": "", "it is silent": "SET idle_in_transaction_session_timeout = 1"} {
		conn, err := s.db.Connect(t.Context(), leadership.LockConfig(s.db, LeaseUpdates))
		require.NoError(t, err, name)
		_, locked, err := session.TryHold(t.Context(), conn, LeaseUpdates.Lead(), 5*time.Second)
		require.NoError(t, err, name)
		require.True(t, locked, name)
		require.Equal(t, "false", d.Row(free), name)
		if goes == "" {
			require.NoError(t, conn.PgConn().Conn().Close(), name)
		} else {
			_, err = conn.Exec(t.Context(), goes)
			require.NoError(t, err, name)
		}
		d.WaitFor(free)
		pg.Close(context.Background(), conn)
	}
}

// A leader whose lock is ended loses it, and another one leads, through the same pooler.
func TestPoolerTakeover(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	url := d.behind(throwaway.PoolSessions)
	l := d.leadUpdates(d.open(url, nil))
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 0, true))
	d.EndLock(LeaseUpdates)
	<-l.Lost()
	require.ErrorIs(t, l.Err(), ErrNotLeader)
	next := d.leadUpdates(d.open(url, nil))
	require.NoError(t, next.Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 10)))
	require.Error(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(10, 20)))
	require.Equal(t, "10", d.Watermark())
}

// However few or many sessions a pooler shares out, in whichever order: it is found out, at once.
func TestSharedSessionsAreRefused(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts poolers")
	for _, mode := range []string{throwaway.PoolTransactions, throwaway.PoolStatements} {
		for _, order := range []string{"server_round_robin = 0", "server_round_robin = 1"} {
			for sessions := range 4 {
				t.Run(fmt.Sprint(mode, " ", order, " ", sessions), func(t *testing.T) {
					t.Parallel()
					brief.Sample(t)
					d := newDatabase(t)
					url := d.behind(mode, order, fmt.Sprint("default_pool_size = ", sessions+1), fmt.Sprint("min_pool_size = ", sessions+1))
					for _, use := range []func(*Store) error{
						func(s *Store) error { return s.CheckSchema(t.Context()) },
						func(s *Store) error { _, err := s.Migrate(t.Context()); return err },
					} {
						err := use(d.open(url, nil))
						require.ErrorIs(t, err, ErrPooled)
						storetest.RequireProblem(t, err, "another session", "session mode")
					}
					i, err := d.open(url, nil).Inspect(t.Context())
					if err != nil {
						require.ErrorIs(t, err, ErrPooled)
						return
					}
					i.Close(t.Context())
				})
			}
		}
	}
}

// What is said in the URL comes with a statement too, and is there; only the server's own words count.
func TestSettingsOfTheURL(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	url := d.behind(throwaway.PoolSessions) + "&statement_timeout=60000&TimeZone=Asia%2FTokyo"
	var settings string
	require.NoError(t, d.open(url, nil).db.Pool.QueryRow(t.Context(), "SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('timezone'))").Scan(&settings))
	require.Equal(t, "1min UTC", settings)

	_, err := d.open(url+"&no_such_setting=1", nil).Migrate(t.Context())
	storetest.RequireProblem(t, err, "can't be used")
	require.ErrorContains(t, err, "no_such_setting")
	_, err = d.open(url+"&options=-cjit%3Doff", nil).Migrate(t.Context())
	storetest.RequireProblem(t, err, "can't be used", "leave the parameter out")
	require.ErrorContains(t, err, "unsupported startup parameter: options")
}

// No session compiles queries, whatever the server does: that takes longer than most of them, and ten times as long as
// adding up amulets.
func TestNoSessionCompilesQueries(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.Exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$")
	s := d.open(d.URL, nil)
	writer, ok, err := s.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer writer.Close()
	for _, pool := range []*pgxpool.Pool{s.db.Pool, writer.term.Pool} {
		var jit string
		require.NoError(t, pool.QueryRow(t.Context(), "SHOW jit").Scan(&jit))
		require.Equal(t, "off", jit)
	}
}

// Nothing is migrated, and nobody starts, before it is certain that sessions are not shared.
func TestSessionsAreLookedAtBeforeAllElse(t *testing.T) {
	t.Parallel()
	d := emptyDatabase(t)
	_, as := throwaway.Login(t, d.URL, "CONNECTION LIMIT 1")
	_, err := d.open(as, nil).Migrate(t.Context())
	require.ErrorContains(t, err, "make a second connection")
	require.NotErrorAs(t, err, new(*ledger.Problem), "another one may be had later")
}

// Who changes schemas waits for whoever does so already, and says which session that is: it may have to be ended.
func TestWhoIsWaitedForIsNamed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	holder := d.Begin(session.LockSchema.Alone())
	said, says := io.Pipe()
	t.Cleanup(func() { _ = said.Close() })
	s := d.open(d.URL, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(says, nil)) })
	changed := make(chan error, 1)
	go func() { changed <- s.alone(t.Context(), func(pgx.Tx) error { return nil }) }()
	defer time.AfterFunc(storetest.WaitLimit, func() { _ = says.Close() }).Stop()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, fmt.Sprintf("lock=turn_schema pid=%d ", holder.Conn().PgConn().PID()))
	require.NoError(t, holder.Commit(t.Context()))
	require.NoError(t, <-changed)
}
