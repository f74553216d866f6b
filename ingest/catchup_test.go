package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
)

// requireAll is require.Equal for lists that are too long to be shown.
func requireAll(t require.TestingT, want, got []ledger.Offset) {
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], "update %d", i)
	}
	require.Equal(t, len(want), len(got))
}

// scales weighs what was read and is not written yet, as the loop is to bound it.
type scales struct {
	mu          sync.Mutex
	now, most   int64
	inFlight    int // requests
	mostFlight  int
	largestPage int64
}

func (s *scales) asked(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight += n
	s.mostFlight = max(s.mostFlight, s.inFlight)
}

func (s *scales) add(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += bytes
	s.most = max(s.most, s.now)
	s.largestPage = max(s.largestPage, bytes)
}

// peak is the most that was there; the loop may be at work while a test looks.
func (s *scales) peak() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// weigh puts scales around what a loop reads and writes; slow, if not nil, is how long a read or a write takes.
func weigh(l *loop, slow func() time.Duration) *scales {
	s := &scales{}
	s.reads(l.source, slow)
	l.sink.append, l.sink.write = s.writes(l.sink.append, slow), s.writes(l.sink.write, slow)
	return s
}

func (s *scales) reads(source *fakeSource, slow func() time.Duration) {
	read := source.readUpdates
	source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
		s.asked(1)
		defer s.asked(-1)
		if slow != nil {
			Sleep(ctx, slow())
		}
		return read(ctx, after, to)
	}
	source.passed = func(page *ledger.Page) { s.add(page.Bytes) }
}

// write is how pages are written.
type write func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error

func (s *scales) writes(write write, slow func() time.Duration) write {
	return func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
		if slow != nil {
			time.Sleep(slow())
		}
		err := write(ctx, scope, pages)
		for i := range pages {
			s.add(-pages[i].Bytes)
		}
		return err
	}
}

// Far behind, several windows are fetched at a time, two batches are written at a time, and the watermark moves in
// large steps.
func TestCatchesUpInParallel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 100_000)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		s := weigh(l, func() time.Duration { return 20 * time.Millisecond })
		stop := l.run()
		pass(time.Minute)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
		require.Zero(t, l.retried())
		require.Equal(t, DefaultMaxRequests, s.mostFlight)
		require.LessOrEqual(t, s.most, int64(mostRoom))
		// Pages of 180 of 200 are aimed at. Those at the ends, and those that are cut short, cost a little more.
		require.Less(t, l.ledger.asked("read"), 100_000/180*5/4)
		require.Less(t, len(l.memory.steps), 8)
		for _, batch := range l.memory.written()[:20] {
			require.LessOrEqual(t, updatesIn(batch), batchUpdates+200)
		}
	})
}

func updatesIn(pages []ledger.Page) (n int) {
	for i := range pages {
		n += len(pages[i].Updates)
	}
	return n
}

// One window that does not come does not hold up the others for long, nor do they run away from it.
func TestAWindowThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 200_000)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		read := l.source.readUpdates
		var hung atomic.Bool
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			Sleep(ctx, 10*time.Millisecond)
			if after > 3*5_000 && hung.CompareAndSwap(false, true) {
				Sleep(ctx, time.Hour)
			}
			return read(ctx, after, to)
		}
		s := weigh(l, nil)
		stop := l.run()
		pass(30 * time.Minute)
		written := 0
		for _, batch := range l.memory.written() {
			written += updatesIn(batch)
		}
		shown := len(l.memory.got())
		require.Less(t, shown, 7_000)
		require.Greater(t, written-shown, unshownEvents-batchUpdates)
		require.Less(t, written-shown, unshownEvents+DefaultMaxRequests*200)
		require.LessOrEqual(t, s.peak(), int64(mostRoom))
		pass(time.Hour)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
	})
}

// While one request hangs, what lies below it is written and shown within seconds, though nothing else is under way by
// then.
func TestWhatLiesBelowARequestThatHangsIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 10_000)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		const hangs = 7_000 // the update
		read := l.source.readUpdates
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			Sleep(ctx, 10*time.Millisecond)
			if after < hangs*spacing && to >= hangs*spacing {
				Sleep(ctx, 9*time.Minute)
			}
			return read(ctx, after, to)
		}
		stop := l.run()
		pass(10 * time.Second)
		require.Greater(t, len(l.memory.got()), hangs-200)
		require.Less(t, len(l.memory.got()), hangs)
		pass(time.Hour)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
	})
}

