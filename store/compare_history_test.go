package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// storedPage is a database that holds records with rows in every table of the history, exact values among them.
func storedPage(t *testing.T) (*testHistory, []ledger.NumberedRecord) {
	t.Helper()
	h := newHistory(t)
	page, err := ledger.DecodeTransactions([]byte(historyPage))
	require.NoError(t, err)
	at, err := h.l.AppendTransactions(t.Context(), h.at, page)
	require.NoError(t, err)
	h.at = at
	records := make([]ledger.NumberedRecord, len(page))
	for i := range page {
		records[i] = ledger.NumberedRecord{Seq: int64(i) + 1, Record: &page[i]}
	}
	return h, records
}

// Whichever column of whichever row of a record is altered: exactly that is named, and writing the record again repairs it.
func TestCompareRecordsNamesWhatIsAltered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("alters columns and rows one after the other, and compares each time")
	}
	h, records := storedPage(t)
	s := h.l.store
	r, ok, err := s.Repairer(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer r.Close()
	compare := func() (list []ledger.Difference) {
		t.Helper()
		require.NoError(t, s.CompareRecords(t.Context(), records, collect(&list)))
		return list
	}
	require.Empty(t, compare())
	types := map[string]string{"numeric": "coalesce(%s, 0) + 0.0000000000000000000000000000001"}
	for name, spoil := range spoils {
		types[name] = spoil
	}
	random := rand.New(rand.NewPCG(5, 6))
	columns := 0
	for _, row := range h.rows(`SELECT relname, attname, typname FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid
		WHERE relnamespace = 'indexer'::regnamespace AND relname = ANY ($1) AND attnum > 0 AND NOT attisdropped ORDER BY 1, attnum`, tables.Names(tables.In(tables.Records))) {
		field := strings.Fields(row)
		relation, column := field[0], field[1]
		if slices.Contains(tables.Get(tables.Records, relation).Key, column) || column == "stream" {
			continue
		}
		columns++
		places := h.rows("SELECT ctid::text, seq FROM indexer." + relation + " ORDER BY 1")
		place, seq, _ := strings.Cut(places[random.IntN(len(places))], " ")
		h.exec(fmt.Sprintf("UPDATE indexer.%s SET %s = %s WHERE ctid = '%s'", relation, column, fmt.Sprintf(types[field[2]], column), place))
		list := compare()
		require.Len(t, list, 1, "%s.%s: %s", relation, column, list)
		require.Equal(t, ledger.Altered, list[0].Kind)
		require.Equal(t, relation+"."+column, list[0].Relation+"."+list[0].Column)
		require.Equal(t, seq, fmt.Sprint(list[0].Seq))
		require.NotEqual(t, list[0].Wanted, list[0].Stored)
		require.NoError(t, r.RewriteRecords(t.Context(), records[list[0].Seq-1:list[0].Seq]))
		require.Empty(t, compare(), "%s.%s", relation, column)
	}
	require.Greater(t, columns, 50)
}

// A row that is gone, one too many, and one that is another record's now.
func TestCompareRecordsNamesMissingAndExtraRows(t *testing.T) {
	t.Parallel()
	h, records := storedPage(t)
	s := h.l.store
	spoilt := func(statements ...string) (list []ledger.Difference) {
		t.Helper()
		tx, err := h.conn.Begin(t.Context())
		require.NoError(t, err)
		for _, statement := range statements {
			changed, err := tx.Exec(t.Context(), statement)
			require.NoError(t, err, statement)
			require.Positive(t, changed.RowsAffected(), statement)
		}
		require.NoError(t, s.compareRecords(t.Context(), tx, records, collect(&list)))
		require.NoError(t, tx.Rollback(t.Context()))
		return list
	}
	for _, relation := range tables.Names(tables.In(tables.Records)) {
		table := "indexer." + relation
		one := fmt.Sprintf("ctid = (SELECT max(ctid) FROM %s)", table)
		require.Equal(t, []string{"missing " + relation}, kinds(spoilt("DELETE FROM "+table+" WHERE "+one)))
		require.Equal(t, []string{"missing " + relation}, kinds(spoilt("UPDATE "+table+" SET seq = 1000 WHERE "+one)))
	}
	require.Equal(t, []string{"extra mints"}, kinds(spoilt("INSERT INTO indexer.mints SELECT 1, date, round, owner, amount, extra FROM indexer.mints LIMIT 1")))
	require.Equal(t, []string{"extra record_exact_payloads"}, kinds(spoilt("INSERT INTO indexer.record_exact_payloads SELECT * FROM indexer.record_exact_payloads LIMIT 1")))
	require.Equal(t, []string{"extra transfer_receivers", "extra transfer_receivers"}, kinds(spoilt(
		"INSERT INTO indexer.transfer_receivers SELECT seq, ordinal + 10, party, amount, receiver_fee, extra FROM indexer.transfer_receivers WHERE seq = 1")))
	require.Equal(t, []string{"altered transfers"}, kinds(spoilt("UPDATE indexer.transfers SET holding_fees = trim_scale(holding_fees) WHERE seq = 1")))
	// What a record lacks as a whole is told once.
	var lost []string
	for _, relation := range tables.Names(tables.In(tables.Records)) {
		lost = append(lost, "DELETE FROM indexer."+relation+" WHERE seq = 2")
	}
	lost = slices.DeleteFunc(lost, func(sql string) bool { return h.row(strings.Replace(sql, "DELETE", "SELECT count(*)", 1)) == "0" })
	require.Equal(t, []string{"missing transactions"}, kinds(spoilt(lost...)))
}

