package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// A page is stored wholly or not at all, wherever it breaks.
func TestHistoryAppendIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	page, err := ledger.DecodeTransactions([]byte(storetest.TransactionsPage))
	require.NoError(t, err)
	nothing := func() {
		t.Helper()
		for _, table := range historyTables {
			require.Equal(t, "0", h.Row("SELECT count(*) FROM indexer."+table+" x WHERE to_jsonb(x) -> 'seq' IS DISTINCT FROM '1'"), table)
		}
		require.Equal(t, "a", h.checkpoint())
		stored, _, err := h.l.TransactionsPosition(t.Context())
		require.NoError(t, err)
		require.Equal(t, h.at, stored)
	}

	bad := page
	bad = append(bad[:len(bad):len(bad)], ledger.Record{EventID: "last", Kind: ledger.RecordAbort, Date: bad[0].Date,
		Abort: &ledger.AbortedInstruction{InstructionCID: "\x00"}})
	at, err := h.l.AppendTransactions(t.Context(), h.at, nil, bad)
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.ErrorContains(t, err, "aborted_transfer_instructions")
	require.Equal(t, h.at, at)
	nothing()

	for _, table := range []string{"unknown_transactions", "party_transfers", "transactions_position"} {
		h.Exec("ALTER TABLE indexer." + table + " ADD CONSTRAINT refused CHECK (to_jsonb(" + table + ") IS NULL) NOT VALID")
		_, err := h.l.AppendTransactions(t.Context(), h.at, nil, page)
		require.ErrorAs(t, err, &problem, table)
		nothing()
		h.Exec("ALTER TABLE indexer." + table + " DROP CONSTRAINT refused")
	}
	at, err = h.l.AppendTransactions(t.Context(), h.at, nil, page)
	h.moved(at, err)
	require.EqualValues(t, len(page)+1, h.at.LastSeq)
}

// A position moves by compare-and-swap: of several writers that saw the same one, one gets on. The others know that
// they only have to read it again.
func TestHistoryPositionMovesByCompareAndSwap(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	errs := make([]error, 3)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, errs[i] = h.l.AppendTransactions(t.Context(), h.at, nil, storetest.RecordsOf([]string{"b", "c"}))
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, ErrPositionMoved)
		var problem *ledger.Problem
		require.False(t, errors.As(err, &problem))
	}
	require.Equal(t, 1, won)
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, h.stored())
	for _, at := range []ledger.TransactionsPosition{{}, h.at} {
		_, err := h.l.ClearTransactions(t.Context(), at)
		require.ErrorIs(t, err, ErrPositionMoved)
		_, err = h.l.CompleteTransactions(t.Context(), at)
		require.ErrorIs(t, err, ErrPositionMoved)
	}
}

// Rule: after any error from COMMIT the outcome is unknown: re-read, never assume.
func TestHistoryCommitOutcomeUnknownIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	wire := d.wire()
	h := &testHistory{testDB: d, l: d.leadTransactions(d.open(wire.URL(), nil))}
	ctx := t.Context()
	h.append("a")
	want := []string{"1:a"}
	for i, doubt := range doubts {
		id := fmt.Sprint("b", i)
		want = append(want, fmt.Sprint(i+2, ":", id))
		cut := wire.Order(doubt)
		_, err := h.l.AppendTransactions(ctx, h.at, nil, storetest.RecordsOf([]string{id}))
		require.ErrorContains(t, err, "outcome is unknown")
		require.True(t, cut(ctx), "the connection was cut")
		var at ledger.TransactionsPosition
		require.Eventually(t, func() bool { // the server may still be at it
			at, _, err = h.l.TransactionsPosition(ctx)
			return err == nil && (doubt == throwaway.CutBeforeCommit || at.Revision > h.at.Revision)
		}, storetest.WaitLimit, storetest.WaitTick)
		if doubt == throwaway.CutBeforeCommit {
			require.Equal(t, h.at, at)
			h.append(id)
		} else {
			_, err := h.l.AppendTransactions(ctx, h.at, nil, storetest.RecordsOf([]string{id}))
			require.ErrorIs(t, err, ErrPositionMoved, "a writer that assumes")
			h.at = at
		}
		require.Equal(t, want, h.stored())
	}
}

// A writer whose twin is in doubt waits for it instead of doubling it.
func TestHistoryTwinInDoubtIsWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	meanwhile := func(end func(pgx.Tx) error) error {
		tx := h.Begin("UPDATE indexer.transactions_position SET revision = revision + 1")
		done := make(chan error, 1)
		go func() {
			_, err := h.l.AppendTransactions(t.Context(), h.at, nil, storetest.RecordsOf([]string{"b"}))
			done <- err
		}()
		h.WaitForLock("%transactions_position%")
		require.Equal(t, []string{"1:a"}, h.stored())
		require.NoError(t, end(tx))
		return <-done
	}
	require.ErrorIs(t, meanwhile(func(tx pgx.Tx) error { return tx.Commit(t.Context()) }), ErrPositionMoved)
	require.Equal(t, []string{"1:a"}, h.stored())
	h.at.Revision++
	require.NoError(t, meanwhile(func(tx pgx.Tx) error { return tx.Rollback(t.Context()) }))
	require.Equal(t, []string{"1:a", "2:b"}, h.stored())
}

