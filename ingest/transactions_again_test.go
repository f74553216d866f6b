package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// readAll runs the loop until it has all, and stops it.
func (l *transactionsLoop) readAll() {
	stop := l.run()
	pass(time.Minute)
	require.NoError(l.t, stop())
	require.Equal(l.t, words(l.service.all()), words(l.memory.stored()))
}

// What was stored is not what the service has: an unknown cursor is answered with an empty page, as if nothing
// followed, and a record at a stored position may have the same event id and other content.
func TestAnUnknownCursorIsNotTakenForCaughtUp(t *testing.T) {
	all := before(history("a b c d e f"))
	for name, c := range map[string]struct {
		stored, served []ledger.Record
		said           string
	}{
		"another end": {all, append(all[:20:20], history("p q r s t")...),
			`the service has nothing after event id `},
		"another content": {history("a b c"), history("a b=other c d"),
			`after event id \"a\" the service has a record of event id \"b\", and another one, of \"b\", was stored`},
	} {
		for _, restart := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", restarted: ", restart), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newTransactionsLoop(t, c.stored)
					stop := l.run()
					pass(time.Minute)
					if restart {
						require.NoError(t, stop())
					}
					l.service.become(c.served)
					if restart {
						stop = l.run()
					}
					pass(time.Minute)
					require.NoError(t, stop())
					require.Equal(t, words(c.served), words(l.memory.stored()))
					rereads, going := l.memory.rereads()
					require.Equal(t, 1, rereads)
					require.False(t, going)
					require.Equal(t, 1, l.told.lines("clearing it, and reading it again"))
					require.Equal(t, 1, l.told.lines(c.said), "what differs is said")
				})
			})
		}
	}
}

func TestAnotherServiceWithAnotherOrder(t *testing.T) {
	const ours, theirs = "a b c d=1 d=2 e f f g h i j k l m", "b a d=2 d=1 c f e f h g k i j x m l y y"
	for name, swap := range map[string]func(l *transactionsLoop, stop func() error) func() error{
		"at the start": func(l *transactionsLoop, stop func() error) func() error {
			require.NoError(l.t, stop())
			l.service.become(history(theirs))
			return l.run()
		},
		"after an error": func(l *transactionsLoop, stop func() error) func() error {
			failed := false
			l.service.intercept(func(string) error {
				if !failed {
					failed = true
					l.service.become(history(theirs))
					return errAway
				}
				return nil
			})
			return stop
		},
		"between two requests": func(l *transactionsLoop, stop func() error) func() error {
			l.service.become(history(theirs))
			return stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, history(ours))
				stop := l.run()
				pass(time.Minute)
				stop = swap(l, stop)
				pass(settled)
				require.Equal(t, theirs, words(l.memory.stored()))
				rereads, going := l.memory.rereads()
				require.False(t, going)
				require.Equal(t, 1, rereads)
				// What is known is of the new order by now.
				l.service.grow(history("z z")...)
				pass(settled)
				require.NoError(t, stop())
				require.Equal(t, theirs+" z z", words(l.memory.stored()))
				rereads, _ = l.memory.rereads()
				require.Equal(t, 1, rereads)
			})
		})
	}
}

func TestAnEarlierEndIsWaitedFor(t *testing.T) {
	long, short := append(numbered("a", 140), history("x x y")...), append(numbered("a", 100), history("y x=1 x=2 x=3")...)
	for name, c := range map[string]struct {
		all    []ledger.Record
		shown  int
		newest string
	}{
		"a replica lags":     {long, 137, "y"},
		"it lost much":       {long, 5, "y"},
		"one of two copies":  {long, 141, "y"},
		"a copy lies before": {append(numbered("a", 140), history("x y x x")...), 142, "x"},
		"everything is gone": {long, 0, "y"},
		// Records that share an event id are behind the last one with an id of its own.
		"all of one id": {short, 101, "x"},
		"some of them":  {short, 102, "x"},
	} {
		all, why := c.all, `the service is behind: the newest stored record, "`+c.newest+`", is not in its history yet`
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restarted: ", restart), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newTransactionsLoop(t, all)
					stop := l.run()
					pass(time.Minute)
					if restart {
						require.NoError(t, stop())
					}
					l.service.become(all[:c.shown])
					if restart {
						stop = l.run()
					}
					pass(settled)
					l.waits(why)
					l.service.become(all[:c.shown+1])
					pass(10 * time.Minute)
					require.Zero(t, l.recovered)
					require.Equal(t, words(all), words(l.memory.stored()))

					l.service.become(append(slices.Clone(all), history("z")...))
					pass(time.Minute)
					require.NoError(t, stop())
					require.Equal(t, 1, l.recovered)
					require.Equal(t, words(all)+" z", words(l.memory.stored()))
					rereads, _ := l.memory.rereads()
					require.Zero(t, rereads)
				})
			})
		}
	}
}

