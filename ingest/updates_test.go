package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

var errAway = errors.New("away")

func TestJoinsFetchedPagesIntoBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 100)
		l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
			time.Sleep(time.Second) // meanwhile the rest is read
			return l.memory.append(ctx, scope, pages)
		}
		stop := l.run()
		pass(time.Minute)
		require.Equal(t, l.ledger.all(), l.memory.got())
		// The first batch takes what is there when the first page is, the second all the rest.
		require.LessOrEqual(t, len(l.memory.written()), 2)
		require.NoError(t, stop())
	})
}

func TestABatchHasALimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 3*batchUpdates)
		l.ledger.pageSize = batchUpdates / 4
		l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
			time.Sleep(time.Second)
			return l.memory.append(ctx, scope, pages)
		}
		stop := l.run()
		pass(time.Minute)
		require.Equal(t, l.ledger.all(), l.memory.got())
		for _, batch := range l.memory.written() {
			require.Less(t, updatesIn(batch), batchUpdates+l.ledger.pageSize)
		}
		require.NoError(t, stop())
	})
}

// What the tail has fetched and not committed stays below the limit and one page. A page that is larger is read all the
// same, by itself.
func TestBytesInFlightAreBounded(t *testing.T) {
	for pageBytes, want := range map[int64]int{mostRoom / 5: 6, 3 * mostRoom: 1} {
		t.Run(fmt.Sprint(pageBytes), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 250)
				l.ledger.pageBytes = pageBytes
				read := l.source.readUpdates
				var fetched atomic.Int32
				most := 0
				l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					fetched.Add(1)
					return read(ctx, after, to)
				}
				committed := 0
				l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
					time.Sleep(time.Second)
					most = max(most, int(fetched.Load())-committed)
					committed += len(pages)
					return l.memory.append(ctx, scope, pages)
				}
				stop := l.run()
				pass(5 * time.Minute)
				require.Equal(t, l.ledger.all(), l.memory.got())
				require.Equal(t, want, most)
				require.NoError(t, stop())
			})
		})
	}
}

// What retrying can't cure ends the loop at once. What was read before it is committed, nothing after.
func TestLastingErrorsEndTheLoop(t *testing.T) {
	for name, lasting := range map[string]error{
		"problem":      &ledger.Problem{What: "the participant is pruned", Do: "seed again"},
		"undecodable":  &ledger.DecodeError{Element: 3, Offset: 90, Err: errors.New("no offset")},
		"a mistake":    &ledger.Bug{What: "an offset was negative"},
		"wrapped once": errors.Join(errAway, &ledger.Problem{What: "rights are missing"}),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 100)
				read := l.source.readUpdates
				l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					if after >= 60 {
						return ledger.Page{}, lasting
					}
					return read(ctx, after, to)
				}
				l.run()
				err := <-l.done
				require.ErrorIs(t, err, lasting)
				require.Zero(t, l.retried())
				require.Equal(t, l.ledger.all()[:20], l.memory.got())
				require.EqualValues(t, 60, l.memory.reached())
			})
		})
	}
	t.Run("of the sink", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			l := newLoop(t, 100)
			l.sink.append = func(context.Context, ledger.Scope, []ledger.Page) error {
				return &ledger.Problem{What: "the scope is another"}
			}
			l.run()
			require.EqualError(t, <-l.done, "the scope is another")
		})
	})
}

// A stop lets the batch finish that is being written, and begins no other.
func TestStopFinishesTheBatchUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 100)
		begun := make(chan struct{})
		finish := make(chan struct{})
		appends := 0
		l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
			if appends++; appends == 2 {
				close(begun)
				<-finish
			}
			require.NoError(t, ctx.Err())
			if appends == 1 {
				time.Sleep(time.Second)
			}
			return l.memory.append(ctx, scope, pages)
		}
		l.ledger.latency = 300 * time.Millisecond
		stop := l.run()
		<-begun
		pass(time.Second) // more is read meanwhile
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		synctest.Wait()
		require.Empty(t, stopped, "did not wait for the batch")
		close(finish)
		require.NoError(t, <-stopped)
		require.Equal(t, 2, appends)
		require.Len(t, l.memory.written(), 2)
		require.Equal(t, l.ledger.all()[:len(l.memory.got())], l.memory.got())
	})
}

func TestStopDoesNotWaitForAServerOrABackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		stop := l.run()
		synctest.Wait() // in a long poll
		began := time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(began))

		l = newLoop(t, 5)
		l.source.ledgerEnd = func(context.Context) (ledger.Offset, error) { return 0, errAway }
		stop = l.run()
		pass(time.Hour)
		began = time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(began))
	})
}

func TestTellsWhatHappens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 25)
		l.memory.at = 6
		var events []any
		note := func(event ...any) { events = append(events, event...) }
		l.Watch = Watch{
			Resumed: func(at ledger.Offset) { note("resumed", at) },
			Committed: func(at, frontier ledger.Offset, updates int) {
				require.Equal(t, at, l.memory.reached(), "told before the commit")
				require.Equal(t, at, frontier)
				note("committed", at, updates)
			},
			LedgerEnd: func(end ledger.Offset) { note("end", end) },
			Retrying:  func(err error, _ time.Duration) { note("retrying", err.Error()) },
			Recovered: func() { note("recovered") },
		}
		l.ledger.latency = time.Millisecond // a batch for each page
		read := l.source.readUpdates
		failures := 0
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			if failures++; failures <= 2 {
				return ledger.Page{}, errAway
			}
			return read(ctx, after, to)
		}
		stop := l.run()
		pass(5 * time.Second)
		at := func(n ledger.Offset) ledger.Offset { return n }
		require.Equal(t, []any{
			"resumed", at(6), "end", at(75), "retrying", "away",
			"resumed", at(6), "end", at(75), "retrying", "away",
			"resumed", at(6), "end", at(75), "committed", at(36), 10, "recovered", "committed", at(66), 10, "committed", at(75), 3,
		}, events)
		require.NoError(t, stop())
	})
}
