package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A repair of a page seals its windows with what is stored then, which need not be what it was to be.
func TestResealTellsWhatIsStillDifferent(t *testing.T) {
	t.Parallel()
	d, l, page := sealedUpdates(t, [2]ledger.Offset{0, 4}, [2]ledger.Offset{4, 8}, [2]ledger.Offset{8, 10})
	d.Exec(`CREATE FUNCTION indexer.spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.payload = '{}'; RETURN NEW; END $$`)
	d.Exec("CREATE TRIGGER spoil BEFORE INSERT ON indexer.created FOR EACH ROW EXECUTE FUNCTION indexer.spoil()")
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 6")
	require.NoError(t, d.repairs(l.store).RepairUpdates(t.Context(), storetest.Scope, page(0, 9)))
	require.Equal(t, []string{"0 4 equal 0 true false", "4 8 different 1 true false", "8 10 equal 0 true true"}, d.windows())
}
