package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// historyTables are those whose rows belong to records of the transaction history.
var historyTables = []string{
	"transactions", "transfers", "transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions",
	"unknown_transactions", "party_transfers", "balance_totals", "latest_totals",
}

// testHistory writes the transaction history of a database.
type testHistory struct {
	*testDB
	l  *TransactionsWriter
	at ledger.TransactionsPosition
}

func newHistory(t testing.TB) *testHistory {
	t.Helper()
	d := newDatabase(t)
	return &testHistory{testDB: d, l: d.leadTransactions(d.store())}
}

// append writes a page. The position that it returns must be the one that is stored.
func (h *testHistory) append(texts ...string) {
	h.T.Helper()
	at, err := h.l.AppendTransactions(h.T.Context(), h.at, nil, storetest.RecordsOf(texts))
	h.moved(at, err)
}

func (h *testHistory) moved(at ledger.TransactionsPosition, err error) {
	h.T.Helper()
	require.NoError(h.T, err)
	require.Equal(h.T, h.at.Revision+1, at.Revision)
	stored, _, err := h.l.TransactionsPosition(h.T.Context())
	require.NoError(h.T, err)
	require.Equal(h.T, stored, at)
	h.at = at
}

// stored lists the records, by seq.
func (h *testHistory) stored() []string {
	h.T.Helper()
	return h.Rows(`SELECT x.seq || ':' || x.event_id || CASE WHEN t.amount = 1 THEN '' ELSE '/' || t.amount END
		FROM ledger.transactions x JOIN ledger.taps t USING (seq) ORDER BY x.seq`)
}

// window lists the marks, those whose event id is unique with a star.
func (h *testHistory) window() string {
	h.T.Helper()
	at, window, err := h.l.TransactionsPosition(h.T.Context())
	require.NoError(h.T, err)
	var list []string
	for i, mark := range window {
		text := fmt.Sprint(at.LastSeq-int64(len(window)-1-i), ":", mark.EventID)
		if mark.Unique {
			text += "*"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func (h *testHistory) checkpoint() string {
	h.T.Helper()
	return h.Row("SELECT coalesce(event_id, 'none') FROM ledger.stream_checkpoints WHERE stream = 'transactions'")
}

// numbered makes n different texts.
func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(prefix, i)
	}
	return list
}

// The event id's order is the service's, not the string's; seq is the order in which records came, without gaps. Two
// records can share one event id, and be equal: both are kept, and marked.
func TestHistorySeqIsTheServicesOrder(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	at, _, err := h.l.TransactionsPosition(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.TransactionsPosition{}, at)
	at, err = h.l.AppendTransactions(t.Context(), at, nil, nil)
	require.NoError(t, err)
	require.Equal(t, ledger.TransactionsPosition{}, at, "no records are nothing to write")
	require.Equal(t, "0", h.Row("SELECT count(*) FROM ledger.stream_checkpoints"))
	h.append("z", "m", "m/2")
	require.Equal(t, "1:z* 2:m 3:m", h.window())
	h.append("c", "d")
	h.append("d") // equal
	require.Equal(t, "1:z* 2:m 3:m 4:c* 5:d 6:d", h.window())
	h.append("z", "c")
	require.Equal(t, "1:z 2:m 3:m 4:c 5:d 6:d 7:z 8:c", h.window())
	require.Equal(t, "c", h.checkpoint(), "that of the newest record")
	require.Equal(t, []string{"1:z", "2:m", "3:m/2", "4:c", "5:d", "6:d", "7:z", "8:c"}, h.stored())
	require.EqualValues(t, 8, h.at.LastSeq)
}

// The update id is what stands in an event id between # and the last colon, which only digits follow.
func TestHistoryUpdateIDs(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	want := map[string]string{
		"#1220aa:0": "1220aa", "#a:b:17": "a:b", "#a::3": "a:", "#é:3": "é", "#::1": ":", "##:1": "#",
		"1220aa:0": "", "#1220aa": "", "#:3": "", "#a:": "", "#a:3:": "", "#a:3x": "", "#a:-3": "", "#": "", ":1": "", "#12": "", "é": "",
	}
	h.append(slices.Sorted(maps.Keys(want))...)
	for id, update := range want {
		require.Equal(t, update, h.Row("SELECT coalesce(update_id, '') FROM ledger.transactions WHERE event_id = $1", id), id)
	}
}

// A database belongs to one network.
func TestHistoryNetwork(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	s, ctx := h.l.store, t.Context()
	require.NoError(t, s.CheckNetwork(ctx, "dso::1"))
	require.NoError(t, h.l.RecordNetwork(ctx, ""))
	require.Equal(t, "0", h.Row("SELECT count(*) FROM indexer.network"))
	for range 2 {
		require.NoError(t, h.l.RecordNetwork(ctx, "dso::1"))
		require.NoError(t, s.CheckNetwork(ctx, "dso::1"))
	}
	require.NoError(t, s.CheckNetwork(ctx, ""), "a service that does not tell")
	require.NoError(t, h.l.RecordNetwork(ctx, ""))
	for _, err := range []error{s.CheckNetwork(ctx, "dso::2"), h.l.RecordNetwork(ctx, "dso::2")} {
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, "dso::1")
		require.Contains(t, problem.What, "dso::2")
		require.Contains(t, problem.Do, "--scan-url")
	}
	require.Equal(t, "dso::1", h.Row("SELECT network_id FROM indexer.network"))
}

