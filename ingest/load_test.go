package ingest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// load has all of a ledger loaded that is far behind, and returns what was held meanwhile.
func (l *loop) load() *scales {
	s := weigh(l, nil)
	stop := l.run()
	pass(time.Hour)
	requireAll(l.t, l.ledger.all(), l.memory.got())
	require.NoError(l.t, stop())
	require.Empty(l.t, l.memory.mistakes)
	return s
}

// The queue has what is fetched until that is written, and nothing of a try that has ended.
func TestTheQueueIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 60_000)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		l.sink.last = l.memory.last
		var queued, most, failures atomic.Int64
		l.Watch.Queued = func(bytes int64) {
			queued.Store(bytes)
			most.Store(max(most.Load(), bytes))
		}
		retrying := l.Watch.Retrying
		l.Watch.Retrying = func(err error, wait time.Duration) {
			assert.Zero(t, queued.Load())
			retrying(err, wait)
		}
		store := func(write func(context.Context, ledger.Scope, []ledger.Page) error) func(context.Context, ledger.Scope, []ledger.Page) error {
			return func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
				var bytes int64
				for _, page := range pages {
					bytes += page.Bytes
				}
				assert.GreaterOrEqual(t, queued.Load(), bytes)
				if failures.Add(1) == 3 {
					return errAway
				}
				return write(ctx, scope, pages)
			}
		}
		l.sink.write, l.sink.append = store(l.sink.write), store(l.sink.append)
		stop := l.run()
		pass(time.Hour)
		require.Equal(t, 1, l.retried())
		require.Zero(t, queued.Load())
		require.Greater(t, most.Load(), int64(batchUpdates*2800))
		require.LessOrEqual(t, most.Load(), int64(mostRoom))
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
	})
}

// A window that needs more room than was reserved for it waits for that, and is not asked for again and again
// meanwhile.
func TestAWindowThatNeedsMoreRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 60_000)
		l.ledger.pageSize, l.ledger.updateBytes = 2000, 2800
		const large = 30_000
		read := l.source.readUpdates
		var mu sync.Mutex
		asked := 0 // for the large one
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			Sleep(ctx, 20*time.Millisecond)
			page, err := read(ctx, after, to)
			if page.From < large && page.To >= large {
				mu.Lock()
				asked++
				mu.Unlock()
				page.Bytes += 18 << 20
			}
			return page, err
		}
		s := l.load()
		require.LessOrEqual(t, s.most, int64(mostRoom))
		require.LessOrEqual(t, asked, 3) // as any, with four times as much room, and with all there is
	})
}

// A page that is larger than all that may be held is read all the same, by itself.
func TestAPageThatIsTooLargeIsReadAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 60_000)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		const large, bytes = 30_000, mostRoom + 1<<20
		read := l.source.readUpdates
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			Sleep(ctx, 20*time.Millisecond)
			page, err := read(ctx, after, to)
			if page.From < large && page.To >= large {
				page.Bytes = bytes
			}
			return page, err
		}
		require.EqualValues(t, bytes, l.load().most)
	})
}

// A source that refuses requests for a while is asked as late as it says, and by half as many requests.
func TestASourceThatIsBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 60_000)
		l.ledger.pageSize, l.ledger.updateBytes = 200, 2800
		read := l.source.readUpdates
		var mu sync.Mutex
		requests, inFlight, most := 0, 0, 0
		var refused time.Time
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			mu.Lock()
			requests++
			if requests == 100 {
				refused = time.Now()
			}
			busy := !refused.IsZero() && time.Since(refused) < time.Minute
			if busy && time.Since(refused) > 20*time.Millisecond { // by then it is known
				t.Error("asked too early")
			}
			inFlight++
			if !refused.IsZero() && !busy && requests < 120 {
				most = max(most, inFlight)
			}
			mu.Unlock()
			Sleep(ctx, 20*time.Millisecond)
			mu.Lock()
			inFlight--
			mu.Unlock()
			if busy {
				return ledger.Page{}, &patientError{time.Minute}
			}
			return read(ctx, after, to)
		}
		l.load()
		require.Greater(t, most, 1)
		require.Less(t, most, DefaultMaxRequests)
	})
}

