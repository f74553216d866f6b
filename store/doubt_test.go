package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// doubts are what leaves it open whether a batch was committed, again and again.
var doubts = []throwaway.WireFault{
	throwaway.CutBeforeCommit, throwaway.CutAfterCommit, throwaway.CutBeforeCommit, throwaway.CutAfterCommit,
}

// wire stands between stores and the database.
func (d *testDB) wire() *throwaway.Wire {
	d.T.Helper()
	w, err := throwaway.NewWire(d.T.Context(), d.URL)
	require.NoError(d.T, err)
	d.T.Cleanup(w.Close)
	return w
}

// Rule: after any error from COMMIT the outcome is unknown: re-read, never assume. Both outcomes look alike to the
// writer, and one that reads the watermark again doubles nothing and loses nothing.
func TestCommitOutcomeUnknownIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	wire := d.wire()
	l := d.leadUpdates(d.open(wire.URL(), nil))
	ctx := t.Context()
	require.NoError(t, l.Start(ctx, "", storetest.Scope, 0, true))
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 10)))

	for i, doubt := range doubts {
		from := ledger.Offset(10 + 10*i)
		to := from + 10
		cut := wire.Order(doubt)
		err := l.Append(ctx, storetest.Scope, storetest.OneCreation(from, to))
		require.ErrorContains(t, err, "outcome is unknown")
		require.True(t, cut(ctx), "the connection was cut")

		at := from
		require.Eventually(t, func() bool { // the server may still be at it
			var ok bool
			at, ok, err = l.Watermark(ctx)
			return err == nil && ok && (doubt == throwaway.CutBeforeCommit || at == to)
		}, storetest.WaitLimit, storetest.WaitTick)
		if doubt == throwaway.CutBeforeCommit {
			require.Equal(t, from, at)
			require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(at, to)))
		} else {
			require.Equal(t, to, at)
			require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(from, to)), ErrCovered, "a writer that assumes")
		}
		require.Equal(t, fmt.Sprint(i+2), d.Row("SELECT count(*) FROM ledger.updates"))
		require.Equal(t, []string{fmt.Sprint("0 ", to)}, d.Coverage())
	}
}

// A writer whose twin is in doubt (its COMMIT was sent, and nobody knows) waits for it instead of doubling it.
func TestTwinInDoubtIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	for name, test := range map[string]struct {
		from, to int64 // of the twin
		commit   bool
	}{
		"same range, rolled back":  {10, 20, false},
		"same range, committed":    {10, 20, true},
		"overlapping, rolled back": {5, 15, false},
		"overlapping, committed":   {15, 25, true},
		"longer, same start":       {10, 30, true},
		"longer, same start, not":  {10, 30, false},
		"within, committed":        {12, 13, true},
	} {
		d.ForgetUpdates()
		require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 5)))
		require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(5, 10)))
		if test.from < 10 {
			d.Exec("UPDATE indexer.coverage SET to_inclusive = 5")
		}
		tx := d.Begin("INSERT INTO indexer.coverage VALUES ('updates', $1, $2, $3)", storetest.Scope.Hash(), test.from, test.to)

		done := make(chan error, 1)
		go func() { done <- l.Append(ctx, storetest.Scope, storetest.OneCreation(10, 20)) }()
		d.WaitForLock("%coverage%")
		require.Equal(t, "10", d.Watermark(), name)
		if !test.commit {
			require.NoError(t, tx.Rollback(ctx))
			require.NoError(t, <-done, name)
			require.Equal(t, "20", d.Watermark(), name)
			continue
		}
		require.NoError(t, tx.Commit(ctx))
		require.ErrorIs(t, <-done, ErrCovered, name)
		require.Equal(t, "10", d.Watermark(), name)
		require.Empty(t, d.Facts(10, 100), name)
	}
}