// Once all was fetched, what is stored is shown while the rest is being written: no large step is waited for.
func TestWhatIsStoredIsShownWhileTheRestIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const updates = 10_000
		require.Less(t, updates, projectEvents)
		l := newLoop(t, updates)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		write := l.sink.write
		l.sink.write = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
			if pages[len(pages)-1].To == l.ledger.end {
				time.Sleep(lingerFor / 2)
			}
			return write(ctx, scope, pages)
		}
		stop := l.run()
		pass(lingerFor / 4)
		require.Greater(t, len(l.memory.got()), updates-2*batchUpdates)
		require.Less(t, len(l.memory.got()), updates)
		pass(time.Minute)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
	})
}

// What was stored ahead before the program ended is not read again; what is missing between it is.
func TestReadsOnlyWhatIsMissing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 3000)
		l.memory.at = 300
		l.sink.last = l.memory.last
		l.memory.updates = l.ledger.all()[:100]
		for _, r := range []ledger.Range{{From: 600, To: 900}, {From: 900, To: 1200}, {From: 6000, To: 6300}} {
			page, err := l.ledger.read(t.Context(), r.From, r.To)
			require.NoError(t, err)
			for page.To < r.To { // in pages
				more, err := l.ledger.read(t.Context(), page.To, r.To)
				require.NoError(t, err)
				page.To, page.Updates = more.To, append(page.Updates, more.Updates...)
			}
			require.NoError(t, l.memory.write(t.Context(), l.Scope, []ledger.Page{page}))
		}
		read := l.source.readUpdates
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			page, err := read(ctx, after, to)
			for _, update := range page.Updates {
				if update.Offset > 600 && update.Offset <= 1200 || update.Offset > 6000 && update.Offset < 6300 { // the last one is looked for
					t.Errorf("offset %d was read again", update.Offset)
				}
			}
			return page, err
		}
		stop := l.run()
		pass(time.Minute)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
	})
}

// An error of one request costs that request, a pause and half of the requests in flight, and nothing that was fetched.
func TestARequestThatFailsIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 50_000)
		l.ledger.pageSize = 200
		checks, reads := 0, map[ledger.Offset]int{}
		var failed time.Time
		l.Check = func(context.Context) error { checks++; return nil }
		recovered := 0
		l.Watch.Recovered = func() { recovered++ }
		read := l.source.readUpdates
		var mu sync.Mutex
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			Sleep(ctx, 20*time.Millisecond)
			mu.Lock()
			reads[after]++
			fails := after > 60_000 && (failed.IsZero() || time.Now().Equal(failed)) // those that are on their way together
			if fails {
				failed = time.Now()
			}
			mu.Unlock()
			if fails {
				return ledger.Page{}, &patientError{time.Minute}
			}
			return read(ctx, after, to)
		}
		began := time.Now()
		stop := l.run()
		pass(30 * time.Second)
		require.Less(t, len(l.memory.got()), 50_000, "did not wait as long as it was asked to")
		pass(5 * time.Minute)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Equal(t, 1, checks, "began anew")
		require.Equal(t, 1, l.retried(), "those that were on their way together are one trouble")
		require.Equal(t, 1, recovered)
		again := 0
		for _, n := range reads {
			again += n - 1
		}
		require.LessOrEqual(t, again, DefaultMaxRequests)
		require.Less(t, time.Since(began), 10*time.Minute)
	})
}

type patientError struct{ wait time.Duration }

func (e *patientError) Error() string       { return "429" }
func (e *patientError) Wait() time.Duration { return e.wait }

// Far behind too, what retrying can't cure ends the loop, and everything before it is shown.
func TestLastingErrorsWhileCatchingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 50_000)
		l.ledger.pageSize = 200
		lasting := &ledger.DecodeError{Element: 3, Offset: 90_000, Err: errors.New("no offset")}
		read := l.source.readUpdates
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			if after < 80_000 { // later than those behind it
				Sleep(ctx, time.Second)
			}
			page, err := read(ctx, after, to)
			if page.From < 90_000 && page.To >= 90_000 {
				return ledger.Page{}, lasting
			}
			return page, err
		}
		l.run()
		require.ErrorIs(t, <-l.done, lasting)
		require.Zero(t, l.retried())
		require.Less(t, l.memory.reached(), ledger.Offset(90_000))
		require.Greater(t, l.memory.reached(), ledger.Offset(90_000-3*200))
		requireAll(t, l.ledger.all()[:len(l.memory.got())], l.memory.got())
	})
}

// A stop lets the transactions finish that are under way, and begins no other.
func TestStopFinishesTheTransactionsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 50_000)
		l.ledger.pageSize = 200
		var mu sync.Mutex
		begun, ended := 0, 0
		l.sink.write = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
			mu.Lock()
			begun++
			mu.Unlock()
			time.Sleep(time.Minute)
			require.NoError(t, ctx.Err())
			mu.Lock()
			ended++
			mu.Unlock()
			return l.memory.write(ctx, scope, pages)
		}
		stop := l.run()
		pass(90 * time.Second)
		began := time.Now()
		require.NoError(t, stop())
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, 2*writers, begun)
		require.Equal(t, begun, ended)
	})
}