// A server that gives up on ranges that are too wide for it, however little is in them, is asked for less of them at a
// time, wherever they lie.
func TestRangesThatAreTooWideAreReadInParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 60_000)
		l.ledger.pageSize, l.ledger.updateBytes = 2000, 2800
		l.ledger.growUnseen(20_000_000)
		l.ledger.grow(1000)
		refused := tooWide(t, l.source, 1_000_000)
		l.load()
		require.Positive(t, refused())
		require.Less(t, refused(), 100)
	})
}

// So it is near the ledger's end, where one range is read after the other.
func TestARangeThatIsTooWideNearTheEndIsReadInParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const from = 200_000
		l := newLoop(t, 0)
		l.memory.at = from
		l.ledger.growUnseen(from)
		l.ledger.grow(50)
		l.ledger.growUnseen(5_000)
		l.ledger.grow(1)
		l.ledger.pageSize = 200
		require.False(t, new(windowSizes).far(l.ledger.end-from), "nobody catches up")
		refused := tooWide(t, l.source, 1_000)
		stop := l.run()
		pass(time.Hour)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Empty(t, l.memory.mistakes)
		require.Positive(t, refused())
		require.Less(t, refused(), 20)
	})
}

// tooWide has a source give up on ranges of more offsets, when it has worked on them for as long as servers do. The
// function that it returns reports how often that was.
func tooWide(t *testing.T, source *fakeSource, widest ledger.Offset) (refused func() int) {
	t.Helper()
	const mostly = 1000 // or the test would not end
	var mu sync.Mutex
	times := 0
	read := source.readUpdates
	source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
		if to-after <= widest {
			return read(ctx, after, to)
		}
		mu.Lock()
		times++
		enough := times > mostly
		mu.Unlock()
		if enough {
			return ledger.Page{}, &ledger.Problem{What: "asked for the same again and again"}
		}
		Sleep(ctx, 20*time.Second)
		return ledger.Page{}, errAway
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return times
	}
}

type tooOftenError struct{}

func (tooOftenError) Error() string  { return "429" }
func (tooOftenError) TooOften() bool { return true }

// A server that lets six requests through every ten seconds, and says nothing of when, is read about as fast as that.
func TestARateThatIsLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const requests, window, pages = 6, 10 * time.Second, 250
		l := newLoop(t, 200*pages)
		l.ledger.pageSize = 200
		read := l.source.readUpdates
		var mu sync.Mutex
		var let []time.Time
		refusals := 0
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			Sleep(ctx, 20*time.Millisecond)
			mu.Lock()
			let = slices.DeleteFunc(let, func(at time.Time) bool { return time.Since(at) >= window })
			refuses := len(let) == requests
			if refuses {
				refusals++
			} else {
				let = append(let, time.Now())
			}
			mu.Unlock()
			if refuses {
				return ledger.Page{}, tooOftenError{}
			}
			return read(ctx, after, to)
		}
		stop := l.run()
		pass(pages / requests * window * 3 / 2)
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
		require.Less(t, refusals, pages/5)
	})
}

// How fast a server answers is measured while it is asked in a row: an hour without requests says nothing about it.
func TestARateIsMeasuredInACatchUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 200*20)
		l.ledger.pageSize = 200
		var refuses, away atomic.Bool
		refuses.Store(true)
		read, end := l.source.readUpdates, l.source.ledgerEnd
		l.source.ledgerEnd = func(ctx context.Context) (ledger.Offset, error) {
			if away.Load() {
				return 0, errAway
			}
			return end(ctx)
		}
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			switch {
			case away.Load():
				return ledger.Page{}, errAway
			case refuses.Swap(false):
				return ledger.Page{}, tooOftenError{}
			}
			Sleep(ctx, 20*time.Millisecond)
			return read(ctx, after, to)
		}
		tail := l.source.tailUpdates
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			if away.Load() {
				return ledger.Page{}, false, errAway
			}
			return tail(ctx, after, limit, idle)
		}
		stop := l.run()
		pass(8 * time.Hour)
		requireAll(t, l.ledger.all(), l.memory.got())
		away.Store(true)
		l.ledger.grow(200 * 250)
		pass(20 * time.Minute)
		refuses.Store(true)
		away.Store(false)
		pass(5 * time.Minute)
		require.False(t, refuses.Load())
		requireAll(t, l.ledger.all(), l.memory.got())
		require.NoError(t, stop())
	})
}
