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

// An unknown cursor is answered with an empty page, as if nothing followed.
func TestAnUnknownCursorIsNotTakenForCaughtUp(t *testing.T) {
	for name, restart := range map[string]bool{"after a restart": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, before(history("a b c d e f")))
				all := l.service.all()
				stop := l.run()
				pass(time.Minute)
				if restart {
					require.NoError(t, stop())
				}
				l.service.become(append(all[:20:20], history("p q r s t")...))
				if restart {
					stop = l.run()
				}
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				rereads, shown, going := l.memory.generations()
				require.Equal(t, 1, rereads)
				require.Equal(t, 1, shown)
				require.False(t, going)
				require.Equal(t, []string{`rereading: the service knows none of the event ids that were stored last, such as "f", and its newest, "t", is not stored`}, l.heard())
				require.Equal(t, 1, l.told.lines("reading the history again from its beginning"))
				require.Equal(t, 1, l.told.lines("the service shows fewer records than before"))
			})
		})
	}
}

// The oldest ids of the window are unknown to a service whose history begins later, but not the newest.
func TestAServiceWhoseHistoryBeginsLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.service.pageSize = 1000
		l.readAll()
		want := append(l.service.all(), numbered("b", 30)...)
		l.service.become(want[180:])
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(want), words(l.memory.stored()))
		require.Empty(t, l.heard())
	})
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
				rereads, shown, going := l.memory.generations()
				require.False(t, going)
				require.Equal(t, 1, rereads)
				require.Equal(t, 1, shown)
				require.Zero(t, l.told.lines("the service shows fewer records"))
				// The window is of the new order by now.
				l.service.grow(history("z z")...)
				pass(settled)
				require.NoError(t, stop())
				require.Equal(t, theirs+" z z", words(l.memory.stored()))
				rereads, _, _ = l.memory.generations()
				require.Equal(t, 1, rereads)
			})
		})
	}
}

// The record at a stored position has the same event id, and other content.
func TestAnotherRecordUnderAStoredEventID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c"))
		l.readAll()
		l.service.become(history("a b=other c d"))
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, "a b=other c d", words(l.memory.stored()))
		require.Equal(t, []string{`rereading: after event id "a" the service has another record of event id "b" than the one that was stored`}, l.heard())
	})
}

// It changes while the history is read: what was read before and comes again later must not be stored twice, and
// what was before and never seen must not be missed.
func TestTheServiceChangesBetweenTwoPages(t *testing.T) {
	for name, theirs := range map[string]string{
		"an older record follows": "b c d e f g h i a j k l m n",
		"a newer one went before": "a b c d e f g j h i k l m n",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				tail := numbered("tail", 40) // the end alone would not show it
				l := newTransactionsLoop(t, append(history("a b c d e f g h i j k l m n"), tail...))
				l.service.pageSize = 9
				pages := 0
				l.service.before = func(request string) error {
					if strings.HasPrefix(request, "after") {
						if pages++; pages == 2 {
							l.service.become(append(history(theirs), tail...))
						}
					}
					return nil
				}
				stop := l.run()
				pass(settled)
				require.NoError(t, stop())
				require.Equal(t, count(l.service.all()), count(l.memory.stored()))
				rereads, _, going := l.memory.generations()
				require.Equal(t, 1, rereads)
				require.False(t, going)
			})
		})
	}
}

// What comes again far behind its place is looked for among what is stored: whether it has a date, which is not later
// than others, or none.
func TestARecordComesAgainFarBehindItsPlace(t *testing.T) {
	for name, place := range map[string]int{"with a date": 1, "without one": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				all := numbered("a", 3*transactionsWindow)
				require.Equal(t, place > 0, all[place].Date.Valid)
				l := newTransactionsLoop(t, all)
				l.service.pageSize = 2 * transactionsOverlap
				l.service.before = func(request string) error {
					if len(l.memory.stored()) > transactionsWindow+transactionsOverlap && len(l.service.all()) == len(all) {
						theirs := slices.Concat(all[:place], all[place+1:2*transactionsWindow], all[place:place+1], all[2*transactionsWindow:])
						l.service.become(append(theirs, record("x", "")))
					}
					return nil
				}
				stop := l.run()
				pass(settled)
				require.NoError(t, stop())
				require.Equal(t, count(l.service.all()), count(l.memory.stored()))
				rereads, _, _ := l.memory.generations()
				require.Equal(t, 1, rereads)
			})
		})
	}
}

