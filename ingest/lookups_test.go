package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func TestLooksUpWhatIsWanted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wanted := ids(60)
		k := newLookups(t, wanted...)
		k.source.answer = func(id string) error {
			if id == wanted[7] {
				return fmt.Errorf("asked: %w", ledger.ErrNotFound)
			}
			return nil
		}
		statuses := map[ledger.LookupStatus]int{}
		k.Saved = func(status ledger.LookupStatus) { statuses[status]++ }
		began := time.Now()
		stop := k.run()
		pass(time.Minute)
		stop()
		require.Equal(t, wanted, k.source.requests(), "oldest first, each once")
		require.Equal(t, []string{"alice"}, k.source.parties)
		for i, at := range k.source.at {
			require.GreaterOrEqual(t, at.Sub(began), time.Duration(i)*time.Second/5, "more than five in a second")
		}
		require.Equal(t, map[ledger.LookupStatus]int{ledger.LookupFound: 59, ledger.LookupNotFound: 1}, statuses)
		require.Len(t, k.memory.outcomes(), 60)
		for _, batch := range k.memory.batches() {
			require.LessOrEqual(t, len(batch), 5)
			for _, lookup := range batch {
				if lookup.Status == ledger.LookupFound {
					require.Equal(t, "of "+lookup.ContractID, lookup.Contract.PackageName)
				} else {
					require.Nil(t, lookup.Contract)
				}
				require.WithinRange(t, lookup.At, began, began.Add(15*time.Second))
			}
		}
		require.Equal(t, []string{"lookups: "}, k.memory.recorded(), "that it works is told once")
	})
}

// Without something to do the database is asked now and then, and after commits, but not at each of them.
func TestIdleLookups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t)
		stop := k.run()
		pass(time.Hour)
		require.LessOrEqual(t, k.memory.looks(), 61)
		require.Empty(t, k.memory.recorded(), "it did nothing")

		before := k.memory.looks()
		for range 1000 { // a busy ledger
			select {
			case k.wake <- struct{}{}:
			default:
			}
			time.Sleep(50 * time.Millisecond)
		}
		require.InDelta(t, 10, k.memory.looks()-before, 1)

		pass(6 * time.Second)
		k.memory.want("late")
		k.wake <- struct{}{}
		pass(5 * time.Second)
		require.Equal(t, []string{"late"}, k.source.requests())
		k.memory.want("later") // nobody says so
		pass(idleLookups)
		require.Equal(t, []string{"late", "later"}, k.source.requests())
		stop()
	})
}

// An answer that is of no use however often it is asked for is an outcome too, but not one of a moment.
func TestAnAnswerOfNoUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, "a", "c", "b")
		k.source.answer = func(id string) error {
			if id == "b" {
				return undecodable("no \x00 template")
			}
			return nil
		}
		stop := k.run()
		pass(4*unusableWait - time.Second)
		require.Equal(t, map[string]ledger.LookupStatus{"a": ledger.LookupFound, "c": ledger.LookupFound}, k.memory.outcomes())
		require.True(t, k.memory.failed())
		require.Equal(t, 1, k.memory.lines("a background task failed"))
		require.Contains(t, k.memory.recorded()[0], "no ? template")
		pass(5 * time.Minute)
		require.Equal(t, ledger.LookupUnusable, k.memory.outcomes()["b"])
		require.Equal(t, unusableTries, k.source.count("b"))
		last := k.memory.batches()[len(k.memory.batches())-1]
		require.Equal(t, "response: no ? template", last[0].Reason)
		require.False(t, k.memory.failed())
		pass(time.Hour)
		require.Len(t, k.source.requests(), 2+unusableTries)
		stop()
	})
}

func TestAnAnswerOfNoUseThatHeals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, "a")
		k.source.answer = func(id string) error {
			if k.source.count(id) < unusableTries {
				return &UnusableError{Err: &ledger.Problem{What: "cut by a proxy"}}
			}
			return nil
		}
		stop := k.run()
		pass(time.Hour)
		stop()
		require.Equal(t, map[string]ledger.LookupStatus{"a": ledger.LookupFound}, k.memory.outcomes())
	})
}

