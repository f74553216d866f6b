package store

import (
	"errors"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A server that crashes may lose its last commits, as one does that takes over from another. What the leader remembers
// of them, such as the numbers of lists, does not outlast that.
func TestNothingIsRememberedOfCommitsThatTheDatabaseLost(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	ctx := t.Context()
	server := throwaway.LocalServer(t, throwaway.Options{Settings: map[string]string{
		"synchronous_commit": "off", "wal_writer_delay": "10000", "autovacuum": "off",
	}})
	url := server.URL("postgres")
	require.NoError(t, migrate(ctx, url))
	d := &testDB{storetest.New(t, url)}
	s := d.store()
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 0, true))
	require.NoError(t, l.Append(ctx, storetest.Scope, signedBy(0, 10, "alice")))
	d.Exec("CHECKPOINT")
	require.NoError(t, l.Append(ctx, storetest.Scope, signedBy(10, 20, "bob")))
	d.crash()
	require.Eventually(t, func() bool {
		at, _, err := s.Watermark(ctx)
		return err == nil && at == 10
	}, storetest.WaitLimit, storetest.WaitTick)

	var err error
	require.Eventually(t, func() bool { // as a stream tries again; errors of old connections come first
		err = l.Append(ctx, storetest.Scope, signedBy(10, 20, "bob"))
		return err == nil || errors.Is(err, ErrNotLeader)
	}, storetest.WaitLimit, storetest.WaitTick)
	require.ErrorIs(t, err, ErrNotLeader)
	<-l.Lost()
	l.Close()
	var again *UpdatesWriter
	require.Eventually(t, func() bool {
		var ok bool
		again, ok, err = s.LeadUpdates(ctx)
		return err == nil && ok
	}, storetest.WaitLimit, storetest.WaitTick)
	t.Cleanup(again.Close)
	require.NoError(t, again.Append(ctx, storetest.Scope, signedBy(10, 20, "bob")))
	require.NoError(t, again.Append(ctx, storetest.Scope, signedBy(20, 30, "carol")))
	require.Equal(t, []string{"10 alice", "20 bob", "30 carol"},
		d.Rows("SELECT ledger_offset, array_to_string(signatories, ',') FROM ledger.created_events ORDER BY 1"))
}

// Facts above the watermark are not waited for, and a crash may take them. Showing them is: it leaves nothing behind
// that a crash takes.
func TestACrashTakesNothingThatIsShown(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	ctx := t.Context()
	server := throwaway.LocalServer(t, throwaway.Options{Settings: map[string]string{"wal_writer_delay": "10000", "autovacuum": "off"}})
	url := server.URL("postgres")
	require.NoError(t, migrate(ctx, url))
	d := &testDB{storetest.New(t, url)}
	s := d.store()
	lead := func() (l *UpdatesWriter) {
		require.Eventually(t, func() bool {
			var ok bool
			var err error
			l, ok, err = s.LeadUpdates(ctx)
			return err == nil && ok
		}, storetest.WaitLimit, storetest.WaitTick)
		return l
	}
	l := lead()
	require.NoError(t, l.Start(ctx, "participant::1", storetest.Scope, 0, true))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, signedBy(0, 10, "alice")))
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 0, 10))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, signedBy(10, 20, "bob")))
	d.crash()
	require.Eventually(t, func() bool { // errors of old connections come first
		return errors.Is(l.MoveWatermark(ctx, storetest.Scope, 10, 20), ErrNotLeader)
	}, storetest.WaitLimit, storetest.WaitTick, "what is remembered of lost facts is not shown")
	l.Close()

	l = lead()
	t.Cleanup(func() { l.Close() })
	at, _, err := l.Watermark(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 10, at)
	ahead, err := l.StoredAhead(ctx)
	require.NoError(t, err)
	require.Empty(t, ahead)
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, signedBy(10, 20, "carol")))
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 10, 20))
	d.crash()
	require.Equal(t, "20", d.Row("SELECT ledger_offset FROM indexer.checkpoints WHERE stream = 'updates'"))
	require.Equal(t, []string{"10 alice", "20 carol"},
		d.Rows("SELECT ledger_offset, array_to_string(signatories, ',') FROM ledger.created_events ORDER BY 1"))
	require.Equal(t, []string{"2"}, d.Rows("SELECT count(*) FROM ledger.active_contracts"))
}

// crash ends a process of the server, and waits until it has recovered from its log.
func (d *testDB) crash() {
	d.T.Helper()
	ctx, beside := d.T.Context(), d.Connect()
	var process int
	require.NoError(d.T, d.Conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&process))
	require.NoError(d.T, syscall.Kill(process, syscall.SIGKILL))
	require.Eventually(d.T, func() bool { return beside.Ping(ctx) != nil }, storetest.WaitLimit, storetest.WaitTick, "it ends all sessions first")
	require.Eventually(d.T, func() bool {
		conn, err := pgx.Connect(ctx, d.URL)
		return err == nil && conn.Close(ctx) == nil
	}, storetest.WaitLimit, storetest.WaitTick)
	d.Conn = d.Connect()
}

// signedBy is oneCreation of one signatory.
func signedBy(from, to ledger.Offset, party string) []ledger.Page {
	pages := storetest.OneCreation(from, to)
	pages[0].Updates[0].Created[0].Signatories = []string{party}
	return pages
}
