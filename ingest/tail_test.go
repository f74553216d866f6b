package ingest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// A tail that keeps up with a ledger that never rests has caught up, and reports no progress.
func TestATailThatKeepsUpHasCaughtUp(t *testing.T) {
	for name, each := range map[string]time.Duration{"1/s": time.Second, "5/s": 200 * time.Millisecond, "1000/s": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 100)
				l.ledger.pageSize, l.ledger.latency = 200, 5*time.Millisecond
				l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
					time.Sleep(10 * time.Millisecond)
					return l.memory.append(ctx, scope, pages)
				}
				var log bytes.Buffer
				l.Logger = slog.New(slog.NewTextHandler(&log, nil))
				l.Watch.Progress = func(p ledger.Progress) { t.Errorf("told of progress: %+v", p) }
				stop := l.run()
				for passed := time.Duration(0); passed < time.Minute; passed += each {
					time.Sleep(each)
					l.ledger.grow(1)
				}
				pass(time.Second)
				require.Equal(t, l.ledger.last(), l.memory.reached())
				require.NoError(t, stop())
				require.Equal(t, 1, strings.Count(log.String(), "caught up"), log.String())
				require.NotContains(t, log.String(), "progress")
			})
		})
	}
}

// An idle ledger is asked seldom, whatever its server does with a long poll.
func TestAnIdleLedgerCostsFewRequests(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(l *loop)
		most int // a minute
	}{
		"nothing comes":          {func(*loop) {}, 6},
		"blind":                  {func(l *loop) { l.ledger.blind = true }, 6},
		"checkpoints":            {func(l *loop) { l.ledger.checkpointAfter = 500 * time.Millisecond }, 120},
		"blind with checkpoints": {func(l *loop) { l.ledger.blind, l.ledger.checkpointAfter = true, 500*time.Millisecond }, 120},
		"checkpoints now and then": {func(l *loop) {
			l.ledger.checkpointEvery, l.ledger.checkpointAfter = 15*time.Second, 500*time.Millisecond
		}, 120},
		"checkpoints by the clock": {func(l *loop) { l.ledger.checkpointClock = 300 * time.Millisecond }, 150},
		"a checkpoint at once":     {func(l *loop) { l.ledger.checkpointAfter = time.Nanosecond }, 150},
		"ignores the idle time":    {ignoreIdleTime, 150},
		"blind and ignores the idle time": {func(l *loop) {
			l.ledger.blind = true
			ignoreIdleTime(l)
		}, 150},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 5)
				c.set(l)
				stop := l.run()
				pass(time.Minute)
				before := l.ledger.askedAll()
				pass(10 * time.Minute)
				asked := l.ledger.askedAll() - before
				require.LessOrEqual(t, asked, 10*c.most+1)
				require.Positive(t, asked)
				require.NoError(t, stop())
			})
		})
	}
}

// ignoreIdleTime has the server answer at once, whatever time it was given to wait, in the time that an answer takes.
func ignoreIdleTime(l *loop) {
	tail := l.source.tailUpdates
	l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, _ time.Duration) (ledger.Page, bool, error) {
		Sleep(ctx, 5*time.Millisecond)
		return tail(ctx, after, limit, 0)
	}
}

// Offset checkpoints that repeat an offset do not write a transaction each, and are not forgotten either.
func TestRepeatedOffsetCheckpointsAreWrittenNowAndThen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		l.ledger.checkpointAfter = 500 * time.Millisecond
		stop := l.run()
		pass(10 * time.Minute)
		require.Greater(t, l.ledger.asked("tail"), 1000)
		require.LessOrEqual(t, len(l.memory.written()), 62)
		require.NoError(t, stop())
		require.GreaterOrEqual(t, len(l.memory.checkpoints), 50)
	})
}