// Where every answer is of no use, for a while, no contract is spoilt, and the server is not asked more and more often.
func TestAnswersThatAreAllOfNoUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(300)...)
		over := time.Now().Add(15 * time.Minute)
		k.source.answer = func(string) error {
			if time.Now().Before(over) {
				return undecodable("<html>please log in</html>")
			}
			return nil
		}
		stop := k.run()
		pass(time.Until(over))
		require.Empty(t, k.memory.outcomes())
		require.Less(t, len(k.source.requests()), 15*5+10)
		pass(10 * time.Minute)
		stop()
		for id, status := range k.memory.outcomes() {
			require.Equal(t, ledger.LookupFound, status, id)
		}
		require.Len(t, k.memory.outcomes(), 300)
	})
}

// otherContract answers with another contract than the one asked for.
type otherContract struct{ asked int }

func (o *otherContract) ContractByID(context.Context, string, []string) (ledger.Contract, ledger.JSON, error) {
	o.asked++
	return ledger.Contract{ContractID: "another\n"}, nil, nil
}

func TestAnotherContractIsNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, "a")
		other := &otherContract{}
		k.Source = other
		stop := k.run()
		pass(time.Hour)
		stop()
		require.Equal(t, unusableTries, other.asked)
		require.Equal(t, map[string]ledger.LookupStatus{"a": ledger.LookupUnusable}, k.memory.outcomes())
		require.Equal(t, `asked for contract "a", the answer is of contract "another\n"`, k.memory.batches()[0][0].Reason)
	})
}

// A server that is away for a week is asked on when it is back, and the log is not filled meanwhile.
func TestLookupsSurviveAWeekAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wanted := ids(40)
		k := newLookups(t, wanted...)
		back := time.Now().Add(7 * 24 * time.Hour)
		k.source.answer = func(string) error {
			if time.Now().Before(back) {
				return errAway
			}
			return nil
		}
		stop := k.run()
		pass(time.Until(back) - time.Second)
		require.Empty(t, k.memory.outcomes())
		require.True(t, k.memory.failed())
		require.Less(t, len(k.source.requests()), 7*24*60*5)
		require.Equal(t, 1, k.memory.lines("a background task failed"))
		require.Less(t, len(k.memory.recorded()), 7*24*60+2)
		require.Contains(t, k.memory.recorded()[0], ": away")
		pass(time.Minute)
		require.Len(t, k.memory.outcomes(), 40)
		require.False(t, k.memory.failed())
		require.Equal(t, 1, k.memory.lines("working again"))
		require.Equal(t, "lookups: ", k.memory.recorded()[len(k.memory.recorded())-1])
		stop()
	})
}

// A contract that the server fails on, whenever it is asked for, does not keep the others waiting.
func TestOneContractDoesNotHoldUpTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wanted := ids(300)
		k := newLookups(t, wanted...)
		k.source.answer = func(id string) error {
			if strings.HasSuffix(id, "00") || id < wanted[30] { // more than a batch of them, and the oldest
				return errAway
			}
			return nil
		}
		stop := k.run()
		pass(time.Hour)
		outcomes := k.memory.outcomes()
		require.Len(t, outcomes, 300-32)
		require.NotContains(t, outcomes, wanted[0])
		require.True(t, k.memory.failed())
		k.memory.want("new")
		k.wake <- struct{}{}
		pass(longestWait + wantedEvery)
		require.Contains(t, k.memory.outcomes(), "new")
		stop()
	})
}

// One that fails among others that don't is a failing task, and not by turns a working and a failing one.
func TestWhatIsPutOffSaysNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, "always away")
		k.source.answer = func(id string) error {
			if id == "always away" {
				return errAway
			}
			return nil
		}
		stop := k.run()
		pass(time.Minute)
		for _, id := range ids(10) {
			k.memory.want(id)
			pass(time.Minute)
		}
		stop()
		require.Len(t, k.memory.outcomes(), 10)
		require.NotContains(t, k.memory.recorded(), "lookups: ", "told that it works")
	})
}

// What fails for long is not kept in mind without end, nor asked of the database.
func TestTroublesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(3*mostFailed)...)
		k.source.answer = func(string) error { return errAway }
		stop := k.run()
		pass(3 * mostFailed * longestWait)
		stop()
		require.Greater(t, len(k.source.requests()), 2*mostFailed)
		require.LessOrEqual(t, k.memory.limit, mostFailed+k.Rate*int(lookupStretch/time.Second))
	})
}

