package ingest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// The newest id was unique when it was read, and is shared by the record that comes next: a service that is asked with
// it answers 500 for ever.
func TestACursorThatBecomesDoubledIsRefusedForEver(t *testing.T) {
	for name, page := range map[string]int{"border of a page": 6, "end of the history": 10} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, history("a b c d e x=1"))
				l.service.pageSize = page
				if page == 6 {
					l.service.grow(history("x=2 y z")...)
				}
				stop := l.run()
				pass(time.Minute)
				if page == 10 {
					l.service.grow(history("x=2 y z")...)
				}
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, "a b c d e x=1 x=2 y z", words(l.memory.stored()))
				require.Empty(t, l.retried(), "it is read on from an earlier id")
			})
		})
	}
}

func TestTheCursorIsTheNewestIDThatIsUniqueSoFar(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, before(history("a b c d d e e")))
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		l.service.grow(history("f")...)
		stop = l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		require.Zero(t, l.service.requests("after d")+l.service.requests("after e"))
		require.Empty(t, l.retried())
	})
}

// A copy of the newest record looks like it from the end.
func TestACopyOfTheNewestRecord(t *testing.T) {
	for _, first := range []string{"a", "a b", "a b b"} {
		t.Run(first, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, history(first))
				stop := l.run()
				pass(time.Minute)
				l.service.grow(history(first[len(first)-1:])...)
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				require.Empty(t, l.retried())
			})
		})
	}
}

// A history in which no id is unique can be read as far as a page reaches.
func TestAHistoryWithoutAUniqueID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a a"))
		stop := l.run()
		pass(time.Minute)
		require.Equal(t, "a a", words(l.memory.stored()))
		require.Equal(t, 1, l.told.lines("caught up"))
		require.NoError(t, stop())
		stop = l.run()
		l.service.grow(history("b b c")...)
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, "a a b b c", words(l.memory.stored()))
		require.Empty(t, l.retried())
	})
}

// A page that is shorter than the records that share an id can't get past them. That is said, and cured when pages are
// longer again.
func TestAPageThatShrinksBelowTheSharedIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c c c c d e"))
		l.service.pageSize = 3
		stop := l.run()
		pass(settled)
		require.Equal(t, "a b c c c", words(l.memory.stored()))
		require.ErrorContains(t, l.retried()[0], "or it serves fewer records in a page than share an event id")
		require.Zero(t, l.told.lines("caught up"))
		l.service.mu.Lock()
		l.service.pageSize = 5
		l.service.mu.Unlock()
		pass(settled)
		require.NoError(t, stop())
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
	})
}

// Where that happens behind what is stored, nothing is cleared: it may pass.
func TestAPageThatShrinksBelowStoredRecordsOfAnID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := append(numbered("a", 100), history("u c=1 c=2 c=3 d")...)
		all = append(all, numbered("e", 49)...)
		l := newTransactionsLoop(t, all)
		l.readAll()
		l.service.pageSize = 1
		stop := l.run()
		pass(settled)
		require.ErrorContains(t, l.retried()[0], "or it serves fewer records in a page than share an event id")
		l.service.mu.Lock()
		l.service.pageSize = 10
		l.service.mu.Unlock()
		l.service.grow(history("z")...)
		pass(settled)
		require.NoError(t, stop())
		rereads, _ := l.memory.rereads()
		require.Zero(t, rereads)
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
	})
}

// As many records as are known share their ids: from no service can it be read on. One of its own is enough, wherever it
// stands among them.
func TestManyRecordsWithoutAUniqueIDAreAProblem(t *testing.T) {
	shared := make([]ledger.Record, ledger.TransactionsTail)
	for i := range shared {
		shared[i] = record("x", fmt.Sprint(i))
	}
	t.Run("none", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			l := newTransactionsLoop(t, append(history("a b c"), shared...))
			l.service.pageSize = 1000
			for range 2 {
				l.run()
				pass(settled)
				var problem *ledger.Problem
				require.ErrorAs(t, l.ended(), &problem)
				require.Equal(t, "the last 200 records of the transaction history share their event ids with others, so there "+
					"is none after which it could be read on", problem.What)
			}
			require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		})
	})
	t.Run("one", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			l := newTransactionsLoop(t, append(append(history("a b c"), shared...), history("y")...))
			l.service.pageSize = 1000
			stop := l.run()
			pass(time.Minute)
			l.service.grow(history("z")...)
			pass(time.Minute)
			require.NoError(t, stop())
			require.Equal(t, words(l.service.all()), words(l.memory.stored()))
			require.Empty(t, l.retried())
		})
	})
}
