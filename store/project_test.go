package store

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
)

// A write that commits while the watermark is moved over its range was not there when the events were read back: the step would
// lack them, though all is covered in the end.
func TestAWriteThatCommitsMeanwhileIsNotMovedOver(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	i := &itself{testDB: d, store: l.store, scope: testScope}
	begin := func(lock string) pgx.Tx {
		t.Helper()
		tx, err := d.connect().Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, lock)
		require.NoError(t, err)
		return tx
	}
	waiting := func(like string) string {
		return "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ILIKE '" + like + "')"
	}
	one := created("late", 4, 5)
	one[0].Updates[0].Unknown = []ledger.UnknownElement{{Kind: "Novelty", Raw: ledger.JSON(`{}`)}}
	require.NoError(t, l.Write(ctx, testScope, everyKind(0)))
	l.pending = active.NewPending() // as another process would

	beforeCommit := begin("LOCK TABLE indexer.unknown_elements IN SHARE MODE")
	wrote := make(chan error, 1)
	go func() { wrote <- l.Write(ctx, testScope, one) }()
	d.waitFor(waiting("copy%unknown_elements%"))
	beforeMove := begin("SELECT FROM indexer.checkpoints FOR UPDATE")
	projected := make(chan error, 1)
	go func() { projected <- l.Project(ctx, testScope, 0, 5) }()
	var refused error
	require.Eventually(t, func() bool { // it refuses, or has read the events and waits
		select {
		case refused = <-projected:
			return true
		default:
			return d.row(waiting("%checkpoints%")) == "true"
		}
	}, waitLimit, waitTick)
	require.NoError(t, beforeCommit.Rollback(ctx))
	require.NoError(t, <-wrote)
	require.NoError(t, beforeMove.Rollback(ctx))
	if refused == nil {
		refused = <-projected
	}
	require.Empty(t, i.differences(nil))
	require.ErrorIs(t, refused, errNotCovered)
	require.Equal(t, "0", d.watermark())

	require.NoError(t, l.Project(ctx, testScope, 0, 5))
	require.Empty(t, i.differences(nil))
	require.Equal(t, []string{"arrived", "contract-0", "late-5"}, d.rows("SELECT contract_id FROM indexer.active_contracts ORDER BY 1"))
}
