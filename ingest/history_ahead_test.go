package ingest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// sharing gives the last records of each so many the event id of the first of them.
func sharing(records []ledger.Transaction, every int, shared ...int) []ledger.Transaction {
	for first := 0; first+every <= len(records); first += every {
		for _, i := range shared {
			records[first+i].EventID = records[first].EventID
		}
	}
	return records
}

// While records are written, what follows them is read, and written together: those that share their ids, too, be it with the
// next one or the next but one, and on the next page.
func TestTheHistoryIsReadOnWhileItIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		records := slices.Concat(numbered("a", 1_000), sharing(numbered("b", 1_000), 10, 1), sharing(numbered("c", 1_000), 10, 2),
			sharing(numbered("d", 1_000), 4, 1, 2))
		l := newHistoryLoop(t, records)
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
	far := numbered("b", 300)
	far[200].EventID = far[60].EventID
	for name, records := range map[string][]ledger.Transaction{
		"an id that was read ahead, further back": append(numbered("a", 600), far...),
		"an id that is stored":                    append(numbered("a", 600), append(numbered("b", 200), record("#a0:0", "again"))...),
		"nothing but ids that are shared":         append(numbered("a", 300), append(sharing(numbered("b", 100), 2, 1), numbered("c", 300)...)...),
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

// behind is the position that is expected behind records. met are those of their event ids that stand on records before them.
func behind(at ledger.HistoryPosition, records []ledger.Transaction, met ...string) ledger.HistoryPosition {
	a := historyAhead{pending: map[string]int{}}
	ids := a.note(records)
	for _, id := range met {
		ids.met[id] = true
	}
	return expected(at, records, ids)
}

// However many pages are read ahead, and however short they are, no more than the last records are kept of them.
func TestTheExpectedWindowDoesNotGrow(t *testing.T) {
	t.Parallel()
	records := numbered("a", 1_000)
	at := ledger.HistoryPosition{}
	for from := 0; from < len(records); from += 125 {
		at = behind(at, records[from:from+125])
		require.EqualValues(t, from+125, at.LastSeq)
		require.Len(t, at.Window, min(from+125, aheadWindow))
		for i, mark := range at.Window {
			seq := int(at.LastSeq) - len(at.Window) + 1 + i
			require.EqualValues(t, seq, mark.Seq)
			require.Equal(t, records[seq-1].EventID, mark.EventID)
		}
	}
	require.Equal(t, at.Window, behind(ledger.HistoryPosition{}, records).Window, "in one piece or in many")
}

// An event id is unique in the expected window while it stands on one record, wherever a page ends; and where the last records
// hold none that is, older ones are kept.
func TestWhatIsUniqueInTheExpectedWindow(t *testing.T) {
	t.Parallel()
	unique := func(at ledger.HistoryPosition) (ids string) {
		for _, mark := range at.Window {
			if mark.Unique {
				ids += mark.EventID
			}
		}
		return ids
	}
	at := behind(ledger.HistoryPosition{}, history("a b b=2 c d e c"))
	require.Equal(t, "ade", unique(at))
	before := unique(at)
	next := behind(at, history("e f d"), "e", "d")
	require.Equal(t, "af", unique(next))
	require.Equal(t, before, unique(at), "writes need the one before")
	next = behind(next, history("f=2"), "f")
	require.Equal(t, "a", unique(next))
	next = behind(next, sharing(numbered("x", 500), 2, 1))
	require.Equal(t, "a", unique(next))
	require.EqualValues(t, 1, next.Window[0].Seq)
	require.Len(t, behind(next, numbered("y", 1)).Window, aheadWindow)
}

// Which of a page's event ids are to be looked up, and which were met already, on that page and on those before it.
func TestEventIDsAreNotedOnce(t *testing.T) {
	t.Parallel()
	a := historyAhead{pending: map[string]int{}}
	require.Equal(t, pageIDs{[]string{"a", "b"}, map[string]bool{}, map[string]bool{"a": true}}, a.note(history("a b a=2")))
	require.Equal(t, pageIDs{[]string{"c"}, map[string]bool{"a": true, "b": true}, map[string]bool{"c": true}}, a.note(history("b c a=2 b c c")))
}
