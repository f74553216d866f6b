package store

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A server that crashes may lose its last commits, as one does that takes over from another. What the leader remembers of them, such as
// the numbers of lists, does not outlast that.
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
	var process int
	require.NoError(t, d.Conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&process))
	require.NoError(t, syscall.Kill(process, syscall.SIGKILL)) // PostgreSQL recovers from its log then
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
	d.Conn = d.Connect()
	require.Equal(t, []string{"10 alice", "20 bob", "30 carol"},
		d.Rows("SELECT ledger_offset, array_to_string(signatories, ',') FROM ledger.created_events ORDER BY 1"))
}

// signedBy is oneCreation of one signatory.
func signedBy(from, to ledger.Offset, party string) []ledger.Page {
	pages := storetest.OneCreation(from, to)
	pages[0].Updates[0].Created[0].Signatories = []string{party}
	return pages
}
