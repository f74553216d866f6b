package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// An id that was added may be stored, whatever else is known; of others hardly any may be.
func TestKnownIDs(t *testing.T) {
	t.Parallel()
	k := newKnownIDs()
	stored, others := numbered("stored", 300_000), numbered("other", 10_000)
	require.Equal(t, others, k.maybe(others), "nothing is known of a history that nobody has looked at")
	k.at(ledger.HistoryPosition{LastSeq: 1})
	k.add(recordsOf(stored))
	require.Equal(t, others, k.maybe(others), "nor of one that another process has begun")

	k.at(ledger.HistoryPosition{})
	require.Empty(t, k.maybe(others))
	k.add(recordsOf(stored))
	require.Equal(t, stored, k.maybe(stored))
	require.Less(t, len(k.maybe(others)), len(others)/100)

	for _, revision := range []int64{2, 1} { // two writers tell it in any order
		k.stored(ledger.HistoryPosition{Revision: revision})
	}
	k.at(ledger.HistoryPosition{Revision: 2, LastSeq: 2})
	require.Equal(t, stored, k.maybe(stored))
	require.Less(t, len(k.maybe(others)), len(others)/100)
	k.at(ledger.HistoryPosition{Revision: 3, LastSeq: 3})
	require.Equal(t, others, k.maybe(others), "somebody else has stored something")
}

// New event ids are told to be new without the database, as long as this leader has stored all records; those that are stored are
// looked up.
func TestNewEventIDsAreNotLookedUp(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	all := numbered("a", 3*leastAskedIDs)
	stored, others := all[:2*leastAskedIDs], all[2*leastAskedIDs:]
	_, err := h.l.HistoryPosition(t.Context())
	require.NoError(t, err)
	h.append(stored...)

	other := h.connect()
	locked, err := other.Begin(t.Context())
	require.NoError(t, err)
	_, err = locked.Exec(t.Context(), "LOCK TABLE indexer.transactions")
	require.NoError(t, err)
	lookUp := func(ids []string, limit time.Duration) (map[string]bool, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return h.l.MetTransactions(ctx, ids)
	}
	met, err := lookUp(others, waitLimit)
	require.NoError(t, err)
	require.Empty(t, met)
	_, err = lookUp(all, 100*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits for the table")
	require.NoError(t, locked.Rollback(t.Context()))

	h.metAre(all, stored)
	_, err = h.l.MetTransactions(t.Context(), others[:1]) // few: it has caught up
	require.NoError(t, err)
	require.Nil(t, h.l.eventIDs.words, "it is memory for nothing")
	h.append(others...)
	h.metAre(all, all)
}

// metAre checks which event ids are told to stand on stored records.
func (h *testHistory) metAre(ids, want []string) {
	h.t.Helper()
	met, err := h.l.MetTransactions(h.t.Context(), ids)
	require.NoError(h.t, err)
	for _, id := range want {
		require.True(h.t, met[id], id)
	}
	require.Len(h.t, met, len(want))
}

// What somebody else has stored, or a write whose outcome is not known, is found.
func TestEventIDsOfOtherWritersAreKnown(t *testing.T) {
	t.Parallel()
	mine, more, others := numbered("a", leastAskedIDs), numbered("b", leastAskedIDs), numbered("c", leastAskedIDs)
	all := append(append(append([]string{}, mine...), more...), others...)
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run("a write in doubt that was "+name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			p, through := newProxy(t, d.url)
			h := &testHistory{testDB: d, l: d.lead(d.open(through, nil), RoleTransactions)}
			_, err := h.l.HistoryPosition(t.Context())
			require.NoError(t, err)
			h.append(mine...)
			want, at := mine, beforeCommit
			if stored {
				want, at = all[:2*leastAskedIDs], afterCommit
			}
			p.cutNext(at)
			_, err = h.l.AppendTransactions(t.Context(), h.at, recordsOf(more))
			require.ErrorContains(t, err, "outcome is unknown")
			require.Eventually(t, func() bool { // the server may still be at it
				h.at, err = h.l.HistoryPosition(t.Context())
				return err == nil && h.at.LastSeq == int64(len(want))
			}, waitLimit, waitTick)
			h.metAre(all, want)
			h.append(others...)
			h.metAre(all, append(append([]string{}, want...), others...))
		})
	}
	t.Run("another writer", func(t *testing.T) {
		t.Parallel()
		h := newHistory(t)
		_, err := h.l.HistoryPosition(t.Context())
		require.NoError(t, err)
		h.append(mine...)
		h.exec(`WITH stored AS (
				INSERT INTO indexer.transactions (seq, event_id, kind, fingerprint)
				SELECT p.last_seq + i + 1, 'c' || i, 'unknown', i FROM indexer.history_position p, generate_series(0, 99) i
			)
			UPDATE indexer.history_position SET revision = revision + 1, last_seq = last_seq + 100`)
		_, err = h.l.AppendTransactions(t.Context(), h.at, recordsOf(more))
		require.ErrorIs(t, err, ErrPositionMoved)
		_, err = h.l.HistoryPosition(t.Context())
		require.NoError(t, err)
		h.metAre(all, append(append([]string{}, mine...), others...))
	})
}