// However many contracts have answers of no use, all are given up in time, and those behind them are answered.
func TestManyAnswersOfNoUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		useless := ids(mostFailed + 100)
		k := newLookups(t, append(useless, "behind them")...)
		k.source.answer = func(id string) error {
			if id != "behind them" {
				return undecodable("no template")
			}
			return nil
		}
		stop := k.run()
		pass(time.Duration(len(useless)*unusableTries) * longestWait)
		stop()
		require.Len(t, k.memory.outcomes(), len(useless)+1)
		require.Equal(t, ledger.LookupFound, k.memory.outcomes()["behind them"])
		require.LessOrEqual(t, k.memory.limit, mostFailed+k.Rate*int(lookupStretch/time.Second))
	})
}

// Where nothing is wanted any more, nothing fails any more.
func TestATroubleThatIsNoLongerWanted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, "a")
		k.source.answer = func(string) error { return errAway }
		k.memory.wantedErr = func() error {
			if len(k.source.requests()) < 10 {
				return nil
			}
			k.memory.queue = nil // its creation was seen
			return nil
		}
		stop := k.run()
		pass(time.Second)
		require.True(t, k.memory.failed())
		pass(10 * longestWait)
		require.False(t, k.memory.failed())
		require.Equal(t, "lookups: ", k.memory.recorded()[len(k.memory.recorded())-1])
		stop()
	})
}

// What an operator must cure rests the task; the queue stays, and it is said once.
func TestLookupsRest(t *testing.T) {
	for name, failure := range map[string]error{
		"no right":    fmt.Errorf("ask: %w", &ledger.Problem{What: "the user may not read as alice", Do: "grant CanReadAs"}),
		"not offered": fmt.Errorf("ask: %w", ledger.ErrNotOffered),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newLookups(t, ids(10)...)
				granted := time.Now().Add(3 * time.Hour)
				k.source.answer = func(string) error {
					if time.Now().Before(granted) {
						return failure
					}
					return nil
				}
				stop := k.run()
				pass(3*time.Hour - time.Second)
				require.Len(t, k.source.requests(), 18, "every ten minutes")
				require.Equal(t, 1, k.memory.lines("a background task failed"))
				require.Contains(t, k.memory.recorded()[0], Reason(failure))
				require.Empty(t, k.memory.outcomes())
				pass(restFor)
				require.Len(t, k.memory.outcomes(), 10)
				stop()
			})
		})
	}
}

// What the database does not take is given up for the contract it belongs to, and for no other.
func TestALookupThatTheDatabaseRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wanted := ids(10)
		k := newLookups(t, wanted...)
		k.memory.saveErr = func(lookups []ledger.Lookup) error {
			for _, lookup := range lookups {
				if lookup.ContractID == wanted[4] && lookup.Contract != nil {
					return &ledger.Problem{What: "the database refuses the rows", Err: errors.New("NUL in a party")}
				}
			}
			return nil
		}
		saved := 0
		k.Saved = func(ledger.LookupStatus) { saved++ }
		stop := k.run()
		pass(time.Minute)
		stop()
		require.Equal(t, wanted, k.source.requests())
		outcomes := k.memory.outcomes()
		require.Len(t, outcomes, 10)
		require.Equal(t, 10, saved)
		require.Equal(t, ledger.LookupUnusable, outcomes[wanted[4]])
		require.Contains(t, k.memory.batches()[4][0].Reason, "NUL in a party")
	})
}

// A database that refuses everything rests the task and loses nothing of the queue.
func TestADatabaseThatRefusesLookups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(3)...)
		k.memory.saveErr = func([]ledger.Lookup) error { return &ledger.Problem{What: "read-only"} }
		k.memory.away = errAway
		stop := k.run()
		pass(time.Hour)
		require.Less(t, len(k.source.requests()), 30)
		require.Empty(t, k.memory.batches())
		k.memory.mu.Lock()
		k.memory.saveErr = nil
		k.memory.mu.Unlock()
		pass(restFor)
		require.Len(t, k.memory.outcomes(), 3)
		stop()
	})
}

