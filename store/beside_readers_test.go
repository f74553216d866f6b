package store

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

// The first role that is limited brings policies to tables that others read. Who has read one table and reads another
// one next is not ended by a deadlock: the grant gets all tables at once, or none.
func TestAGrantEndsNobodysQuery(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	d.append(l, 0, storetest.NewUpdate(1, "sync::1"))
	d.Exec("CREATE ROLE " + d.Row("SELECT current_database()") + "_limited")
	role := d.Row("SELECT current_database() || '_limited'")
	t.Cleanup(func() { dropRole(t, d.Conn, role) })
	reader := d.Begin("SELECT FROM ledger.unknown_updates")
	granted := make(chan error, 1)
	go func() {
		_, err := l.store.Grant(t.Context(), Reader{Role: role, Parties: []string{"alice"}})
		granted <- err
	}()
	d.WaitForLock("LOCK TABLE ONLY%")
	_, err := reader.Exec(t.Context(), "SELECT FROM ledger.updates, ledger.created_events")
	require.NoError(t, err)
	require.NoError(t, reader.Commit(t.Context()))
	require.NoError(t, <-granted)
	require.NotEqual(t, "0", d.Row("SELECT count(*) FROM pg_policy"))
}

// A role that is granted again keeps its lists until the grant has the turn to number lists: who has it adds to them,
// and no deadlock ends the one or the other.
func TestAGrantWaitsForWhoNumbersLists(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	role, _ := throwaway.Login(t, d.URL, "")
	grant := func() error {
		_, err := l.store.Grant(t.Context(), Reader{Role: role, Parties: []string{"alice"}})
		return err
	}
	require.NoError(t, grant())
	numbers := d.Begin(session.LockLists.Alone())
	granted := make(chan error, 1)
	go func() { granted <- grant() }()
	d.WaitForLock("%turn_lists%")
	_, err := numbers.Exec(t.Context(), "SELECT FROM reader_lists FOR UPDATE NOWAIT")
	require.NoError(t, err)
	require.NoError(t, numbers.Commit(t.Context()))
	require.NoError(t, <-granted)
}

// migrateFurther applies a migration of a later release.
func migrateFurther(t *testing.T, url, statements string) error {
	t.Helper()
	provider, err := newProvider(pooled(t, url), session.DefaultSchemas, laterRelease(t, "90000_further.sql", statements))
	require.NoError(t, err)
	return patiently(t.Context(), lockPatience, func() error {
		_, err := provider.Up(t.Context())
		return err
	})
}

// A migration gets everything that it changes before it changes anything, or lets readers pass: who has read one table,
// and reads another one next, is not ended by a deadlock, however long the migration takes. Behind a VACUUM it waits
// without keeping readers waiting.
func TestAMigrationEndsNobodysQuery(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	d.append(l, 0, storetest.NewUpdate(1, "sync::1"))
	vacuum := d.Begin("LOCK TABLE unknown_elements IN SHARE UPDATE EXCLUSIVE MODE") // as VACUUM does
	reader := d.Begin("SELECT FROM ledger.updates")
	migrated := make(chan error, 1)
	go func() {
		migrated <- migrateFurther(t, d.URL, `ALTER TABLE unknown_elements ADD COLUMN newer integer;
SELECT pg_sleep(0.8);
ALTER TABLE updates ADD COLUMN newer integer;
CREATE OR REPLACE VIEW ledger.latest AS SELECT ledger.latest_offset() AS newer;
`)
	}()
	d.WaitFor(`SELECT EXISTS (SELECT FROM pg_stat_activity a JOIN pg_locks l USING (pid)
		WHERE a.datname = current_database() AND l.mode = 'ShareUpdateExclusiveLock' AND NOT l.granted)`)
	_, err := reader.Exec(t.Context(), "LOCK TABLE unknown_elements IN ACCESS SHARE MODE NOWAIT")
	require.NoError(t, err, "a reader waits for a migration that waits for a VACUUM")
	require.NoError(t, vacuum.Commit(t.Context()))
	other := d.Begin("SELECT FROM ledger.updates")
	require.NoError(t, reader.Commit(t.Context()))
	d.WaitFor(`SELECT EXISTS (SELECT FROM pg_stat_activity a LEFT JOIN pg_locks l ON l.pid = a.pid AND NOT l.granted
		WHERE a.datname = current_database() AND (l.mode = 'AccessExclusiveLock' OR a.wait_event = 'PgSleep'))`)
	_, err = other.Exec(t.Context(), "SELECT FROM ledger.unknown_updates, ledger.created_events")
	require.NoError(t, err)
	require.NoError(t, other.Commit(t.Context()))
	require.NoError(t, <-migrated)
	require.Equal(t, "2", d.Row("SELECT count(*) FROM pg_attribute WHERE attrelid IN ('updates'::regclass, 'unknown_elements'::regclass) AND attname = 'newer'"))
}

// What a migration's comments name is not locked, nor a view of somebody else that has the name of something in it.
func TestAMigrationLocksNoMoreThanItChanges(t *testing.T) {
	t.Parallel()
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	d := emptyDatabase(t)
	role, as := throwaway.Login(t, d.URL, "")
	d.Exec("GRANT CREATE ON DATABASE " + pgx.Identifier{d.Row("SELECT current_database()")}.Sanitize() + " TO " + pgx.Identifier{role}.Sanitize())
	_, err := d.open(as, nil).Migrate(t.Context())
	require.NoError(t, err)
	d.Exec("CREATE VIEW ledger.size AS SELECT 1 AS one")
	reader := d.Begin("SELECT FROM ledger.updates")
	require.NoError(t, migrateFurther(t, as, "CREATE TABLE newer (size bigint); -- of updates\n"))
	require.NoError(t, reader.Commit(t.Context()))
	require.Equal(t, role, d.Row("SELECT relowner::regrole::text FROM pg_class WHERE oid = 'newer'::regclass"))
	d.Exec("DROP VIEW ledger.size") // else the role can't be dropped
}

// While one keeps a view that is to be replaced, others read it all the same.
func TestViewsAreReplacedBesideReaders(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	d.append(l, 0, storetest.NewUpdate(1, "sync::1"))
	makeTypedViews(t, l.store)
	require.NoError(t, l.store.EnablePQS(t.Context(), "pqs"))
	for view, change := range map[string]func() error{
		"typed.template": func() error {
			return l.store.ChangeTypedViews(t.Context(), TypedView{Schema: "typed"}, func(c *TypedViewsChange) error { return c.Drop(t.Context(), c.Registered[2]) })
		},
		"pqs.transactions": func() error { return l.store.EnablePQS(t.Context(), "pqs") },
	} {
		query := "SELECT FROM " + view
		one, other := d.Begin(query), d.Begin("SELECT")
		changed := make(chan error, 1)
		go func() { changed <- change() }()
		d.WaitFor(`SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE d.datname = current_database() AND l.mode = 'AccessExclusiveLock' AND NOT l.granted)`) // of the view, or of one that it reads
		done := make(chan error, 1)
		go func() {
			_, err := other.Exec(t.Context(), query)
			done <- err
		}()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(storetest.WaitLimit):
			require.Fail(t, "a reader waits for another one", view)
		}
		require.NoError(t, other.Commit(t.Context()))
		require.NoError(t, one.Commit(t.Context()))
		require.NoError(t, <-changed)
	}
}
