package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/store/internal/storetest"
)

func (d *testDB) rewrites() []string {
	d.T.Helper()
	return d.Rows("SELECT stream, from_exclusive, to_inclusive, reason FROM ledger.rewrites ORDER BY rewrite")
}

// A reader who has copied what was shown learns of everything that changes there afterwards, and of nothing else.
func TestReadersLearnWhatChangedBehindThem(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.seeded(storetest.ActiveEntry(2, 0, "old", "sync::1", 0))
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(101, 110)))
	require.Empty(t, d.rewrites(), "what is new is no change")

	repairer, ok, err := Audit.LeadRepair(ctx, up.store)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 110")
	require.NoError(t, repairer.RepairUpdates(ctx, storetest.Scope, storetest.OneCreation(101, 110)[0]))
	require.Equal(t, "updates 101 110 repaired", d.rewrites()[0])
	require.NoError(t, repairer.RepairDerived(ctx, nil))
	require.Equal(t, "updates 0 110 repaired", d.rewrites()[0])

	up.Close()
	up = d.leadUpdates(d.store())
	_, err = up.Reset(ctx, 105)
	require.NoError(t, err)
	require.Equal(t, "updates 105 110 reset", d.rewrites()[1])
	// Copies by replication have what is not shown yet, too.
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(120, 130)))
	_, err = up.Reset(ctx, 105)
	require.NoError(t, err)
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(106, 108)))
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(110, 140)))
	scope := storetest.Scope
	scope.Parties = []string{"bob"}
	d.changeScope(up, scope)
	require.Equal(t, []string{"updates 105 130 reset", "updates 105 140 reset", "updates 104 105 scope changed"}, d.rewrites()[2:])
}

// follower keeps a copy of the creation events as the documents say.
type follower struct {
	*testDB
	offset, rewrite int64
	copied          map[string]int64 // rows and their offsets
}

// turn brings the copy up to date, and holds it against what is shown.
func (f *follower) turn(message string) {
	f.T.Helper()
	read := func(from, to int64) {
		for _, row := range f.Rows("SELECT ledger_offset, node_id, contract_id, origin FROM ledger.created_events WHERE ledger_offset > $1 AND ledger_offset <= $2", from, to) {
			var offset int64
			_, err := fmt.Sscan(row, &offset)
			require.NoError(f.T, err)
			require.NotContains(f.T, f.copied, row, "%s: read twice", message)
			f.copied[row] = offset
		}
	}
	var latest int64
	require.NoError(f.T, f.Conn.QueryRow(f.T.Context(), "SELECT ledger.latest_offset()").Scan(&latest))
	rows, err := f.Conn.Query(f.T.Context(), "SELECT ARRAY[rewrite, from_exclusive, to_inclusive] FROM ledger.rewrites WHERE rewrite > $1 AND stream <> 'transactions' ORDER BY 1", f.rewrite)
	require.NoError(f.T, err)
	rewrites, err := pgx.CollectRows(rows, pgx.RowTo[[]int64])
	require.NoError(f.T, err)
	for _, r := range rewrites {
		maps.DeleteFunc(f.copied, func(_ string, offset int64) bool { return offset > r[1] && offset <= r[2] })
		read(r[1], min(r[2], f.offset))
		f.rewrite = r[0]
	}
	read(f.offset, latest)
	f.offset = latest
	require.Equal(f.T, storetest.Sorted(f.Rows("SELECT ledger_offset, node_id, contract_id, origin FROM ledger.created_events")), slices.Sorted(maps.Keys(f.copied)), message)
}

// Whatever is done to the database, a copy that is brought up to date as the documents say has what is shown, without
// reading it all again.
func TestACopyFollowsWhatIsShown(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.seeded(storetest.ActiveEntry(2, 0, "old", "sync::1", 0), storetest.UnassignedEntry(90, 30, "left", "sync::1", "sync::2"))
	f := &follower{testDB: d, copied: map[string]int64{}}
	f.turn("from nothing")
	require.Len(t, f.copied, 3)
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(101, 110)))
	f.turn("of what is new")
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(110, 120)))
	f.turn("and some more")
	_, err := up.Reset(ctx, 105)
	require.NoError(t, err)
	f.turn("reset")
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(105, 111)))
	f.turn("read again")
	_, err = up.Reset(ctx, 105)
	require.NoError(t, err)
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(105, 108)))
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(108, 120)))
	f.turn("reset and read again meanwhile")
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(120, 125)))
	_, err = up.Reset(ctx, 120)
	require.NoError(t, err)
	f.turn("reset of what was not shown")
	require.NoError(t, up.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(120, 124)))
	_, err = up.Reset(ctx, 120)
	require.NoError(t, err)
	require.NoError(t, up.Append(ctx, storetest.Scope, storetest.OneCreation(120, 122)))
	f.turn("reset of what was not shown, and read meanwhile")
	repairer, ok, err := Audit.LeadRepair(ctx, up.store)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset > 100")
	f.copied = map[string]int64{}
	f.offset = 0
	f.turn("of what is damaged")
	require.NoError(t, repairer.RepairUpdates(ctx, storetest.Scope, storetest.OneCreation(105, 108)[0]))
	f.turn("repaired")
	require.Contains(t, f.copied, "108 0 contract-108 transaction")
}

// A transaction history that is read again may be another one from its first record on.
func TestReadersLearnOfAHistoryThatIsReadAgain(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	h.moved(h.l.ClearTransactions(t.Context(), h.at))
	h.append("b", "a", "c")
	h.moved(h.l.CompleteTransactions(t.Context(), h.at))
	require.Equal(t, []string{"transactions 0 2 read again"}, h.rewrites())
	repairer, ok, err := Audit.LeadRepair(t.Context(), h.store())
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	require.NoError(t, repairer.RepairBalances(t.Context(), func(string) {}))
	require.Equal(t, []string{"transactions 0 2 read again", "transactions 0 3 repaired"}, h.rewrites())
}

// Who listens is told the watermark by the transaction that moves it, and by no other.
func TestReadersAreToldOfANewWatermark(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	reader := d.Connect()
	_, err := reader.Exec(ctx, "LISTEN ledger")
	require.NoError(t, err)
	told := func() string {
		t.Helper()
		n, err := reader.WaitForNotification(ctx)
		require.NoError(t, err)
		require.Equal(t, "ledger", n.Channel)
		return n.Payload
	}
	l := d.started()
	require.Equal(t, "0", told())
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(2, 4)))
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 2)))
	require.Equal(t, "2", told(), "nothing was said of what lies ahead")
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 2, 4))
	require.Equal(t, "4", told())
	_, err = l.Reset(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, "2", told())

	// While the server's queue is half full the watermark moves all the same. Filling it takes gigabytes, so the trigger
	// is made to ask another function.
	d.Exec("CREATE SCHEMA full_queue")
	d.Exec("CREATE FUNCTION full_queue.pg_notification_queue_usage() RETURNS double precision LANGUAGE sql RETURN 0.5")
	d.Exec("ALTER FUNCTION indexer.notify_readers() SET search_path = full_queue, pg_catalog, indexer")
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(2, 5)))
	require.Equal(t, "5", d.Watermark())
	d.Exec("ALTER FUNCTION indexer.notify_readers() SET search_path = indexer")
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(5, 6)))
	require.Equal(t, "6", told(), "nothing was said of the one before")
}
