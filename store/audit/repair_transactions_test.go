package audit

import (
	"fmt"
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

// Records of a service are read from it again, whatever was pruned.
func TestRecordsOfAServiceAreReadAgain(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d, l, _ := sealedUpdates(t)
	h := &testHistory{testDB: d, l: d.leadTransactions(l.store)}
	h.append("a", "b")
	require.NoError(t, h.l.RecordNetwork(t.Context(), "network::1"))
	require.NoError(t, d.leadBackfill(l.store).Prune(t.Context(), 5))
	require.NoError(t, d.repairs(l.store).RestartTransactions(t.Context()))
	require.Zero(t, h.standing().Records())
}

// prunedHistory has the records of ten updates, one each, whose first five were pruned since.
func prunedHistory(t *testing.T) *testHistory {
	t.Helper()
	d := newDatabase(t)
	l := d.started()
	for at := ledger.Offset(1); at <= 10; at++ {
		u := storetest.NewUpdate(at, "sync::1")
		e := storetest.Exercise(0, "instruction", false, nil)
		e.TemplateID, e.PackageName, e.Choice = "splice:Splice.AmuletTransferInstruction:AmuletTransferInstruction", "splice-amulet", "TransferInstruction_Reject"
		u.Exercised = []ledger.ExercisedEvent{e}
		require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: at - 1, To: at, Updates: []ledger.Update{u}}}))
	}
	updates, _, err := l.store.MovedUpdates(t.Context(), 0, 100)
	require.NoError(t, err)
	var records []ledger.Transaction
	for i := range updates {
		records = append(records, updates[i].Records()...)
	}
	h := &testHistory{testDB: d, l: d.leadTransactions(l.store)}
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, storetest.BatchOf(records)))
	require.EqualValues(t, 10, h.at.Records())
	require.NoError(t, h.l.RecordNetwork(t.Context(), "participant::1"))
	require.NoError(t, d.leadBackfill(l.store).Prune(t.Context(), 5))
	return h
}

func (h *testHistory) standing() *ledger.TransactionsPosition {
	h.T.Helper()
	at, err := h.l.store.TransactionsHead(h.T.Context())
	require.NoError(h.T, err)
	return &at
}

// A repair carries the records of pruned updates, and no others, whatever is damaged.
func TestARepairCarriesRecordsOfPrunedUpdates(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := prunedHistory(t)
	want := h.Rows("SELECT event_id FROM indexer.transactions WHERE seq <= 5 ORDER BY seq")
	for _, damage := range []string{
		"UPDATE indexer.transactions SET rules = NULL",
		fmt.Sprint("UPDATE indexer.transactions SET rules = ", ledger.RulesVersion, " WHERE seq > 1"),
		"CLUSTER indexer.transactions USING transactions_pkey", // the first that a scan meets
		"DELETE FROM indexer.transactions WHERE seq = 6",
		"UPDATE indexer.transactions SET rules = NULL WHERE seq = 7",
		"UPDATE indexer.transactions SET event_id = '#other:0' WHERE seq = 8",
	} {
		h.Exec(damage)
		derivable, err := h.l.store.Derivable(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 5, derivable, damage)
	}
	require.NoError(t, h.repairs(h.l.store).RestartTransactions(t.Context()))
	at := h.standing()
	require.EqualValues(t, 5, at.Records())
	require.Equal(t, want, h.Rows("SELECT event_id FROM indexer.transactions WHERE seq > $1 ORDER BY seq", at.ReadAfter))
}

// What is lost of them can't be derived again: a repair says so, and changes nothing.
func TestLostRecordsOfPrunedUpdatesAreTold(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	h := prunedHistory(t)
	h.Exec("DELETE FROM indexer.transactions WHERE seq = 3")
	before := h.standing()
	var lost *ledger.Problem
	require.ErrorAs(t, h.repairs(h.l.store).RestartTransactions(t.Context()), &lost)
	require.Contains(t, lost.What, "1 of the first 5 records")
	require.Equal(t, before, h.standing())
}