// A service that is behind has what it lacked between the request for a page and that for its newest records; or fails
// once for the last known event id, which looks as if it had that.
func TestAServiceThatIsBehindIsNotTakenForAnother(t *testing.T) {
	all, more := numbered("a", 140), append(numbered("a", 140), history("z")...)
	for name, meanwhile := range map[string]func(l *transactionsLoop) func(request string) error{
		"it catches up": func(l *transactionsLoop) func(request string) error {
			pages := 0
			return func(request string) error {
				switch {
				case request == "describe":
					pages = 0
				case strings.HasPrefix(request, "after "):
					pages++
				case request == "newest" && pages > 0 && l.service.requests("describe") > 1:
					l.service.become(more)
				}
				return nil
			}
		},
		"it fails once": func(*transactionsLoop) func(request string) error {
			failed := false
			return func(request string) error {
				if request == "after "+all[139].EventID && !failed {
					failed = true
					return fmt.Errorf("HTTP status 500: %w", ledger.ErrCursorRefused)
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, all)
				stop := l.run()
				pass(time.Minute)
				l.service.become(all[:130])
				l.service.intercept(meanwhile(l))
				pass(settled)
				l.service.become(more)
				pass(settled)
				require.NoError(t, stop())
				rereads, _ := l.memory.rereads()
				require.Zero(t, rereads)
				require.Equal(t, words(more), words(l.memory.stored()))
			})
		})
	}
}

// While records are read again, a list of the newest that is empty, as of another server behind the same URL, does not
// make the first page the end.
func TestReadingAgainEndsAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c"))
		stop := l.run()
		pass(time.Minute)
		again := numbered("b", 200)
		l.service.become(again)
		l.service.intercept(func(request string) error {
			cleared, going := l.memory.rereads()
			if cleared > 0 && !going && len(l.memory.stored()) < len(again) {
				t.Errorf("the reading ended after %d records", len(l.memory.stored()))
			}
			if cleared > 0 && request == "newest" && len(l.memory.stored()) == 0 {
				l.service.become(nil)
			} else {
				l.service.become(again)
			}
			return nil
		})
		pass(settled)
		require.NoError(t, stop())
		rereads, going := l.memory.rereads()
		require.Equal(t, 1, rereads)
		require.False(t, going)
		require.Equal(t, words(again), words(l.memory.stored()))
	})
}

// A service that takes its history in again, in another order, is waited for until it has what was the newest.
func TestAServiceThatIsRebuilt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 60))
		stop := l.run()
		pass(time.Minute)
		all := l.service.all()
		rebuilt := slices.Clone(all)
		slices.Reverse(rebuilt[:59])
		for n := range rebuilt {
			rereads, _ := l.memory.rereads()
			require.Zero(t, rereads)
			l.service.become(rebuilt[:n])
			pass(20 * time.Second)
		}
		l.service.become(rebuilt)
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(rebuilt), words(l.memory.stored()))
		rereads, going := l.memory.rereads()
		require.Equal(t, 1, rereads)
		require.False(t, going)
	})
}

func TestABackfillingServiceIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("x y z"))
		l.service.describes(ledger.TransactionsService{Backfilling: true})
		stop := l.run()
		pass(10 * time.Minute)
		require.Equal(t, l.service.requests(""), l.service.requests("describe"), "nothing else is asked for")
		l.waits("the service is still backfilling its own history")
		l.service.become(history("a b c x y z"))
		l.service.describes(ledger.TransactionsService{})
		pass(longestWait)
		require.NoError(t, stop())
		require.Equal(t, "a b c x y z", words(l.memory.stored()))
		require.Equal(t, 1, l.recovered)
	})
}