// Whatever fails before or after it had its effect: in the end all is looked up.
func TestLookupsUnderFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wanted := ids(200)
		k := newLookups(t, wanted...)
		f := newFaults(1, 0.3)
		fails := func() error { return f.around(func() error { return nil }) }
		k.source.answer = func(string) error { return fails() }
		k.memory.wantedErr = fails
		k.memory.saveErr = func([]ledger.Lookup) error { return fails() }
		stop := k.run()
		pass(10 * time.Minute)
		f.stop()
		pass(10 * time.Minute)
		stop()
		require.ElementsMatch(t, wanted, slices.Collect(maps.Keys(k.memory.outcomes())))
	})
}

// A stop waits for no server that is silent, no wait and no rest; what was learned is stored.
func TestStopOfLookups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(20)...)
		stop := k.run()
		pass(3*time.Second + 10*time.Millisecond)
		require.Len(t, k.memory.outcomes(), 15)
		began := time.Now()
		stop()
		require.Zero(t, time.Since(began))
		require.Len(t, k.source.requests(), 16)
		require.Len(t, k.memory.outcomes(), 16, "what was asked for would be asked for again")

		for _, failure := range []error{errAway, ledger.ErrNotOffered} {
			k = newLookups(t, "a")
			k.source.answer = func(string) error { return failure }
			stop = k.run()
			pass(time.Hour)
			began = time.Now()
			stop()
			require.Zero(t, time.Since(began))
		}

		k = newLookups(t, "a")
		k.Source = silent{}
		stop = k.run()
		synctest.Wait()
		began = time.Now()
		stop()
		require.Zero(t, time.Since(began))
		require.Empty(t, k.memory.recorded(), "being told to end is no failure")
		require.Zero(t, k.memory.lines("failed"))
	})
}

// What was learned may take a moment to store when the task has to end, and no longer.
func TestStopWhileTheDatabaseHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(20)...)
		sink := &hangingSink{lookupMemory: k.memory}
		k.Sink = sink
		stop := k.run()
		pass(time.Hour)
		require.Equal(t, 1, sink.saving)
		began := time.Now()
		stop()
		require.Equal(t, graceFor, time.Since(began))
		require.Empty(t, k.memory.recorded(), "being told to end is no failure")
	})
}

// hangingSink stores nothing before its context ends.
type hangingSink struct {
	*lookupMemory
	saving int
}

func (s *hangingSink) SaveLookups(ctx context.Context, _ []ledger.Lookup) error {
	s.saving++
	<-ctx.Done()
	return ctx.Err()
}

// An answer that does not come to its end is given up, it is said, and the other contracts have their turn.
func TestALookupThatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(10)...)
		k.Source = dripping{of: k.memory.queue[0], others: k.source}
		stop := k.run()
		pass(lookupPatience + longestWait + 10*lookupStretch)
		require.Len(t, k.memory.outcomes(), 9)
		require.Contains(t, k.memory.recorded()[0], "not answered in full after 1m0s")
		pass(24 * time.Hour)
		stop()
		require.Len(t, k.memory.outcomes(), 9, "it may be the server")
	})
}

// dripping does not come to an end with one contract. Its error is like one about an answer that came.
type dripping struct {
	of     string
	others LookupSource
}

func (d dripping) ContractByID(ctx context.Context, id string, parties []string) (ledger.Contract, ledger.JSON, error) {
	if id != d.of {
		return d.others.ContractByID(ctx, id, parties)
	}
	<-ctx.Done()
	return ledger.Contract{}, nil, &UnusableError{Err: ctx.Err()}
}

// What a slow server has answered does not wait for the rest of a stretch.
func TestOutcomesOfASlowServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newLookups(t, ids(20)...)
		k.source.answer = func(string) error { time.Sleep(10 * time.Second); return nil }
		stop := k.run()
		pass(35 * time.Second)
		require.Len(t, k.memory.outcomes(), 3)
		stop()
	})
}

// silent never answers.
type silent struct{}

func (silent) ContractByID(ctx context.Context, _ string, _ []string) (ledger.Contract, ledger.JSON, error) {
	<-ctx.Done()
	return ledger.Contract{}, nil, ctx.Err()
}
