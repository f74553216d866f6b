package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// moved is a history with one record at another position.
func moved(records []ledger.Transaction, from, to int) []ledger.Transaction {
	one := records[from]
	return slices.Insert(slices.Delete(slices.Clone(records), from, from+1), to, one)
}

// swapAtPage makes the service another one, without failing a request, when the nth page behind an event id is asked
// for.
func (l *transactionsLoop) swapAtPage(n int, records []ledger.Transaction) {
	l.service.before = func(request string) error {
		if strings.HasPrefix(request, "after #") {
			if n--; n == 0 {
				l.service.become(records)
			}
		}
		return nil
	}
}

// While the history is read again, another service has a record that was read before after the end of the page.
func TestTheServiceChangesWhileTheHistoryIsReadAgain(t *testing.T) {
	for _, distance := range []int{1, 8, transactionsOverlap, transactionsOverlap + 1, 90} {
		t.Run(fmt.Sprint("by ", distance), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 300))
				l.service.pageSize = 100
				l.readAll()
				one := moved(l.service.all(), 299, 250)
				l.service.become(one)
				l.memory.after = func(write string) error {
					if write == "begin" && l.memory.begun == 1 {
						l.swapAtPage(1, moved(one, 99-distance, 105))
					}
					return nil
				}
				stop := l.run()
				pass(time.Hour)
				require.NoError(t, stop())
				require.Equal(t, count(l.service.all()), count(l.memory.stored()))
				rereads, shown, going := l.memory.generations()
				require.Equal(t, 2, rereads)
				require.Equal(t, 1, shown)
				require.False(t, going)
			})
		})
	}
}

// Two records of one id may be further apart than any window. To read everything again is right the first
// time, and then no help.
func TestRecordsFarApartCanShareAnEventID(t *testing.T) {
	for _, distance := range []int{transactionsOverlap, 101, 350} {
		for _, other := range []string{"1", "2"} {
			t.Run(fmt.Sprint(distance, " apart, ", other), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					all := append(numbered("a", 400), record("x", "1"))
					all = append(append(all, numbered("b", distance-1)...), record("x", other))
					l := newTransactionsLoop(t, append(all, numbered("c", 300)...))
					l.service.pageSize = 100
					stop := l.run()
					pass(time.Hour)
					l.service.grow(record("late", ""))
					pass(time.Minute)
					require.NoError(t, stop())
					require.Equal(t, words(l.service.all()), words(l.memory.stored()))
					rereads, _, going := l.memory.generations()
					require.LessOrEqual(t, rereads, 1)
					require.False(t, going)
				})
			})
		}
	}
}

// The service is another one from one request to the next, and fails none: a record that was never read stands in what
// was read already.
func TestASilentSwapDoesNotLoseARecord(t *testing.T) {
	for _, distance := range []int{1, 20, transactionsOverlap, 95} {
		t.Run(fmt.Sprint("at the head, ", distance, " before the end"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 300))
				l.service.pageSize = 100
				stop := l.run()
				pass(time.Minute)
				l.service.become(slices.Insert(l.service.all(), 300-distance, record("new", "")))
				pass(transactionsMatchEvery)
				require.NoError(t, stop())
				require.Equal(t, count(l.service.all()), count(l.memory.stored()))
			})
		})
	}
	for _, distance := range []int{1, 20, transactionsOverlap - 1} {
		t.Run(fmt.Sprint("between two pages, ", distance, " before their border"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 300))
				l.service.pageSize = 100
				l.swapAtPage(1, moved(l.service.all(), 150, 100-distance))
				stop := l.run()
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, count(l.service.all()), count(l.memory.stored()))
			})
		})
	}
}

// Also while everything fits the service is asked now and then who it is, which takes few requests.
func TestAServiceThatFitsIsMatchedNowAndThen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.service.pageSize = 1000
		checks := 0
		foreign := &ledger.Problem{What: "another network"}
		l.set = func(h *Transactions) {
			h.Check = func(_ context.Context, service ledger.TransactionsService) error {
				checks++
				if service.NetworkID != "" {
					return foreign
				}
				return nil
			}
		}
		l.run()
		pass(time.Minute)
		pages := l.service.requests("after")
		pass(6 * transactionsMatchEvery)
		require.InDelta(t, 7, checks, 1)
		require.LessOrEqual(t, l.service.requests("after")-pages, 14)
		require.Empty(t, l.heard())
		require.Equal(t, 1, l.told.lines("caught up"))
		l.service.describes(ledger.TransactionsService{NetworkID: "DSO::2"})
		pass(transactionsMatchEvery + transactionsPollEvery)
		require.ErrorIs(t, l.ended(), foreign)
	})
}

// The same ids with other contents, in parts or altogether.
func TestAHistoryWithOtherContents(t *testing.T) {
	for _, c := range []struct{ all, from, page int }{{300, 200, 100}, {300, 0, 100}, {300, 0, 1000}, {1500, 0, 1000}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", c.all))
				l.service.pageSize = c.page
				l.readAll()
				other := l.service.all()
				for i := c.from; i < len(other); i++ {
					other[i] = record(other[i].EventID, "other")
				}
				l.service.become(other)
				stop := l.run()
				pass(settled)
				l.service.grow(numbered("b", 5)...)
				pass(settled)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				require.Empty(t, l.retried())
				require.Equal(t, 1, l.told.lines("caught up")-1)
				rereads, _, going := l.memory.generations()
				require.Equal(t, 1, rereads)
				require.False(t, going)
			})
		})
	}
}

