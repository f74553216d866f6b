package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// What is kept of rows that were written is bounded, and holds nothing of them.
func TestRoomOfRowsIsEmpty(t *testing.T) {
	t.Parallel()
	facts := converted(realisticUpdates(10))
	updates, created, archived := facts.updates, facts.created, facts.archived
	facts.release()
	require.Equal(t, factRows{}, *facts, "they can't be written again")
	for i := range updates {
		require.Zero(t, updates[i])
		require.Zero(t, created[i])
		require.Zero(t, archived[i])
	}
	records := newTransactionRows()
	numbered := payment("#a:0", "01:00:00", "alice", nil, receiver("bob", "1.50", nil))
	records.add(refs{}, &ledger.HistoryMark{Seq: 1}, &numbered)
	records.ofParties.of(records.transfers, records.receivers)
	written := records
	records.release()
	require.Equal(t, transactionRows{}, records)
	for _, kept := range []any{
		written.transactions[0], written.transfers[0], written.receivers[0], written.balanceChanges[0], written.ofParties.rows[0],
		written.ofParties.sorted[0], written.ofParties.once[0],
	} {
		require.Zero(t, kept)
	}
	list := []int{1, 2, 3}
	kept := emptied(list)
	require.Empty(t, kept)
	require.Same(t, &list[0], &kept[:1][0])
	require.Nil(t, emptied(make([]int, 0, mostKeptRows+1)), "a list of a large batch goes")
}
