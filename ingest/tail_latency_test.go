package ingest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
)

// latencies is how long updates took from when the server had them until they were committed, in order of length.
type latencies []time.Duration

func (l latencies) percentile(p int) time.Duration { return l[min(len(l)*p/100, len(l)-1)] }

// follow lets the ledger of a loop that has caught up grow by one update after each of the gaps. The database takes 10
// ms for a batch.
func (l *loop) follow(gaps []time.Duration) (took latencies, requestsPerSecond float64) {
	var mu sync.Mutex
	born := map[ledger.Offset]time.Time{}
	l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		for _, page := range pages {
			for _, update := range page.Updates {
				if at, ok := born[update.Offset]; ok {
					took = append(took, time.Since(at))
				}
			}
		}
		return l.memory.append(ctx, scope, pages)
	}
	stop := l.run()
	pass(time.Minute)
	asked, began := l.ledger.askedAll(), time.Now()
	for _, gap := range gaps {
		time.Sleep(gap)
		mu.Lock()
		l.ledger.grow(1)
		born[l.ledger.last()] = time.Now()
		mu.Unlock()
	}
	requestsPerSecond = float64(l.ledger.askedAll()-asked) / time.Since(began).Seconds()
	pass(30 * time.Second)
	require.NoError(l.t, stop())
	require.Len(l.t, took, len(gaps))
	slices.Sort(took)
	l.t.Logf("p50 %v, p99 %v, longest %v, %.1f requests a second", took.percentile(50), took.percentile(99), took.percentile(100), requestsPerSecond)
	return took, requestsPerSecond
}

// independently is n updates at a rate that come independently of each other.
func independently(perSecond, n int) []time.Duration {
	random := rand.New(rand.NewPCG(1, uint64(perSecond)))
	gaps := make([]time.Duration, n)
	for i := range gaps {
		gaps[i] = time.Duration(random.ExpFloat64() / float64(perSecond) * float64(time.Second))
	}
	return gaps
}

// servers are the ways in which servers put offset checkpoints between updates.
var servers = map[string]func(s *script){
	"no checkpoints":                     func(*script) {},
	"a checkpoint for each read":         func(s *script) { s.checkpointAfter = 450 * time.Millisecond },
	"the last one where the read begins": func(s *script) { s.checkpointEvery, s.checkpointAfter = 15*time.Second, 500*time.Millisecond },
	"by the clock":                       func(s *script) { s.checkpointClock = time.Second },
}

// At any rate every update is committed soon after the server has it, for a bounded number of requests: by the clock of
// the test, with a server that takes 5 ms for an answer.
func TestLatencyAtAnyRate(t *testing.T) {
	brief.Long(t, "follows a ledger at many rates")
	for arrivals, c := range map[string]struct {
		gaps         []time.Duration
		p99, longest time.Duration
		requests     float64 // a second
	}{
		"1/s":    {append(independently(1, 300), time.Minute, time.Minute), 45 * time.Millisecond, 45 * time.Millisecond, 4},
		"5/s":    {independently(5, 1000), 45 * time.Millisecond, 45 * time.Millisecond, 8},
		"30/s":   {independently(30, 2000), 45 * time.Millisecond, 60 * time.Millisecond, 35},
		"1000/s": {independently(1000, 5000), 60 * time.Millisecond, 120 * time.Millisecond, 40},
		"3000/s": {independently(3000, 10000), 75 * time.Millisecond, 120 * time.Millisecond, 40},
	} {
		for checkpoints, set := range servers {
			for end, blind := range map[string]bool{"": false, ", does not tell its end": true} {
				t.Run(arrivals+", "+checkpoints+end, func(t *testing.T) {
					brief.Sample(t)
					bubble(t, func(t *testing.T) {
						l := newLoop(t, 5)
						set(l.ledger)
						l.ledger.pageSize, l.ledger.latency, l.ledger.blind = 200, 5*time.Millisecond, blind
						took, requests := l.follow(c.gaps)
						require.LessOrEqual(t, took.percentile(99), c.p99)
						require.LessOrEqual(t, took.percentile(100), c.longest)
						require.LessOrEqual(t, requests, c.requests)
					})
				})
			}
		}
	}
}

// However far away the server is, the tail keeps up with what comes.
func TestLatencyOfADistantServer(t *testing.T) {
	for arrivals, gaps := range map[string][]time.Duration{
		"5/s": independently(5, 500), "20/s": independently(20, 1000), "100/s": independently(100, 5000), "1000/s": independently(1000, 10000),
	} {
		for end, blind := range map[string]bool{"": false, ", does not tell its end": true} {
			t.Run(arrivals+end, func(t *testing.T) {
				brief.Sample(t)
				bubble(t, func(t *testing.T) {
					l := newLoop(t, 5)
					l.ledger.pageSize, l.ledger.latency, l.ledger.blind = 200, 60*time.Millisecond, blind
					took, requests := l.follow(gaps)
					require.LessOrEqual(t, took.percentile(50), 150*time.Millisecond)
					require.LessOrEqual(t, took.percentile(100), time.Second)
					require.LessOrEqual(t, requests, 16.0)
				})
			})
		}
	}
}

// A few quick answers among slow ones make polls wait for few updates: what comes meanwhile does not pile up all the
// same.
func TestLatencyOfAnUnevenServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		l.ledger.pageSize, l.ledger.latency = 200, 5*time.Millisecond
		tail, polls := l.source.tailUpdates, 0
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			if polls++; polls%10 > 0 {
				Sleep(ctx, 150*time.Millisecond)
			}
			return tail(ctx, after, limit, idle)
		}
		took, _ := l.follow(independently(30, 3000))
		require.LessOrEqual(t, took.percentile(100), askEndEvery+time.Second)
	})
}