// The end of the history is found by its last records, of which a service returns a limited number at once.
func TestManyOfTheNewestRecordsShareAnEventID(t *testing.T) {
	for _, n := range []int{90, 201, mostNewest - 2, mostNewest - 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 50))
				for i := range n {
					l.service.records = append(l.service.records, record("x", fmt.Sprint(i)))
				}
				l.service.pageSize = 1000
				stop := l.run()
				pass(time.Minute)
				require.Positive(t, l.current())
				l.service.grow(history("y z")...)
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				require.Empty(t, l.retried())
				require.Empty(t, l.heard())
			})
		})
	}
}

// A service that has a new record with each request is read again to what was its newest, and not for ever.
func TestABusyHistoryIsReadAgain(t *testing.T) {
	for _, until := range []bool{false, true} {
		t.Run(fmt.Sprint("until current ", until), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 300))
				l.service.pageSize = 100
				l.readAll()
				l.set = func(h *Transactions) { h.UntilCurrent = until }
				l.service.become(moved(l.service.all(), 299, 250))
				requests := 0
				l.service.before = func(string) error {
					time.Sleep(time.Second)
					requests++
					l.service.grow(record(fmt.Sprint("new", requests), ""))
					return nil
				}
				current := l.current()
				stop := l.run()
				pass(settled)
				if until {
					require.NoError(t, l.ended())
				} else {
					require.NoError(t, stop())
				}
				require.Equal(t, current, l.current(), "it is never at its end")
				rereads, shown, going := l.memory.generations()
				require.Equal(t, 1, rereads)
				require.Equal(t, 1, shown)
				require.False(t, going)
				for word, n := range count(l.memory.stored()) {
					require.Equal(t, 1, n, word)
				}
			})
		})
	}
}

// The process ends while such a history is read again, and what was the newest then is gone when it comes back.
func TestABusyHistoryIsReadAgainAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.service.pageSize = 100
		l.readAll()
		l.service.become(append(moved(l.service.all(), 299, 250), record("gone", "")))
		appends := 0
		l.memory.before = func(write string) error {
			if write == "append" {
				if appends++; appends == 2 {
					l.cancel()
				}
			}
			return nil
		}
		l.run()
		require.NoError(t, <-l.done)
		_, _, going := l.memory.generations()
		require.True(t, going)

		all := l.service.all()
		l.service.become(append(all[:300:300], record("other", "")))
		requests := 0
		l.service.before = func(string) error {
			requests++
			l.service.grow(record(fmt.Sprint("new", requests), ""))
			time.Sleep(time.Second)
			return nil
		}
		stop := l.run()
		pass(settled)
		require.NoError(t, stop())
		_, shown, going := l.memory.generations()
		require.False(t, going)
		require.Equal(t, 1, shown)
	})
}

// A service that lags while the history is read again from it comes to what is stored already: that is not yet new.
func TestALaggingHistoryIsReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.service.pageSize = 100
		l.readAll()
		other := append(moved(l.service.all(), 260, 250), numbered("b", 100)...)
		other = moved(other, 350, 255) // what is not stored shows that it is not only behind
		l.service.become(other[:275])
		shown := 275
		l.service.before = func(request string) error {
			if _, _, going := l.memory.generations(); going && shown < len(other) {
				shown += 3
				l.service.become(other[:min(shown, len(other))])
			}
			return nil
		}
		stop := l.run()
		pass(settled)
		l.service.become(other)
		pass(settled)
		require.NoError(t, stop())
		require.Equal(t, count(other), count(l.memory.stored()))
		rereads, shown, _ := l.memory.generations()
		require.Equal(t, 1, rereads)
		require.Equal(t, 1, shown)
	})
}

// All that a service has as its newest is stored, but not all that was read of it: it is not behind.
func TestAServiceBehindWithARecordThatIsNotStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.service.pageSize = 1000
		l.readAll()
		l.set = func(h *Transactions) { h.UntilCurrent = true }
		l.service.become(slices.Insert(l.service.all()[:280], 220, record("new", "")))
		l.run()
		pass(time.Minute)
		require.NoError(t, l.ended())
		require.Equal(t, 1, count(l.memory.stored())["new"])
	})
}

// For some minutes the service fails to read on after any event id, and answers everything else.
func TestAnOutageOfAllCursors(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 2 * time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 300))
				l.service.pageSize = 100
				begins := time.Now().Add(time.Minute)
				l.service.before = func(request string) error {
					passed := time.Since(begins)
					if passed >= 0 && passed < d && strings.HasPrefix(request, "after #") {
						return fmt.Errorf("HTTP status 500: %w", ledger.ErrCursorRefused)
					}
					return nil
				}
				stop := l.run()
				pass(time.Until(begins))
				l.service.grow(history("x y")...)
				pass(d + longestWait)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				rereads, _, _ := l.memory.generations()
				require.Zero(t, rereads)
			})
		})
	}
}

// Event ids that were refused once are asked for again: else the history would be read from its beginning in the end.
func TestManyEventIDsAreRefusedOneAfterAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.service.pageSize = 1000
		stop := l.run()
		pass(time.Minute)
		asked := l.service.requests("after") - l.service.requests("after #")
		described := l.service.requests("describe")
		for i := range 3 * mostRefused {
			// The newest that has the overlap behind it becomes doubled, close enough to be matched.
			all := l.service.all()
			l.service.grow(record(all[len(all)-1-transactionsOverlap].EventID, "again"))
			pass(3 * transactionsPollEvery)
			require.Equal(t, words(l.service.all()), words(l.memory.stored()), i)
		}
		require.NoError(t, stop())
		require.Equal(t, asked, l.service.requests("after")-l.service.requests("after #"), "the beginning")
		require.LessOrEqual(t, l.service.requests("describe")-described, 3*mostRefused)
	})
}
