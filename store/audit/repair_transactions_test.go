package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A repair of a page seals its windows with what is stored then, which need not be what it was to be.
func TestResealTellsWhatIsStillDifferent(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d, l, page := sealedUpdates(t, [2]ledger.Offset{0, 4}, [2]ledger.Offset{4, 8}, [2]ledger.Offset{8, 10})
	d.Exec(`CREATE FUNCTION indexer.spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.payload = '{}'; RETURN NEW; END $$`)
	d.Exec("CREATE TRIGGER spoil BEFORE INSERT ON indexer.created FOR EACH ROW EXECUTE FUNCTION indexer.spoil()")
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 6")
	require.NoError(t, d.repairs(l.store).RepairUpdates(t.Context(), storetest.Scope, page(0, 9)))
	require.Equal(t, []string{"0 4 equal 0 true false", "4 8 different 1 true false", "8 10 equal 0 true true"}, d.windows())
}

// Records that can't be derived again stay: their updates may have been pruned since it was found out that they can.
func TestRecordsOfPrunedUpdatesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d, l, _ := sealedUpdates(t)
	h := &testHistory{testDB: d, l: d.leadTransactions(l.store)}
	h.append("a", "b")
	r := d.repairs(l.store)
	back := d.leadBackfill(l.store)
	require.NoError(t, back.Prune(t.Context(), 5))
	require.NoError(t, r.RestartTransactions(t.Context()), "those of a service are read from it")
	h.at, _, _ = h.l.TransactionsPosition(t.Context())
	h.append("a", "b")
	h.moved(h.l.ShowGeneration(t.Context(), h.at))
	h.Exec("UPDATE indexer.transactions SET rules = 1")
	var refused *ledger.Problem
	require.ErrorAs(t, r.RestartTransactions(t.Context()), &refused)
	at, _, err := h.l.TransactionsPosition(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.at, at)
}
