package store

import (
	"fmt"
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

// A trigger, of which an operator may have one on our tables, can leave rows out without an error. What it takes away, COPY does not
// count: then nothing is stored.
func TestRowsThatTheServerLeavesOutAreMissed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	d.exec("CREATE FUNCTION public.leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
	for _, c := range []struct {
		table, when string
		sent, took  int
	}{
		{"created", "NEW.node_id = 1", 3, 2}, {"updates", "true", 4, 0}, {"unknown_elements", "true", 1, 0}, {"exact_payloads", "true", 1, 0},
		{"active_contracts", "NEW.contract_id = 'arrived'", 2, 1}, {"lifetimes", "true", 1, 0},
	} {
		d.exec("CREATE TRIGGER leave_out BEFORE INSERT ON indexer." + c.table + " FOR EACH ROW WHEN (" + c.when + ") EXECUTE FUNCTION public.leave_out()")
		require.ErrorContains(t, l.Append(ctx, testScope, everyKind(0)),
			fmt.Sprintf("copy into %s: sent %d rows, the server took %d", c.table, c.sent, c.took))
		require.Empty(t, d.facts(0, 4), c.table)
		require.Empty(t, d.coverage())
		d.exec("DROP TRIGGER leave_out ON indexer." + c.table)
	}
	require.NoError(t, l.Append(ctx, testScope, everyKind(0)))
}
