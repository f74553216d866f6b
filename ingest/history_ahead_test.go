package ingest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// While records are written, what follows them is read, and written together.
func TestTheHistoryIsReadOnWhileItIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newHistoryLoop(t, numbered("a", 4_000))
		l.service.pageSize = 200
		l.set = func(h *History) { h.UntilCurrent = true }
		l.service.before = func(string) error { time.Sleep(10 * time.Millisecond); return nil }
		var mu sync.Mutex
		writes := 0
		l.memory.before = func(call string) error {
			if call == "append" {
				mu.Lock()
				writes++
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}
		l.run()
		began := time.Now()
		require.NoError(t, <-l.done)
		took := time.Since(began)
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		require.Empty(t, l.memory.mistakes)
		require.Less(t, writes, 4_000/200/2, "several pages at once")
		require.Less(t, took, 4*time.Second, "one after the other takes twice as long")
	})
}

// Whatever is not regular is left to the ordinary way, from what is stored by then.
func TestReadingAheadStopsWhereTheHistoryIsNotRegular(t *testing.T) {
	shared := numbered("b", 300)
	shared[200].EventID = shared[100].EventID // on two pages
	twins := numbered("b", 300)
	twins[150].EventID = twins[149].EventID // side by side
	for name, records := range map[string][]ledger.Transaction{
		"an id that was read ahead": append(numbered("a", 600), shared...),
		"two of one id in a page":   append(numbered("a", 600), twins...),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newHistoryLoop(t, records)
				l.service.pageSize = 170
				l.memory.before = func(string) error { time.Sleep(time.Second); return nil }
				stop := l.run()
				pass(time.Hour)
				require.NoError(t, stop())
				require.Equal(t, count(l.service.all()), count(l.memory.stored()))
				require.Empty(t, l.memory.mistakes)
			})
		})
	}
}

// A write that fails takes what comes behind it with it, and both are read again.
func TestWhatIsWrittenBehindAFailureIsReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newHistoryLoop(t, numbered("a", 4_000))
		l.service.pageSize = 200
		var mu sync.Mutex
		writes := 0
		l.memory.before = func(call string) error {
			if call != "append" {
				return nil
			}
			time.Sleep(time.Second) // more is read meanwhile
			mu.Lock()
			defer mu.Unlock()
			if writes++; writes == 3 {
				return errAway
			}
			return nil
		}
		stop := l.run()
		pass(settled)
		require.NoError(t, stop())
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		require.Empty(t, l.memory.mistakes)
		require.Equal(t, []error{errAway}, l.retried(), "told once, and as it was")
	})
}

// However many pages are read ahead, and however short they are, no more than the last records are kept of them.
func TestTheExpectedWindowDoesNotGrow(t *testing.T) {
	t.Parallel()
	records := numbered("a", 1_000)
	at := ledger.HistoryPosition{}
	for from := 0; from < len(records); from += 125 {
		at = expected(at, records[from:from+125])
		require.EqualValues(t, from+125, at.LastSeq)
		require.Len(t, at.Window, min(from+125, aheadWindow))
		for i, mark := range at.Window {
			seq := int(at.LastSeq) - len(at.Window) + 1 + i
			require.EqualValues(t, seq, mark.Seq)
			require.Equal(t, records[seq-1].EventID, mark.EventID)
		}
	}
	require.Equal(t, at.Window, expected(ledger.HistoryPosition{}, records).Window, "in one piece or in many")
}
