package store

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// behindAnother is the turn of a write behind one that has begun.
func behindAnother(wait func() error) storetest.Turn { return storetest.Turn{OnWait: wait} }

// Records are written while those before them are, and stored behind them, with everything that is derived from them.
func TestRecordsAreWrittenBehindOthers(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	first, second := storetest.Payments(1, 3), storetest.Payments(2, 250)
	at := h.at.After(first)
	written, stored := make(chan struct{}), make(chan struct{})
	var behind ledger.TransactionsPosition
	var failed error
	var group sync.WaitGroup
	group.Go(func() {
		behind, failed = h.l.AppendTransactions(t.Context(), at, behindAnother(func() error {
			close(written)
			<-stored
			return nil
		}), storetest.BatchOf(second))
	})
	<-written // all rows of the second are in the tables, and nobody sees them
	require.Equal(t, "1", h.Row("SELECT count(*) FROM ledger.transactions"))
	h.appendRecords(first...)
	require.Equal(t, at, h.at, "what was expected")
	close(stored)
	group.Wait()
	h.moved(behind, failed)
	require.Equal(t, "254", h.Row("SELECT count(*) FROM ledger.transactions"))
	require.Equal(t, "506", h.Row("SELECT count(*) FROM ledger.party_transfers"))
	require.Equal(t, "3 253", h.Row("SELECT ledger.reported_balance_at('alice', 1)::text, ledger.reported_balance_at('alice', 2)::text"))
}

// What comes behind records that were not stored leaves nothing.
func TestNothingIsStoredBehindRecordsThatAreNot(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a")
	failed := errors.New("the others failed")
	before := h.at.After(storetest.Payments(1, 3))
	at, err := h.l.AppendTransactions(t.Context(), before, behindAnother(func() error { return failed }), storetest.BatchOf(storetest.Payments(2, 3)))
	require.ErrorIs(t, err, failed)
	require.EqualValues(t, 4, at.LastSeq)
	turn := behindAnother(func() error { return nil })
	_, err = h.l.AppendTransactions(t.Context(), before, turn, storetest.BatchOf(storetest.Payments(2, 3)))
	require.ErrorIs(t, err, ErrPositionMoved, "they were not there")
	for _, table := range []string{"transfers", "party_transfers", "balance_totals", "latest_totals"} {
		require.Equal(t, "0", h.Row("SELECT count(*) FROM indexer."+table), table)
	}
	h.append("b")
	require.Equal(t, []string{"1:a", "2:b"}, h.stored())
}
