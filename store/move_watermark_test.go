package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/storetest"
)

// A write that commits while the watermark is moved over its range was not there when the events were read back: the
// step would lack them, though all is covered in the end.
func TestAWriteThatCommitsMeanwhileIsNotMovedOver(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	waiting := func(like string) string {
		return "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ILIKE '" + like + "')"
	}
	one := created("late", 4, 5)
	one[0].Updates[0].Unknown = []ledger.UnknownElement{{Kind: "Novelty", Raw: ledger.JSON(`{}`)}}
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(0)))
	l.pending = active.NewPending() // as another process would

	beforeCommit := d.Begin("LOCK TABLE indexer.unknown_elements IN SHARE MODE")
	wrote := make(chan error, 1)
	go func() { wrote <- l.WriteAhead(ctx, storetest.Scope, one) }()
	d.WaitFor(waiting("copy%unknown_elements%"))
	beforeMove := d.Begin("SELECT FROM indexer.checkpoints FOR UPDATE")
	projected := make(chan error, 1)
	go func() { projected <- l.MoveWatermark(ctx, storetest.Scope, 0, 5) }()
	var refused error
	require.Eventually(t, func() bool { // it refuses, or has read the events and waits
		select {
		case refused = <-projected:
			return true
		default:
			return d.Row(waiting("%checkpoints%")) == "true"
		}
	}, storetest.WaitLimit, storetest.WaitTick)
	require.NoError(t, beforeCommit.Rollback(ctx))
	require.NoError(t, <-wrote)
	require.NoError(t, beforeMove.Rollback(ctx))
	if refused == nil {
		refused = <-projected
	}
	require.Empty(t, d.differences(l.store))
	require.ErrorIs(t, refused, errNotCovered)
	require.Equal(t, "0", d.Watermark())

	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 0, 5))
	require.Empty(t, d.differences(l.store))
	require.Equal(t, []string{"arrived", "contract-0", "late-5"}, d.Rows("SELECT contract_id FROM indexer.active_contracts ORDER BY 1"))
}
