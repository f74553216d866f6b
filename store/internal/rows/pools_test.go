package rows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// What is kept of rows that were written is bounded, and holds nothing of them.
func TestRoomOfRowsIsEmpty(t *testing.T) {
	t.Parallel()
	facts := NewFacts()
	for offset := range ledger.Offset(10) {
		u := ledger.Update{Offset: offset + 1, Kind: ledger.KindTransaction, ID: "u", SynchronizerID: new("s"),
			Created:  []ledger.CreatedEvent{{Offset: offset + 1, ContractID: "00c", TemplateID: "p:M:E", PackageName: "n"}},
			Archived: []ledger.ArchivedEvent{{NodeID: 1, ContractID: "00c", TemplateID: "p:M:E", PackageName: "n"}}}
		facts.Add(names.NewReferences(), &u)
	}
	updates, created, archived := facts.updates, facts.Created, facts.archived
	facts.Release()
	require.Equal(t, Facts{}, facts, "they can't be written again")
	for i := range updates {
		require.Zero(t, updates[i])
		require.Zero(t, created[i])
		require.Zero(t, archived[i])
	}
	records := NewRecords()
	numbered := ledger.Record{EventID: "#a:0", Kind: ledger.RecordTransfer, Transfer: &ledger.Transfer{
		Sender: ledger.Sender{Party: "alice"}, Receivers: []ledger.Receiver{{Party: "bob", Amount: "1.50"}},
		BalanceChanges: []ledger.BalanceChange{{Party: "alice", InitialAmount: "1", HoldingFeesRate: "0"}},
	}}
	records.AddAll(names.NewReferences(), nil, 0, []ledger.Record{numbered})
	records.ofParties.of(records.transfers, records.receivers)
	written := records
	records.Release()
	require.Equal(t, Records{}, records)
	for _, kept := range []any{
		written.Transactions[0], written.transfers[0], written.receivers[0], written.BalanceChanges[0], written.ofParties.rows[0],
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
