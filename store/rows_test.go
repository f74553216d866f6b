package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/store/internal/storetest"
)

// A trigger, of which an operator may have one on our tables, can leave rows out without an error. What it takes away,
// COPY does not count: then nothing is stored.
func TestRowsThatTheServerLeavesOutAreMissed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	d.Exec("CREATE FUNCTION public.leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
	for _, c := range []struct {
		table, when string
		sent, took  int
	}{
		{"created", "NEW.node_id = 1", 3, 2}, {"updates", "true", 4, 0}, {"unknown_elements", "true", 1, 0},
		{"active_contracts", "NEW.contract_id = 'arrived'", 2, 1}, {"lifetimes", "true", 1, 0},
	} {
		d.Exec("CREATE TRIGGER leave_out BEFORE INSERT ON indexer." + c.table + " FOR EACH ROW WHEN (" + c.when + ") EXECUTE FUNCTION public.leave_out()")
		require.ErrorContains(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)),
			fmt.Sprintf("copy into %s: sent %d rows, the server took %d", c.table, c.sent, c.took))
		require.Empty(t, d.Facts(0, 4), c.table)
		require.Empty(t, d.Coverage())
		d.Exec("DROP TRIGGER leave_out ON indexer." + c.table)
	}
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)))
}