// The records of a range are recognised by their content first, and by their places then.
func TestCompareRecordsOfARange(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "b", "c", "d", "e")
	compare := func(from, to int64, statements []string, texts ...string) (all bool, list []string) {
		t.Helper()
		tx, err := h.conn.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
		for _, statement := range statements {
			_, err := tx.Exec(t.Context(), statement)
			require.NoError(t, err)
		}
		var differences []ledger.Difference
		all, err = h.l.store.compareWindow(t.Context(), tx, from, to, recordsOf(texts), collect(&differences))
		require.NoError(t, err)
		for _, d := range differences {
			list = append(list, d.String())
		}
		return all, list
	}
	all, list := compare(1, 5, nil, "b", "b", "c", "d")
	require.True(t, all)
	require.Empty(t, list)
	all, list = compare(1, 5, nil, "b", "c", "b", "d")
	require.True(t, all, "the order is told by a comparison of the whole history")
	require.Empty(t, list)
	all, list = compare(1, 5, nil, "b", "x", "c", "d")
	require.True(t, all)
	require.Contains(t, list, `transactions, seq 3: event_id is "b", and "x" in the ledger`)
	all, list = compare(1, 5, []string{"DELETE FROM indexer.transactions WHERE seq = 4", "DELETE FROM indexer.taps WHERE seq = 4"}, "b", "b", "c", "d")
	require.False(t, all)
	require.Equal(t, []string{"transactions, seq 4: the row is not stored"}, list)
	all, list = compare(1, 5, nil, "b", "b", "c")
	require.False(t, all)
	require.Equal(t, []string{"transactions, seq 5: the row is stored, and the ledger has none"}, list)
	all, _ = compare(1, 5, nil, "b", "b", "c", "d", "e")
	require.False(t, all, "a record that is not of the range")
}

// What a window should be follows from the records, however they were appended.
func TestPositionFollowsFromTheRecords(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	equal := func() {
		t.Helper()
		var list []ledger.Difference
		require.NoError(t, h.l.store.ComparePosition(t.Context(), func(string) {}, collect(&list)))
		require.Empty(t, list)
		require.NoError(t, h.l.store.CompareBalances(t.Context(), func(string) {}, collect(&list)))
		require.Empty(t, list)
	}
	equal()
	h.append("a", "b", "b")
	equal()
	h.append(numbered("n", 250)...)
	equal()
	h.append(repeated("d", 199)...)
	equal()
	h.append("d", "d", "d")
	equal()
	h.append("n249") // what came before is looked up
	equal()
	h.append(repeated("d", 795)...)
	equal()
	h.append("d") // no unique id is left
	equal()
	h.append("new")
	equal()
	at, err := h.l.RereadHistory(t.Context(), h.at)
	h.moved(at, err)
	equal()
	h.append("b", "m", "a")
	equal()
	at, _, err = h.l.FinishReread(t.Context(), h.at)
	h.moved(at, err)
	equal()
	h.append("o", "p")
	equal()
}

// A writer goes on after a repair once it has read its position again.
func TestRepairOfTheHistoryMovesThePosition(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c")
	r, ok, err := h.l.store.Repairer(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer r.Close()
	record := tap("b")
	require.NoError(t, r.RewriteRecords(t.Context(), []ledger.NumberedRecord{{Seq: 2, Record: &record}}))
	_, err = h.l.AppendTransactions(t.Context(), h.at, recordsOf([]string{"d"}))
	require.ErrorIs(t, err, ErrPositionMoved)
	h.at, err = h.l.HistoryPosition(t.Context())
	require.NoError(t, err)
	h.append("d")
	require.NoError(t, r.RemoveRecords(t.Context(), []int64{2}))
	require.NoError(t, r.RepairPosition(t.Context(), func(string) {}))
	require.NoError(t, r.RepairBalances(t.Context(), func(string) {}))
	h.at, err = h.l.HistoryPosition(t.Context())
	require.NoError(t, err)
	h.append("e")
	require.Equal(t, []string{"1:a", "2:c", "3:d", "4:e"}, h.stored())
	require.Equal(t, "e", h.checkpoint())
	var list []ledger.Difference
	require.NoError(t, h.l.store.ComparePosition(t.Context(), func(string) {}, collect(&list)))
	require.Empty(t, list)
}