// A reading that has to come to its end is not at its end because the service has lost everything.
func TestUntilCurrentDoesNotEndWhileTheHistoryIsReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c d"))
		l.readAll()
		l.set = func(h *Transactions) { h.UntilCurrent = true }
		l.service.become(history("d c b a"))
		l.memory.after = func(write string) error {
			if write == "clear" {
				l.service.become(nil)
			}
			return nil
		}
		l.run()
		pass(time.Hour)
		l.waits("the service is behind: its history is empty, and records of it were stored")
		_, going := l.memory.rereads()
		require.True(t, going)
		l.service.become(history("d c b a"))
		pass(time.Minute)
		require.NoError(t, l.ended())
		_, going = l.memory.rereads()
		require.False(t, going)
		require.Equal(t, "d c b a", words(l.memory.stored()))
	})
}

// A service that never stays the same is not read again and again at full speed, and it is said.
func TestAServiceThatAlwaysChangesIsNotRereadWithoutAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 60))
		one, other := l.service.all(), l.service.all()
		for i := 1; i < len(other); i += 2 {
			other[i-1], other[i] = other[i], other[i-1]
		}
		asked := 0
		l.service.before = func(request string) error {
			if asked++; asked%7 == 0 {
				l.service.become(one)
				one, other = other, one
			}
			return nil
		}
		stop := l.run()
		pass(6 * time.Hour)
		rereads, _ := l.memory.rereads()
		require.LessOrEqual(t, rereads, int(6*time.Hour/clearEvery)+1)
		require.Less(t, l.service.requests("after"), 6*3600)
		require.Positive(t, l.told.lines("the history must be read again once more, a while after the last time: "))
		// In the end it stays. Until it has a new record, one that lacks the last stored one passes for one that is behind.
		l.service.intercept(nil)
		l.service.grow(record("new", ""))
		pass(time.Hour)
		require.NoError(t, stop())
		require.Equal(t, count(l.service.all()), count(l.memory.stored()))
		_, going := l.memory.rereads()
		require.False(t, going)
	})
}

// A service that ignores what it is asked for stands behind a proxy that drops the requests' bodies, for example.
func TestAServiceThatIgnoresTheCursorIsAProblem(t *testing.T) {
	for _, stored := range []int{0, 10, 150} {
		for _, page := range []int{1, 2, 10, 1000} {
			t.Run(fmt.Sprintf("%d stored, pages of %d", stored, page), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newTransactionsLoop(t, numbered("a", stored))
					l.readAll()
					l.service.become(numbered("a", 200))
					l.service.pageSize = page
					l.service.after = func(string) []ledger.Record { return l.service.page(0) }
					if page == 1000 {
						l.service.pageSize = 30
					}
					l.run()
					pass(time.Hour)
					var problem *ledger.Problem
					require.ErrorAs(t, l.ended(), &problem)
					require.Contains(t, problem.What, "the service serves the beginning of its history when it is asked to read on after event id ")
					require.Contains(t, problem.Do, "--scan-url")
					rereads, _ := l.memory.rereads()
					require.Zero(t, rereads, "what is stored stays")
					for word, n := range count(l.memory.stored()) {
						require.Equal(t, 1, n, word)
					}
				})
			})
		}
	}
}

// A cursor that is refused while nothing else is answered either is no cursor to give up.
func TestAnOutageIsNotARefusedCursor(t *testing.T) {
	for name, newest := range map[string]bool{"nothing is answered": false, "the newest can be read": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, numbered("a", 160))
				l.readAll()
				l.service.grow(history("x y")...)
				l.service.before = func(request string) error {
					switch {
					case request == "describe" || newest && request == "newest":
						return nil
					case request == "newest":
						return errAway
					default:
						return fmt.Errorf("HTTP status 500: %w", ledger.ErrCursorRefused)
					}
				}
				asked := l.service.requests("after")
				stop := l.run()
				pass(time.Hour)
				require.Zero(t, l.recovered)
				require.Less(t, l.service.requests("after")-asked, map[bool]int{false: 250, true: 250 * (mostRefused + 1)}[newest])
				l.service.intercept(nil)
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				require.Equal(t, 1, l.recovered)
			})
		})
	}
}

// Two records of one id may be further apart than what is known: the service fails for it as a cursor.
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
					rereads, going := l.memory.rereads()
					require.Zero(t, rereads)
					require.False(t, going)
				})
			})
		}
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
				rereads, going := l.memory.rereads()
				require.Equal(t, 1, rereads)
				require.False(t, going)
				for word, n := range count(l.memory.stored()) {
					require.Equal(t, 1, n, word)
				}
			})
		})
	}
}

// moved is a history with one record at another position.
func moved(records []ledger.Record, from, to int) []ledger.Record {
	one := records[from]
	return slices.Insert(slices.Delete(slices.Clone(records), from, from+1), to, one)
}
