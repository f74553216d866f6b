package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/writing"
)

// Who adds up amulets while updates are rewritten below does not record what these were before.
func TestSumsOfAmuletsAreForgottenBesideARewrite(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	require.NoError(t, d.started().Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 20)))
	history := d.leadTransactions(d.store())
	d.Exec("INSERT INTO indexer.amulet_checks (from_exclusive, to_inclusive, updates, unbalanced, unproved) VALUES (0, 10, 7, 7, 0)")
	repair := d.Begin("SET LOCAL search_path = indexer; LOCK TABLE indexer.updates IN ACCESS EXCLUSIVE MODE")
	defer pg.Rollback(t.Context(), repair)
	checked := make(chan error, 1)
	var more bool
	go func() {
		var err error
		more, err = history.CheckAmuletSums(t.Context())
		checked <- err
	}()
	d.WaitFor(storetest.Waiting, 1) // it has read what was added up before
	require.NoError(t, writing.NoteRewrite(t.Context(), repair, findings.SealedUpdates, 0, 5, writing.Repaired))
	require.NoError(t, repair.Commit(t.Context()))
	require.NoError(t, <-checked)
	require.False(t, more, "asked at once it would add up the same again and again beside who fills in history")
	require.Empty(t, d.Rows("SELECT updates FROM indexer.amulet_checks"))
	more, err := history.CheckAmuletSums(t.Context())
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, "20 0 0", d.Row("SELECT concat_ws(' ', to_inclusive, updates, unbalanced) FROM indexer.amulet_checks"))
}
