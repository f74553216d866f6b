package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// storedPage is a database that holds records with rows in every table of the history, exact values among them.
func storedPage(t *testing.T) (*testHistory, []ledger.Record) {
	t.Helper()
	h := newHistory(t)
	page, err := ledger.DecodeTransactions([]byte(storetest.TransactionsPage))
	require.NoError(t, err)
	at, err := h.l.AppendTransactions(t.Context(), h.at, nil, page)
	require.NoError(t, err)
	h.at = at
	return h, page
}

// Whichever column of whichever row of a record is altered: exactly that is named.
func TestCompareRecordsNamesWhatIsAltered(t *testing.T) {
	t.Parallel()
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	h, records := storedPage(t)
	s := h.l.store
	compare := func(statement string) (list []Difference) {
		t.Helper()
		tx, err := h.Conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, s.compareRecords(t.Context(), tx, 0, records, storetest.Collect(&list)))
		require.NoError(t, tx.Rollback(t.Context()))
		return list
	}
	require.Empty(t, compare("SELECT"))
	types := map[string]string{"numeric": "coalesce(%s, 0) + 0.0000000000000000000000000000001"}
	for name, spoil := range spoils {
		types[name] = spoil
	}
	random := rand.New(rand.NewPCG(5, 6))
	columns := 0
	for _, row := range h.Rows(`SELECT relname, attname, typname FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid
		WHERE relnamespace = 'indexer'::regnamespace AND relname = ANY ($1) AND attnum > 0 AND NOT attisdropped ORDER BY 1, attnum`, tables.Names(tables.In(tables.Records))) {
		field := strings.Fields(row)
		relation, column := field[0], field[1]
		if slices.Contains(tables.Get(tables.Records, relation).Key, column) || column == "stream" {
			continue
		}
		columns++
		places := h.Rows("SELECT ctid::text, seq FROM indexer." + relation + " ORDER BY 1")
		place, seq, _ := strings.Cut(places[random.IntN(len(places))], " ")
		list := compare(fmt.Sprintf("UPDATE indexer.%s SET %s = %s WHERE ctid = '%s'", relation, column, fmt.Sprintf(types[field[2]], column), place))
		require.Len(t, list, 1, "%s.%s: %s", relation, column, list)
		require.Equal(t, Altered, list[0].Kind)
		require.Equal(t, relation+"."+column, list[0].Relation+"."+list[0].Column)
		require.Equal(t, seq, fmt.Sprint(list[0].Seq))
		require.NotEqual(t, list[0].Wanted, list[0].Stored)
	}
	require.Greater(t, columns, 50)
}

// A row that is gone, one too many, and one that is another record's now.
func TestCompareRecordsNamesMissingAndExtraRows(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h, records := storedPage(t)
	s := h.l.store
	spoilt := func(statements ...string) (list []Difference) {
		t.Helper()
		tx, err := h.Conn.Begin(t.Context())
		require.NoError(t, err)
		for _, statement := range statements {
			changed, err := tx.Exec(t.Context(), statement)
			require.NoError(t, err, statement)
			require.Positive(t, changed.RowsAffected(), statement)
		}
		require.NoError(t, s.compareRecords(t.Context(), tx, 0, records, storetest.Collect(&list)))
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
	require.Equal(t, []string{"extra transfer_receivers", "extra transfer_receivers"}, kinds(spoilt(
		"INSERT INTO indexer.transfer_receivers SELECT seq, ordinal + 10, party, amount, receiver_fee, extra FROM indexer.transfer_receivers WHERE seq = 1")))
	require.Empty(t, spoilt("UPDATE indexer.transfers SET holding_fees = trim_scale(holding_fees) WHERE seq = 1"), "the same number")
	// What a record lacks as a whole is told once.
	var lost []string
	for _, relation := range tables.Names(tables.In(tables.Records)) {
		lost = append(lost, "DELETE FROM indexer."+relation+" WHERE seq = 2")
	}
	lost = slices.DeleteFunc(lost, func(sql string) bool { return h.Row(strings.Replace(sql, "DELETE", "SELECT count(*)", 1)) == "0" })
	require.Equal(t, []string{"missing transactions"}, kinds(spoilt(lost...)))
}

// What is claimed follows from the records, however they were appended, also after they were cleared.
func TestPositionFollowsFromTheRecords(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := newHistory(t)
	equal := func() {
		t.Helper()
		var list []Difference
		require.NoError(t, h.l.store.ComparePosition(t.Context(), func(string) {}, storetest.Collect(&list)))
		require.Empty(t, list)
		require.NoError(t, h.l.store.CompareBalances(t.Context(), func(string) {}, storetest.Collect(&list)))
		require.Empty(t, list)
	}
	equal()
	h.append("a", "b", "b")
	equal()
	h.append(repeated("d", 199)...)
	h.append("n")
	equal()
	h.moved(h.l.ClearTransactions(t.Context(), h.at))
	equal()
	h.append("b", "m", "a")
	equal()
	h.moved(h.l.CompleteTransactions(t.Context(), h.at))
	equal()
	h.append("o", "p")
	equal()
}

func repeated(text string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = text
	}
	return list
}
