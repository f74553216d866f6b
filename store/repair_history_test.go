package store

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// When records are removed the payments of parties move with those behind them, in the same transaction.
func TestPaymentsMoveWithTheirRecords(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	first := payment("#first", "01:00:00", "alice", nil, receiver("bob", "1", nil))
	h.appendRecords(first, first, first, payment("#second", "02:00:00", "alice", nil, receiver("bob", "2", nil)),
		payment("#third", "03:00:00", "bob", nil, receiver("carol", "3", nil)))
	require.NoError(t, h.repairs(h.l.store).RemoveRecords(t.Context(), []int64{3, 1}))
	require.Equal(t, []string{"#first", "#second", "#third"}, h.rows("SELECT event_id FROM indexer.transactions ORDER BY seq"))
	require.Equal(t, []string{"#third 3 3", "#second 2 2", "#first 1 1"},
		h.rows("SELECT event_id, seq, amount::text FROM ledger.party_transfers WHERE party = 'bob'"))
	var list []ledger.Difference
	require.NoError(t, h.l.store.CompareBalances(t.Context(), func(string) {}, collect(&list)))
	require.Empty(t, slices.DeleteFunc(list, func(d ledger.Difference) bool { return d.Relation != "party_transfers" }))
}

// A repair of a page seals its windows with what is stored then, which need not be what it was to be.
func TestResealTellsWhatIsStillDifferent(t *testing.T) {
	t.Parallel()
	d, l, page := sealedUpdates(t, [2]ledger.Offset{0, 4}, [2]ledger.Offset{4, 8}, [2]ledger.Offset{8, 10})
	d.exec(`CREATE FUNCTION indexer.spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.payload = '{}'; RETURN NEW; END $$`)
	d.exec("CREATE TRIGGER spoil BEFORE INSERT ON indexer.created FOR EACH ROW EXECUTE FUNCTION indexer.spoil()")
	d.exec("DELETE FROM indexer.created WHERE ledger_offset = 6")
	require.NoError(t, d.repairs(l.store).RepairUpdates(t.Context(), testScope, page(0, 9)))
	require.Equal(t, []string{"0 4 equal 0 true false", "4 8 different 1 true false", "8 10 equal 0 true true"}, d.windows())
}
