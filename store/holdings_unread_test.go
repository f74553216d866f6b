package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// An amount that can't be read is unknown, with what is written there, and so is each sum over it; never 0.
func TestAnAmountThatCannotBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	holding := func(offset ledger.Offset, id, owner, amount string) {
		u := storetest.NewUpdate(offset, "sync::1")
		u.Created = []ledger.CreatedEvent{tokenCreation(0, id, view(storetest.HoldingV1, valueV1(owner, amount, "null")))}
		d.append(l, offset-1, u)
	}
	holding(1, "tiny", "alice", "5.000E-7")
	holding(2, "odd", "alice", "12 coins")
	holding(3, "bob's", "bob", "7")
	end := storetest.NewUpdate(4, "sync::1")
	end.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "odd")}
	d.becomeAnalyst()
	require.Equal(t, []string{"bob's 7 <nil>", "odd <nil> 12 coins", "tiny 0.0000005000 <nil>"},
		d.Rows("SELECT contract_id, amount::text, unread_amount FROM ledger.holdings ORDER BY 1"))
	const totals = "SELECT owner, amount::text, locked_amount::text, unlocked_amount::text, contracts, unread_amounts FROM "
	want := []string{"alice <nil> 0 <nil> 2 1", "bob 7 0 7 1 0"}
	require.Equal(t, want, d.Rows(totals+"ledger.holding_totals ORDER BY 1"))
	require.Equal(t, want, d.Rows(totals+"ledger.holding_totals_at(3) ORDER BY 1"))
	balance := "SELECT ledger.balance_at_offset($1, 'Token', $2)::text"
	require.Equal(t, "0.0000005000", d.Row(balance, "alice", 1))
	require.Equal(t, "<nil>", d.Row(balance, "alice", 2))
	require.Equal(t, "7", d.Row(balance, "bob", 3))
	require.Equal(t, "0", d.Row(balance, "bob", 2))
	// 0 says that a party had nothing, not that its name, or the instrument's, is misspelt.
	for _, misspelt := range []string{"'bobby', 'Token', 3", "'bob', 'Tokne', 3", "'bob', 'Token', 3, 'amdin'", "NULL, 'Token', 3"} {
		require.Equal(t, "<nil>", d.Row("SELECT ledger.balance_at_offset("+misspelt+")::text"), misspelt)
	}

	d.append(l, 3, end)
	require.Equal(t, "0.0000005000", d.Row(balance, "alice", 4), "what is not known is gone")
	require.Equal(t, []string{"1 Create 0.0000005000 0.0000005000 0", "2 Create <nil> <nil> 0", "3 Create 7 7 0", "4 Archive <nil> 0 <nil>"},
		d.Rows("SELECT ledger_offset, label, amount::text, created_amount::text, archived_amount::text FROM ledger.token_events ORDER BY 1"))
	require.Equal(t, []string{"1 0.0000005000 0.0000005000", "2 <nil> <nil>", "4 <nil> <nil>"},
		d.Rows("SELECT ledger_offset, amount::text, balance::text FROM ledger.party_statement('alice', 0, 4)"))
	require.Equal(t, []string{"4 <nil>"}, d.Rows("SELECT ledger_offset, balance::text FROM ledger.party_statement('alice', 2, 4)"))
}

// Nothing held is 0 of a party whose holdings were all pruned, and an error at an offset that is not known, whoever is
// asked for.
func TestBalancesOfAPrunedDatabase(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	created, ended := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::1")
	created.Created = []ledger.CreatedEvent{tokenCreation(0, "a", view(storetest.HoldingV1, valueV1("alice", "5", "null")))}
	ended.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "a")}
	d.append(l, 0, created, ended, storetest.NewUpdate(3, "sync::1"), storetest.NewUpdate(4, "sync::1"))
	d.prune(3)
	d.becomeAnalyst()
	balance := "SELECT ledger.balance_at_offset($1, 'Token', $2)::text"
	require.Equal(t, "0", d.Row(balance, "alice", 4))
	require.Equal(t, "<nil>", d.Row(balance, "nobody", 4))
	for _, party := range []string{"alice", "nobody"} {
		d.requireError("the active contracts are not known at offset 1", balance, party, 1)
		d.requireError("offset 5 has not been indexed yet", balance, party, 5)
	}
}