// Another server that begins to answer while windows are fetched is looked at before anything of it is written, also
// where it is not the first to answer, or not the last.
func TestAnotherHistoryWhileCatchingUp(t *testing.T) {
	for name, c := range map[string]struct {
		another bool
		from    ledger.Offset // from where on it is another one
	}{
		"another history from what was read on":   {true, 9_000},
		"another history from what is to be read": {true, 21_000},
		"the same history":                        {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 20_000)
				l.ledger.pageSize = 200
				var mu sync.Mutex
				changes, turned := int64(0), false
				now := func() (int64, bool) {
					mu.Lock()
					defer mu.Unlock()
					return changes, turned
				}
				l.source.changes = func() int64 { n, _ := now(); return n }
				l.named(func(offset ledger.Offset) string {
					if _, other := now(); other && c.another && offset >= c.from {
						return fmt.Sprint("other-", offset)
					}
					return fmt.Sprint("first-", offset)
				})
				l.sink.last = l.memory.last
				read, n := l.source.readUpdates, 0
				l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					mu.Lock()
					if n++; n == 40 {
						turned = true
						changes++
					}
					nth := n
					mu.Unlock()
					page, err := read(ctx, after, to)
					Sleep(ctx, time.Duration(20+nth%3*30)*time.Millisecond) // an answer of the first one may come after one of the other
					return page, err
				}
				stop := l.run()
				if c.another {
					var problem *ledger.Problem
					require.ErrorAs(t, <-l.done, &problem)
					require.Contains(t, problem.Do, "indexer reanchor")
				} else {
					pass(time.Minute)
					require.NoError(t, stop())
					requireAll(t, l.ledger.all(), l.memory.got())
				}
				first, other := 0, 0
				for update := range l.memory.everyWritten() {
					if c.another && update.Offset >= c.from {
						if update.ID == fmt.Sprint("other-", update.Offset) {
							other++
						} else {
							first++
						}
					}
				}
				require.False(t, first > 0 && other > 0, "%d updates of one history and %d of the other", first, other)
				require.Empty(t, l.memory.mistakes)
			})
		})
	}
}

// Whatever fails, before or after it had its effect, however long things take and however the updates lie: in the end
// every update is there exactly once, in order, and no more was held in memory than is allowed.
func TestCatchUpExactlyOnceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	brief.Long(t, "tries many random histories")
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		often := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 0.2)).Draw(rt, "often")
		pageSize := rapid.IntRange(5, 300).Draw(rt, "page size")
		restarts := rapid.IntRange(0, 3).Draw(rt, "restarts")
		maxRequests := rapid.IntRange(1, 12).Draw(rt, "requests")
		var want []ledger.Offset
		var got memory
		var weighed scales
		synctest.Test(t, func(t *testing.T) {
			l := newLoop(t, 10)
			l.MaxRequests = maxRequests
			l.ledger.pageSize = pageSize
			random := rand.New(rand.NewPCG(seed, 1))
			l.ledger.updateBytes = 1 << random.IntN(16)
			l.ledger.largeEvery = 1 + random.IntN(3000)
			l.ledger.stretches(random)
			l.sink.last = l.memory.last
			f := newFaults(seed, often)
			s := weigh(l, func() time.Duration {
				if f.below(50) == 0 {
					return time.Duration(f.below(20_000)) * time.Millisecond
				}
				return time.Duration(f.below(30)) * time.Millisecond
			})
			f.disturb(l)
			for range restarts {
				stop := l.run()
				for range 3 {
					time.Sleep(time.Duration(f.below(2000)) * time.Millisecond)
					l.ledger.stretches(random)
				}
				if err := stop(); err != nil {
					t.Errorf("stopped with %v", err)
				}
				s.drop()
			}
			stop := l.run()
			time.Sleep(time.Minute)
			l.ledger.stretches(random)
			f.stop()
			time.Sleep(8 * time.Hour)
			if err := stop(); err != nil {
				t.Errorf("stopped with %v", err)
			}
			want = l.ledger.all()
			got.updates, got.mistakes, got.unshown = l.memory.got(), l.memory.mistakes, l.memory.unshown
			weighed = scales{most: s.most, mostFlight: s.mostFlight, largestPage: s.largestPage}
		})
		requireAll(rt, want, got.updates)
		require.Empty(rt, got.unshown)
		require.Empty(rt, got.mistakes)
		require.LessOrEqual(rt, weighed.mostFlight, maxRequests)
		if often == 0 && restarts == 0 {
			require.LessOrEqual(rt, weighed.most, max(int64(mostRoom), weighed.largestPage)+weighed.largestPage)
		}
	})
}

// drop forgets what a loop that has ended held.
func (s *scales) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = 0
}
