package audit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What was written ahead is nothing that differs; what lies behind the watermark and is not covered is. Neither takes
// repairs for the watermark's, and a reset removes both.
func TestCompareWithWhatIsAhead(t *testing.T) {
	t.Parallel()
	brief.Long(t, "tries many random histories")
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)))
	i := &itself{testDB: d, store: l.store, scope: storetest.Scope}
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(4)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(8)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(20)))
	require.Empty(t, i.differences(nil))
	require.Empty(t, i.differences(new(ledger.Offset(4))), "what was written since the end was asked for")
	require.Empty(t, i.differences(new(ledger.Offset(6))))
	covered := []string{"0 4", "4 8", "8 12", "20 24"}
	facts := d.Facts(0, 100)

	r := i.repairer()
	for _, damage := range []string{
		"INSERT INTO indexer.updates (ledger_offset, kind) VALUES (15, 'unknown')",
		"INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref) VALUES (15, 0, 'transaction', 'c', 1)",
	} {
		d.Exec(damage)
		require.NotEmpty(t, i.differences(nil), damage)
		require.Empty(t, i.repaired(r, nil), damage)
		require.Empty(t, i.differences(nil), damage)
		require.Equal(t, covered, d.Coverage(), damage)
		require.Equal(t, "4", d.Watermark(), damage)
		require.Equal(t, facts, d.Facts(0, 100), damage)
	}
	r.Close()
	l.Close()
	l = d.leadUpdates(d.store())
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 4, 8))
	require.Empty(t, i.differences(nil))

	_, err := l.Reset(ctx, 6)
	require.NoError(t, err)
	require.Equal(t, []string{"0 6"}, d.Coverage())
	require.Empty(t, d.Facts(6, 100))
	require.Empty(t, i.differences(nil))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, []ledger.Page{{From: 6, To: 8}}), "nothing is remembered of what was there")
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 6, 8))
	require.Empty(t, i.differences(nil))
}
