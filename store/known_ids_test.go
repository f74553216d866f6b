package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// nothingKnown checks that all ids may be stored.
func nothingKnown(t *testing.T, k *knownIDs, why string) {
	t.Helper()
	ids := numbered("new", smallQuestion)
	require.Equal(t, ids, k.maybe(ids), why)
}

// An id that was added may be stored, whatever else is known; of others hardly any may be.
func TestKnownIDs(t *testing.T) {
	t.Parallel()
	k := newKnownIDs()
	stored, others := numbered("stored", 300_000), numbered("other", 10_000)
	nothingKnown(t, k, "a position was not read")
	k.readAt(ledger.HistoryPosition{})
	require.Empty(t, k.maybe(others))
	filter := k.add(recordsOf(stored))
	require.Equal(t, stored, k.maybe(stored))
	require.Less(t, len(k.maybe(others)), len(others)/100)

	for _, revision := range []int64{2, 1} { // two writers tell it in any order
		k.wrote(ledger.HistoryPosition{Revision: revision}, filter)
	}
	k.readAt(ledger.HistoryPosition{Revision: 2, LastSeq: 2})
	require.Equal(t, stored, k.maybe(stored))
	require.Less(t, len(k.maybe(others)), len(others)/100)
}

// Nothing is known where somebody else may have stored records.
func TestKnownIDsAreForgotten(t *testing.T) {
	t.Parallel()
	for _, at := range []ledger.HistoryPosition{{Revision: 1, LastSeq: 1}, {Revision: 1}, {LastSeq: 1}, {Revision: 1, LastSeq: 1, Rereading: true}} {
		k := newKnownIDs()
		k.readAt(at)
		nothingKnown(t, k, "a history that has begun")
	}
	for _, revision := range []int64{1, 3} {
		k := newKnownIDs()
		k.readAt(ledger.HistoryPosition{})
		k.wrote(ledger.HistoryPosition{Revision: 2}, k.add(nil))
		k.readAt(ledger.HistoryPosition{Revision: revision, LastSeq: 1})
		nothingKnown(t, k, "it moved without this leader, on or back")
		k.wrote(ledger.HistoryPosition{Revision: revision}, k.add(nil))
		k.readAt(ledger.HistoryPosition{Revision: revision, LastSeq: 1})
		nothingKnown(t, k, "that is for good")
	}
	k := newKnownIDs()
	filter := k.add(recordsOf([]string{"a"}))
	k.readAt(ledger.HistoryPosition{})
	k.wrote(ledger.HistoryPosition{Revision: 1}, filter)
	nothingKnown(t, k, "a position was read while something was written")

	k = newKnownIDs()
	k.readAt(ledger.HistoryPosition{})
	for range mostSmallQuestions {
		require.Empty(t, k.maybe([]string{"a"}))
	}
	require.Empty(t, k.maybe(numbered("a", smallQuestion)))
	for range mostSmallQuestions {
		require.Empty(t, k.maybe([]string{"a"}), "in a row")
	}
	require.NotEmpty(t, k.maybe([]string{"a"}))
	require.Nil(t, k.words, "it is memory for nothing")
}

// New event ids are told to be new without the database, as long as this leader has stored all records; those that are stored are
// looked up.
func TestNewEventIDsAreNotLookedUp(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	all := numbered("a", 3*smallQuestion)
	stored, others := all[:2*smallQuestion], all[2*smallQuestion:]
	at, err := h.l.HistoryPosition(t.Context())
	require.NoError(t, err)
	at, err = h.l.AppendBehind(t.Context(), at, anotherTurn{first: true}, recordsOf(stored))
	h.moved(at, err)

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
	h.append(others...)
	h.metAre(all, all)

	require.NotNil(t, h.l.knownIDs.words)
	h.at, err = h.l.RereadHistory(t.Context(), h.at)
	require.NoError(t, err)
	h.metAre(all, nil)
	h.at, err = h.l.AppendTransactions(t.Context(), h.at, recordsOf(append(numbered("b", smallQuestion), stored...)))
	require.NoError(t, err)
	h.metAre(append(numbered("b", 2*smallQuestion), all...), append(numbered("b", smallQuestion), stored...))
}

// What somebody else has stored, or a write whose outcome is not known, is found.
func TestEventIDsOfOtherWritersAreKnown(t *testing.T) {
	t.Parallel()
	mine, more, others := numbered("a", smallQuestion), numbered("b", smallQuestion), numbered("c", smallQuestion)
	all := slices.Concat(mine, more, others)
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run("a write in doubt that was "+name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			p, through := newProxy(t, d.url)
			h := &testHistory{testDB: d, l: d.leadTransactions(d.open(through, nil))}
			_, err := h.l.HistoryPosition(t.Context())
			require.NoError(t, err)
			h.append(mine...)
			want, at := mine, beforeCommit
			if stored {
				want, at = all[:2*smallQuestion], afterCommit
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
			h.metAre(all, slices.Concat(want, others))
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
		h.metAre(all, slices.Concat(mine, others))
	})
}