// A checkpoint of a higher offset moves the watermark at once: nothing of the scope lies before it.
func TestAnOffsetCheckpointMovesTheWatermark(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		l.ledger.checkpointAfter = 500 * time.Millisecond
		stop := l.run()
		pass(time.Minute)
		for range 20 {
			l.ledger.growUnseen(7)
			pass(501 * time.Millisecond)
			require.Equal(t, l.ledger.last(), l.memory.reached())
		}
		require.NoError(t, stop())
	})
}

func TestUntilCurrentStopsAtWhatWasTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 50)
		l.ledger.growUnseen(5)
		wanted := l.ledger.last()
		l.UntilCurrent = true
		l.ledger.latency = time.Second
		read := l.source.readUpdates
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			l.ledger.grow(100) // faster than it is read
			return read(ctx, after, to)
		}
		l.run()
		require.NoError(t, <-l.done)
		require.GreaterOrEqual(t, l.memory.reached(), wanted)
		require.Less(t, l.memory.reached(), l.ledger.last())
		require.Equal(t, l.ledger.all()[:len(l.memory.got())], l.memory.got())
	})
}

// What was the end is found out once: errors in between do not move it.
func TestUntilCurrentKeepsItsEndOverErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 50)
		wanted := l.ledger.last()
		l.UntilCurrent = true
		read := l.source.readUpdates
		failed := false
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			time.Sleep(time.Second)
			if after >= 60 && !failed {
				failed = true
				l.ledger.grow(1000)
				return ledger.Page{}, errAway
			}
			return read(ctx, after, to)
		}
		l.run()
		require.NoError(t, <-l.done)
		require.True(t, failed)
		require.Equal(t, wanted, l.memory.reached())
	})
}

func TestUntilCurrentWhereNothingIsMissing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 50)
		l.memory.at = l.ledger.last()
		l.UntilCurrent = true
		began := time.Now()
		l.run()
		require.NoError(t, <-l.done)
		require.Zero(t, time.Since(began), "waited for a long poll")
		require.Empty(t, l.memory.written())
	})
}

// A server that does not report its end is current at the first read that ends idle with fewer than limit elements.
func TestUntilCurrentOnABlindServer(t *testing.T) {
	for name, updates := range map[string]int{"some": 30, "exactly a full read": mostPolled, "several reads": 2*mostPolled + 1, "none": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, updates)
				l.ledger.blind = true
				l.UntilCurrent = true
				began := time.Now()
				l.run()
				require.NoError(t, <-l.done)
				require.Equal(t, l.ledger.all(), l.memory.got())
				require.Equal(t, blindIdle+LongPoll, time.Since(began), "the long poll tells that this was all")
				// The loop may have begun another long poll before it knew that it was done.
				require.LessOrEqual(t, l.ledger.asked("tail"), updates/mostPolled+3)
			})
		})
	}
}

// A server that is slow with its first element is not one that has no more.
func TestUntilCurrentOnASlowBlindServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 30)
		l.ledger.blind = true
		l.UntilCurrent = true
		tail := l.source.tailUpdates
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			const firstElement = 300 * time.Millisecond
			if idle < firstElement {
				Sleep(ctx, idle)
				return ledger.Page{From: after, To: after}, false, ctx.Err()
			}
			Sleep(ctx, firstElement)
			return tail(ctx, after, limit, idle)
		}
		l.run()
		require.NoError(t, <-l.done)
		require.Equal(t, l.ledger.all(), l.memory.got())
	})
}

func TestALedgerThatEndsBelowTheWatermarkIsAProblem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 10)
		l.memory.at = 31
		l.run()
		var problem *ledger.Problem
		require.ErrorAs(t, <-l.done, &problem)
		require.Equal(t, "the ledger ends at offset 30, below the checkpoint 31", problem.What)
		require.Contains(t, problem.Do, "--ledger-url")
		require.Zero(t, l.ledger.asked("read")+l.ledger.asked("tail"))
	})
}

// A poll on a quiet ledger ends before servers give up on a request, which is after 20 s.
func TestALongPollEndsBeforeTheServerGivesUp(t *testing.T) {
	t.Parallel()
	require.Less(t, longestGap(1), 15*time.Second)
}