func TestHistoryStatus(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	status := func() Status {
		t.Helper()
		status, err := d.store().Status(t.Context())
		require.NoError(t, err)
		return status
	}
	require.Nil(t, status().Transactions)
	require.Equal(t, Leadership{}, status().TransactionsLeader)

	h := &testHistory{testDB: d, l: d.leadTransactions(d.store())}
	require.Nil(t, status().Transactions)
	require.Equal(t, "test", status().TransactionsLeader.Holder)
	require.Equal(t, h.l.Epoch(), status().TransactionsLeader.Epoch)
	require.Equal(t, Leadership{}, status().Leader)

	h.append("a", "b", "b")
	got := *status().Transactions
	require.Equal(t, d.Row("SELECT extract(epoch FROM updated_at)::text FROM ledger.stream_checkpoints"), fmt.Sprintf("%d.%06d", got.UpdatedAt.Unix(), got.UpdatedAt.Nanosecond()/1000))
	got.UpdatedAt = time.Time{}
	require.Equal(t, TransactionsStatus{Records: 3, Cursor: "b", NewestRecord: got.NewestRecord}, got)
	require.True(t, got.NewestRecord.Equal(storetest.Time("2025-01-02T03:04:05Z").Time))

	require.NoError(t, h.l.RecordNetwork(t.Context(), "dso::1"))
	later := storetest.Tap("later")
	later.Date = storetest.Time("2025-02-02T03:04:05Z")
	unknown := ledger.Record{EventID: "new", Kind: ledger.RecordUnknown, Raw: ledger.JSON(`{}`)}
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, []ledger.Record{later, unknown}))
	got = *status().Transactions
	require.Equal(t, TransactionsStatus{
		NetworkID: "dso::1", Records: 5, Cursor: "new", NewestRecord: got.NewestRecord, UpdatedAt: got.UpdatedAt, Unknown: 1,
	}, got)
	require.True(t, got.NewestRecord.Equal(later.Date.Time))

	h.moved(h.l.ClearTransactions(t.Context(), h.at))
	got = *status().Transactions
	require.Equal(t, TransactionsStatus{NetworkID: "dso::1", Rereading: true, UpdatedAt: got.UpdatedAt}, got)
}