func TestAnEarlierEndIsWaitedFor(t *testing.T) {
	all := append(numbered("a", 140), history("x x y")...)
	for name, c := range map[string]struct {
		shown int
		why   string
	}{
		"a replica lags":     {shown: 137, why: `the service is behind: the newest stored record, "y", is not in its history yet`},
		"it lost much":       {shown: 5, why: `the service is behind: the newest stored record, "y", is not in its history yet`},
		"one of two copies":  {shown: 141, why: `the service is behind: the newest stored record, "y", is not in its history yet`},
		"everything is gone": {shown: 0, why: `the service is behind: the newest stored record, "y", is not in its history yet`},
	} {
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
					l.service.become(all[:c.shown+1])
					asked := l.service.requests("describe")
					pass(10 * time.Minute)
					require.InDelta(t, 60, l.service.requests("describe")-asked, 1, "looked at every 10 s")
					require.Equal(t, []string{"waiting: " + c.why}, l.heard(), "said once")
					require.Equal(t, 1, l.told.lines("waiting for the service"))
					require.Equal(t, words(all), words(l.memory.stored()))

					l.service.become(append(slices.Clone(all), history("z")...))
					pass(time.Minute)
					require.NoError(t, stop())
					require.Equal(t, []string{"waiting: " + c.why, "waiting: "}, l.heard())
					require.Equal(t, words(all)+" z", words(l.memory.stored()))
					rereads, _, _ := l.memory.generations()
					require.Zero(t, rereads)
					require.Empty(t, l.retried())
				})
			})
		}
	}
}

// It lost its end and went on otherwise: as soon as it shows a record that is not stored, it is no longer waited for.
func TestAHistoryThatForked(t *testing.T) {
	for name, past := range map[string]func([]ledger.Transaction) []ledger.Transaction{
		"long":  before,
		"short": func(records []ledger.Transaction) []ledger.Transaction { return records },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newTransactionsLoop(t, past(history("a b c d d e f g h")))
				stop := l.run()
				pass(time.Minute)
				l.service.become(past(history("a b c")))
				pass(time.Minute)
				require.Len(t, l.heard(), 1)
				l.service.become(past(history("a b c d=other d x f")))
				pass(time.Minute)
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				// What was gone comes again, later: it is not stored twice.
				l.service.grow(history("g y h")...)
				pass(settled)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
			})
		})
	}
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
			rereads, _, _ := l.memory.generations()
			require.Zero(t, rereads)
			l.service.become(rebuilt[:n])
			pass(20 * time.Second)
		}
		l.service.become(rebuilt)
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(rebuilt), words(l.memory.stored()))
		rereads, shown, going := l.memory.generations()
		require.Equal(t, 1, rereads)
		require.Equal(t, 1, shown)
		require.False(t, going)
	})
}

// It may also be complete only long after it has shown something that is not stored.
func TestAServiceThatIsRebuiltWithMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 60))
		stop := l.run()
		pass(time.Minute)
		rebuilt := append([]ledger.Transaction{record("new", "")}, l.service.all()...)
		slices.Reverse(rebuilt[1:])
		for n := range rebuilt {
			l.service.become(rebuilt[:n+1])
			pass(20 * time.Second)
		}
		pass(3 * time.Hour)
		require.NoError(t, stop())
		require.Equal(t, count(rebuilt), count(l.memory.stored()))
		_, _, going := l.memory.generations()
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
		require.InDelta(t, 20, l.service.requests("describe"), 1)
		require.Equal(t, []string{"waiting: the service is still backfilling its own history"}, l.heard())
		l.service.become(history("a b c x y z"))
		l.service.describes(ledger.TransactionsService{})
		pass(backfillingEvery)
		require.NoError(t, stop())
		require.Equal(t, "a b c x y z", words(l.memory.stored()))
		require.Equal(t, "waiting: ", l.heard()[1])
	})
}

// The process ends while the history is read again: that continues where it was.
func TestARereadingGoesOnAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 95))
		l.readAll()
		shuffled := l.service.all()
		slices.Reverse(shuffled)
		l.service.become(append(shuffled, history("x x")...))
		for range 8 {
			appends := 0
			l.memory.before = func(write string) error {
				if write == "append" {
					if appends++; appends > 2 {
						return errAway
					}
				}
				return nil
			}
			stop := l.run()
			pass(time.Minute)
			require.NoError(t, stop())
		}
		l.memory.before = nil
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		rereads, shown, _ := l.memory.generations()
		require.Equal(t, 1, rereads)
		require.Equal(t, 1, shown)
		require.Equal(t, count(l.service.all()), count(l.memory.stored()))
		require.Empty(t, l.memory.mistakes)
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
			if write == "begin" {
				l.service.become(nil)
			}
			return nil
		}
		l.run()
		pass(time.Hour)
		require.Equal(t, "waiting: the service is behind: its history is empty, and records of it are stored", l.heard()[1])
		_, _, going := l.memory.generations()
		require.True(t, going)
		l.service.become(history("d c b a"))
		pass(time.Minute)
		require.NoError(t, l.ended())
		_, _, going = l.memory.generations()
		require.False(t, going)
		require.Equal(t, "d c b a", words(l.memory.stored()))
	})
}

// The service is another one again when the process comes back, and what stands before all that was read again must not
// be missed.
func TestARereadingThatGoesOnWithAnotherService(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c d e f g h i j"))
		l.readAll()
		l.service.become(history("j i h g f e d c b a"))
		l.service.pageSize = 1
		l.memory.before = func(write string) error {
			if write == "append" && len(l.memory.records) > 10 {
				return errAway
			}
			return nil
		}
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Len(t, l.memory.records, 11)

		l.memory.before = nil
		l.service.become(history("x j a b c d e f g h i y"))
		l.service.pageSize = 10
		stop = l.run()
		pass(time.Hour)
		require.NoError(t, stop())
		require.Equal(t, count(l.service.all()), count(l.memory.stored()))
	})
}