// Records are written while those before them are, and stored behind them or not at all.
func TestHistoryRecordsBehindOthers(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	ctx := t.Context()
	first, second := storetest.RecordsOf([]string{"b", "c"}), storetest.RecordsOf([]string{"d"})
	expected := h.at.After(first)

	failed := errors.New("the others failed")
	_, err := h.l.AppendTransactions(ctx, expected, behindAnother(func() error { return failed }), second)
	require.ErrorIs(t, err, failed)
	_, err = h.l.AppendTransactions(ctx, expected, behindAnother(func() error { return nil }), second)
	require.ErrorIs(t, err, ErrPositionMoved, "the others are not there")
	require.Equal(t, []string{"1:a"}, h.stored())

	written, stored := make(chan struct{}), make(chan struct{})
	var end ledger.TransactionsPosition
	var group sync.WaitGroup
	group.Go(func() {
		end, err = h.l.AppendTransactions(ctx, expected, behindAnother(func() error {
			close(written)
			<-stored
			return nil
		}), second)
	})
	<-written
	require.Equal(t, []string{"1:a"}, h.stored(), "nobody sees what is not committed")
	h.moved(h.l.AppendTransactions(ctx, h.at, nil, first))
	require.Equal(t, expected, h.at)
	close(stored)
	group.Wait()
	require.NoError(t, err)
	require.Equal(t, expected.After(second), end)
	require.Equal(t, []string{"1:a", "2:b", "3:c", "4:d"}, h.stored())
	require.Equal(t, "d", h.checkpoint())
}

// In-memory state changes only after the commit: the hooks hear of no page that failed, and of each row that was
// written.
func TestHistoryHooks(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	rows, phases := map[string]int{}, map[string]int{}
	s := d.open(d.URL, func(c *Config) {
		c.Wrote = func(relation string, n int) { rows[relation] += n }
		c.Observe = func(_ context.Context, phase string, _ time.Duration) { phases[phase]++ }
	})
	l := d.leadTransactions(s)
	page, err := ledger.DecodeTransactions([]byte(storetest.TransactionsPage))
	require.NoError(t, err)
	_, err = l.AppendTransactions(t.Context(), ledger.TransactionsPosition{Revision: 7}, nil, page)
	require.ErrorIs(t, err, ErrPositionMoved)
	require.Empty(t, rows)
	_, err = l.AppendTransactions(t.Context(), ledger.TransactionsPosition{}, nil, page)
	require.NoError(t, err)
	for _, table := range historyTables[:8] {
		require.Equal(t, d.Row("SELECT count(*) FROM indexer."+table), fmt.Sprint(rows[table]), table)
		require.NotZero(t, rows[table], table)
	}
	require.Equal(t, map[string]int{"copy": 1, "project": 1, "commit": 2}, phases, "the first commit adds the domain")
}

// Both leases write at the same time, each led by another process, and find numbers for names that neither knew.
func TestHistoryBesideTheUpdates(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	updates := d.started()
	h := &testHistory{testDB: d, l: d.leadTransactions(d.store())}
	const pages = 30
	var group sync.WaitGroup
	errs := make([]error, 2)
	group.Go(func() {
		for i := range ledger.Offset(pages) {
			page := storetest.OneCreation(i, i+1)
			page[0].Updates[0].SynchronizerID = new(fmt.Sprint("sync::", i))
			errs[0] = errors.Join(errs[0], updates.Append(t.Context(), storetest.Scope, page))
		}
	})
	group.Go(func() {
		for i := range pages {
			r := storetest.Tap(fmt.Sprint("r", i))
			r.DomainID = new(fmt.Sprint("sync::", i))
			var err error
			h.at, err = h.l.AppendTransactions(t.Context(), h.at, nil, []ledger.Record{r})
			errs[1] = errors.Join(errs[1], err)
		}
	})
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	for i := range pages {
		require.Equal(t, fmt.Sprint("sync::", i), d.Row("SELECT domain_id FROM ledger.transactions WHERE seq = $1", i+1))
		require.Equal(t, fmt.Sprint("sync::", i), d.Row("SELECT synchronizer_id FROM ledger.updates WHERE ledger_offset = $1", i+1))
	}
	require.Equal(t, fmt.Sprint(pages), d.Row("SELECT count(*) FROM indexer.synchronizers"))
}
