package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

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
		pass(24 * time.Hour)
		rereads, _, _ := l.memory.generations()
		require.LessOrEqual(t, rereads, 32)
		require.Less(t, l.service.requests("after"), 24*3600)
		require.Contains(t, strings.Join(l.heard(), "\n"), "waiting: the history must be read again once more, a while after the last time: ")
		// In the end it stays.
		l.service.intercept(nil)
		pass(3 * time.Hour)
		require.NoError(t, stop())
		require.Equal(t, count(one), count(l.memory.stored()))
		_, _, going := l.memory.generations()
		require.False(t, going)
	})
}

func TestAServiceThatIgnoresTheCursorIsAProblem(t *testing.T) {
	for _, stored := range []int{0, 10, 150} {
		for _, page := range []int{1, 2, 10, 1000} {
			t.Run(fmt.Sprintf("%d stored, pages of %d", stored, page), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newTransactionsLoop(t, numbered("a", stored))
					l.readAll()
					l.service.become(numbered("a", 200))
					l.service.pageSize = page
					l.service.after = func(string) []ledger.Transaction { return l.service.page(0) }
					if page == 1000 {
						l.service.pageSize = 30
					}
					l.run()
					pass(time.Hour)
					var problem *ledger.Problem
					require.ErrorAs(t, l.ended(), &problem)
					require.Contains(t, problem.What, "the service serves the beginning of its history when it is asked to read on after event id ")
					require.Contains(t, problem.Do, "--scan-url")
					for word, n := range count(l.memory.stored()) {
						require.Equal(t, 1, n, word)
					}
				})
			})
		}
	}
}

func TestAServiceThatIgnoresTheOrderIsAProblem(t *testing.T) {
	for name, ascending := range map[string]bool{"always ascending": true, "always descending": false} {
		for _, records := range []string{"a b", "a b c d e f g h i j k l m n"} {
			t.Run(name+" "+records, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newTransactionsLoop(t, history(records))
					if !ascending {
						slices.Reverse(l.service.records)
					}
					l.service.newest = func(n int) []ledger.Transaction { return l.service.records[:min(n, len(l.service.records))] }
					l.run()
					pass(time.Minute)
					var problem *ledger.Problem
					require.ErrorAs(t, l.ended(), &problem)
					require.Contains(t, problem.What, "it ignores the order that it is asked for")
					require.Empty(t, words(l.memory.stored()))
				})
			})
		}
	}
}

// It gives fewer of the newest records than share an id: they do not show whether this is the end.
func TestTooFewNewestRecordsProveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c d d"))
		l.service.newestLimit = 1
		stop := l.run()
		pass(time.Minute)
		require.Zero(t, l.current())
		l.service.grow(history("d")...)
		pass(time.Minute)
		require.Equal(t, "a b c d d d", words(l.memory.stored()))
		require.Zero(t, l.current())
		l.service.grow(history("e")...)
		pass(time.Minute)
		require.Equal(t, "a b c d d d e", words(l.memory.stored()))
		require.Positive(t, l.current())
		require.NoError(t, stop())
	})
}

// Newest records and pages come from two replicas that don't agree: nothing is stored twice, and it is said.
func TestAServiceThatContradictsItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, history("a b c"))
		ahead := history("a b c d e")
		l.service.newest = func(n int) []ledger.Transaction {
			newest := slices.Clone(ahead[max(0, len(ahead)-n):])
			slices.Reverse(newest)
			return newest
		}
		stop := l.run()
		pass(time.Hour)
		require.Equal(t, "a b c", words(l.memory.stored()))
		require.ErrorContains(t, errors.Join(l.retried()...), `the service has "c" and nothing after it, but its newest record is "e", which is not stored`)
		require.Less(t, len(l.retried()), 200)
		l.service.become(ahead)
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, "a b c d e", words(l.memory.stored()))
	})
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
					default:
						return fmt.Errorf("HTTP status 500: %w", ledger.ErrCursorRefused)
					}
				}
				asked := l.service.requests("after")
				stop := l.run()
				pass(time.Hour)
				require.Empty(t, l.heard())
				require.Less(t, l.service.requests("after")-asked, map[bool]int{false: 250, true: 250 * (mostRefused + 1)}[newest])
				l.service.intercept(nil)
				pass(time.Minute)
				require.NoError(t, stop())
				require.Equal(t, words(l.service.all()), words(l.memory.stored()))
				require.Equal(t, []string{"recovered"}, l.heard())
			})
		})
	}
}

// For some seconds it is only the beginning and the newest that can be read: that is no reason to read everything
// again.
func TestAShortOutageOfAllCursors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 160))
		l.readAll()
		l.service.grow(history("x y")...)
		over := time.Now().Add(firstWait)
		l.service.before = func(request string) error {
			if time.Now().Before(over) && strings.HasPrefix(request, "after #") {
				return fmt.Errorf("HTTP status 500: %w", ledger.ErrCursorRefused)
			}
			return nil
		}
		stop := l.run()
		pass(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, words(l.service.all()), words(l.memory.stored()))
		require.NotEmpty(t, l.retried())
		require.Equal(t, []string{"recovered"}, l.heard())
	})
}

// Every id of the window is refused for ever, and the history can be read from its beginning.
func TestNoEventIDIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTransactionsLoop(t, numbered("a", 300))
		l.readAll()
		doubled := l.service.all()[:60]
		for _, record := range l.service.all()[60:] {
			doubled = append(doubled, record, record)
		}
		l.service.become(append(doubled, record("x", "")))
		l.service.pageSize = 1000
		stop := l.run()
		pass(time.Hour)
		require.NoError(t, stop())
		require.Equal(t, count(l.service.all()), count(l.memory.stored()))
		rereads, _, going := l.memory.generations()
		require.Equal(t, 1, rereads)
		require.False(t, going)
		require.Contains(t, l.heard()[0], "rereading: the service fails to read on after each event id that it was asked for")
	})
}