// What does not fit the service any more is cleared, with all that follows from it, and read again from seq 1. Readers
// are told, a reader's snapshot outlives it, and what was verified of it says nothing of what comes.
func TestTheHistoryIsClearedAsAWhole(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	rereading := func() string {
		return h.Row("SELECT rereading FROM ledger.stream_checkpoints WHERE stream = 'transactions'")
	}
	page, err := ledger.DecodeTransactions([]byte(storetest.TransactionsPage))
	require.NoError(t, err)
	h.appendRecords(page...)
	h.append("a")
	err = Audit.Stored(h.l.store).SealRecords(t.Context(), h.l.Leader, 0, page)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(len(page)), h.Row("SELECT ledger.verified_seq()"))
	require.Equal(t, "false", rereading())
	tx, err := h.Connect().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	count := func() (n int) {
		require.NoError(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM ledger.transactions").Scan(&n))
		return n
	}
	require.Equal(t, len(page)+1, count())

	before := h.at
	h.Exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''57P01''; END'; " +
		"CREATE TRIGGER refused BEFORE DELETE ON indexer.verifications EXECUTE FUNCTION refuse()")
	at, err := h.l.ClearTransactions(t.Context(), h.at)
	require.Error(t, err)
	require.Equal(t, before, at)
	require.Equal(t, fmt.Sprint(len(page)+1), h.Row("SELECT count(*) FROM ledger.transactions"), "all or nothing")
	h.Exec("DROP TRIGGER refused ON indexer.verifications")

	h.moved(h.l.ClearTransactions(t.Context(), h.at))
	require.Equal(t, len(page)+1, count())
	require.NoError(t, tx.Rollback(t.Context()))
	for _, table := range historyTables {
		require.Equal(t, "0", h.Row("SELECT count(*) FROM indexer."+table), table)
	}
	require.Equal(t, "none", h.checkpoint())
	require.Equal(t, "true", rereading())
	require.Equal(t, "0", h.Row("SELECT ledger.verified_seq()"))
	require.Empty(t, h.Rows("SELECT FROM ledger.verifications"))

	h.append("b", "a")
	require.Equal(t, []string{"1:b", "2:a"}, h.stored())
	require.Equal(t, "true", rereading())
	h.moved(h.l.CompleteTransactions(t.Context(), h.at))
	require.Equal(t, "false", rereading())
	require.Equal(t, "a", h.checkpoint(), "where reading goes on")
	for ids, want := range map[string]bool{"": true, "a": true, "a b": true, "a c": false} {
		stored, err := h.l.StoredTransactions(t.Context(), strings.Fields(ids))
		require.NoError(t, err)
		require.Equal(t, want, stored, ids)
	}
}

// What is searched by event id or update id is found by index, and what does not ask for one does not pay for it.
func TestHistoryViewsReadWhatTheyNeed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	h.append(numbered("n", 1000)...)
	for _, view := range []string{"transfers", "transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions", "unknown_transactions"} {
		require.NotContains(t, h.plan("SELECT count(*) FROM ledger."+view), "on transactions t", view)
		h.Exec("SET enable_seqscan = off")
		require.Contains(t, h.plan("SELECT * FROM ledger."+view+" WHERE event_id = 'x'"), "transactions_event_id", view)
		h.Exec("RESET enable_seqscan")
	}
	h.Exec("SET enable_seqscan = off")
	require.Contains(t, h.plan("SELECT x.* FROM ledger.transactions t JOIN ledger.transfers x USING (seq) WHERE t.update_id = 'x'"), "transactions_update_id")
	h.Exec("RESET enable_seqscan")
	plan := h.plan("SELECT count(*) FROM ledger.transactions WHERE kind = 'tap'")
	require.NotContains(t, plan, "synchronizers")
}

// An analyst's transaction sees each page of the history as a whole: its records, its checkpoint, and what is derived.
func TestHistoryIsReadAsAWhole(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	tx, err := h.Conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	require.Equal(t, []string{"1:a"}, h.stored())
	_, err = h.l.AppendTransactions(t.Context(), h.at, nil, storetest.RecordsOf([]string{"b"}))
	require.NoError(t, err)
	require.Equal(t, []string{"1:a"}, h.stored())
	require.Equal(t, "a", h.checkpoint())
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, "b", h.checkpoint())
}
