package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// settled is long enough for everything that the loop does by itself, but for reading again and again.
const settled = 5 * time.Minute

func TestReadsTheHistoryAndGoesOnPolling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 95))
		stop := l.run()
		synctest.Wait()
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		for i := range 5 {
			l.service.grow(numbered(fmt.Sprint("more", i), 1+i*7)...)
			pass(2 * transactionsPollEvery)
			require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		}
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
		require.Equal(t, 1, l.told.lines("caught up"))
		require.Zero(t, l.told.lines("WARN"))
	})
}

func TestReadsOnFromTheStoredWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 395))
		l.service.pageSize = transactionsOverlap + 10
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		l.service.grow(numbered("b", 55)...)
		asked := l.service.requests("after")
		stop = l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		require.Empty(t, l.retried())
		require.Equal(t, 1, l.service.requests("after ")-l.service.requests("after #"), "the beginning was read once")
		require.Less(t, l.service.requests("after")-asked, 30)
	})
}

// An idle service is asked for little, and seldom.
func TestAnIdleHistoryCostsFewRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c d d"))
		stop := l.run()
		pass(time.Minute)
		all, pages := l.service.requests(""), l.service.requests("after")
		pass(transactionsMatchEvery - 2*time.Minute)
		require.InDelta(t, 240, l.service.requests("")-all, 80)
		require.Equal(t, pages, l.service.requests("after"))
		// What the newest records do not show is seen by and by.
		l.service.become(history("b a c d d"))
		pass(transactionsMatchEvery)
		require.NoError(t, stop())
		require.Equal(t, "b a c d d", words(l.memory.stored()))
	})
}

func TestUntilTheHistoryIsCurrent(t *testing.T) {
	for name, c := range map[string]struct{ stored, served, want string }{
		"nothing":               {"", "", ""},
		"everything is stored":  {"a b c", "a b c", "a b c"},
		"from the beginning":    {"", "a b c", "a b c"},
		"equal records":         {"a b", "a b c c", "a b c c"},
		"ends with a shared id": {"", "a b b=1 b=2", "a b b=1 b=2"},
		"another order":         {"a b c d", "b a c d", "b a c d"},
		"a service behind":      {"a b c d e f g h", "a b c d", "a b c d e f g h"},
		"an empty service":      {"a b c d e f g h", "", "a b c d e f g h"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, history(c.stored))
				l.set = func(h *Transactions) { h.UntilCurrent = true }
				l.run()
				pass(time.Minute)
				require.NoError(t, l.ended())
				l.service.become(history(c.served))
				l.run()
				pass(time.Minute)
				require.NoError(t, l.ended())
				require.Equal(t, c.want, words(l.memory.stored()))
				_, going := l.memory.rereads()
				require.False(t, going)
			})
		})
	}
}

func TestAServiceWithoutAHistory(t *testing.T) {
	for _, operation := range []string{"after", "newest", "describe"} {
		t.Run(operation, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, history("a b c"))
				l.service.before = func(request string) error {
					if request[:3] == operation[:3] {
						return fmt.Errorf("%w (HTTP status 404)", ledger.ErrNotOffered)
					}
					return nil
				}
				l.run()
				pass(time.Minute)
				require.ErrorIs(t, l.ended(), ledger.ErrNotOffered)
				require.Empty(t, l.retried())
			})
		})
	}
}

// What trying again can't cure ends the loop at once, and nothing of the page is stored.
func TestLastingErrorsEndTheHistory(t *testing.T) {
	for name, lasting := range map[string]error{
		"undecodable": &ledger.DecodeError{Element: 3, Field: "transfer.sender.holding_fees", Err: errors.New("is empty")},
		"problem":     &ledger.Problem{What: "the token is refused"},
		"mistake":     &ledger.Bug{What: "page_size was 2000"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 50))
				twentieth := l.service.all()[19].EventID
				l.service.before = func(request string) error {
					if request == "after "+twentieth {
						return fmt.Errorf("read: %w", lasting)
					}
					return nil
				}
				l.run()
				pass(time.Minute)
				require.ErrorIs(t, l.ended(), lasting)
				require.Equal(t, 20, len(l.memory.stored()))
				require.Empty(t, l.retried())
			})
		})
	}
}

// A write that has begun is finished when the loop has to stop.
func TestAPageOfTheHistoryIsFinished(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 100))
		l.service.pageSize = transactionsOverlap + 10
		l.service.before = func(string) error { time.Sleep(time.Second); return nil }
		l.memory.before = func(write string) error {
			if write == "append" && len(l.memory.stored()) == l.service.pageSize {
				l.cancel()
			}
			return nil
		}
		l.run()
		require.NoError(t, <-l.done)
		require.Greater(t, len(l.memory.stored()), l.service.pageSize)
	})
}

// While much is left to read two batches are written at a time, and stored in their order.
func TestBatchesOfTheHistoryAreWrittenBesideOneAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 500))
		l.set = func(h *Transactions) { h.batch = 40 }
		var writing, most, begun atomic.Int64
		l.memory.before = func(write string) error {
			if write == "append" {
				most.Store(max(most.Load(), writing.Add(1)))
				time.Sleep(time.Second * time.Duration(1+begun.Add(1)%2)) // the second is done first
				writing.Add(-1)
			}
			return nil
		}
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		require.EqualValues(t, commitsWriting, most.Load())
		require.Empty(t, l.retried())
		require.Empty(t, l.memory.mistakes)
	})
}

// The progress of long reading is reported.
func TestAReadingOfTheHistoryIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 600))
		l.service.pageSize = transactionsOverlap + 5
		l.service.before = func(string) error { time.Sleep(time.Second); return nil }
		stop := l.run()
		pass(50 * time.Second)
		require.InDelta(t, 4, l.told.lines("msg=progress stream=transactions"), 1)
		pass(settled)
		lines := l.told.lines("msg=progress")
		l.service.grow(record("late", ""))
		pass(settled)
		require.Equal(t, lines, l.told.lines("msg=progress"), "a single record is not much")
		require.NoError(t, stop())
	})
}

// Another service may answer: that is checked before anything of it is stored.
func TestSomebodyElsesHistoryIsNotStored(t *testing.T) {
	ours := before(history("a b c"))
	other := slices.Clone(ours)
	slices.Reverse(other)
	for name, theirs := range map[string][]ledger.Record{
		"nothing is known": numbered("foreign", 40),
		"another order":    other,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, ours)
				l.service.describes(ledger.TransactionsService{NetworkID: "DSO::1"})
				foreign := &ledger.Problem{What: "another network"}
				l.set = func(h *Transactions) {
					h.Check = func(_ context.Context, service ledger.TransactionsService) error {
						if service.NetworkID != "DSO::1" {
							return foreign
						}
						return nil
					}
				}
				l.run()
				pass(time.Minute)
				l.service.become(theirs) // without an error in between
				l.service.describes(ledger.TransactionsService{NetworkID: "DSO::2"})
				pass(time.Minute)
				require.ErrorIs(t, l.ended(), foreign)
				require.Equal(t, words(ours), words(l.memory.stored()))
				rereads, _ := l.memory.rereads()
				require.Zero(t, rereads)
			})
		})
	}
}
