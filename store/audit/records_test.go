package audit

import (
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

// A number with other digits is the same number, and what a record lacks as a whole is told once.
func TestCompareRecords(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h, records := storedPage(t)
	spoilt := func(statements ...string) (list []Difference) {
		t.Helper()
		tx := h.spoil(statements...)
		require.NoError(t, h.l.store.compareRecords(t.Context(), tx, 0, records, storetest.Collect(&list)))
		require.NoError(t, tx.Rollback(t.Context()))
		return list
	}
	require.Empty(t, spoilt("UPDATE indexer.transfers SET holding_fees = trim_scale(holding_fees) WHERE seq = 1"))
	require.Equal(t, []string{"extra mints"}, kinds(spoilt("INSERT INTO indexer.mints SELECT 1, date, round, owner, amount, extra FROM indexer.mints LIMIT 1")))
	var lost []string
	for _, relation := range tables.Names(tables.In(tables.Records)) {
		if h.Row("SELECT count(*) FROM indexer."+relation+" WHERE seq = 2") != "0" {
			lost = append(lost, "DELETE FROM indexer."+relation+" WHERE seq = 2")
		}
	}
	require.Greater(t, len(lost), 1)
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
