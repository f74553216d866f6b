package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

// faults fails calls at random, before or after they had their effect, until it is switched off.
type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	often  float64
	over   bool
}

func newFaults(seed uint64, often float64) *faults {
	return &faults{random: rand.New(rand.NewPCG(seed, 0)), often: often}
}

func (f *faults) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// around runs a call, and may lose it on the way there or its answer on the way back.
func (f *faults) around(call func() error) error {
	if f.strikes() {
		return fmt.Errorf("lost on the way: %w", errAway)
	}
	if err := call(); err != nil {
		return err
	}
	if f.strikes() {
		return fmt.Errorf("its answer was lost: %w", errAway)
	}
	return nil
}

func (f *faults) strikes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.over && f.random.Float64() < f.often
}

func (f *faults) below(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// disturbSource puts faults around every call of a source.
func (f *faults) disturbSource(s *fakeSource) {
	source := *s
	s.ledgerEnd = func(ctx context.Context) (end ledger.Offset, err error) {
		err = f.around(func() error { end, err = source.ledgerEnd(ctx); return err })
		return end, err
	}
	s.prunedOffset = func(ctx context.Context) (pruned ledger.Offset, err error) {
		err = f.around(func() error { pruned, err = source.prunedOffset(ctx); return err })
		return pruned, err
	}
	s.readUpdates = func(ctx context.Context, after, to ledger.Offset) (page ledger.Page, err error) {
		err = f.around(func() error { page, err = source.readUpdates(ctx, after, to); return err })
		return page, err
	}
	s.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (page ledger.Page, full bool, err error) {
		err = f.around(func() error { page, full, err = source.tailUpdates(ctx, after, limit, idle); return err })
		return page, full, err
	}
}

// disturb puts faults around every call that the loop makes.
func (f *faults) disturb(l *loop) {
	f.disturbSource(l.source)
	sink := *l.sink
	l.sink.watermark = func(ctx context.Context) (at ledger.Offset, ok bool, err error) {
		err = f.around(func() error { at, ok, err = sink.watermark(ctx); return err })
		return at, ok, err
	}
	l.sink.start = func(ctx context.Context, id string, scope ledger.Scope, at ledger.Offset, stateKnown bool) error {
		return f.around(func() error { return sink.start(ctx, id, scope, at, stateKnown) })
	}
	l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
		return f.around(func() error { return sink.append(ctx, scope, pages) })
	}
	l.sink.ahead = func(ctx context.Context) (ranges []ledger.Range, err error) {
		err = f.around(func() error { ranges, err = sink.ahead(ctx); return err })
		return ranges, err
	}
	l.sink.write = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
		return f.around(func() error { return sink.write(ctx, scope, pages) })
	}
	l.sink.project = func(ctx context.Context, scope ledger.Scope, from, to ledger.Offset) error {
		return f.around(func() error { return sink.project(ctx, scope, from, to) })
	}
}

// Whatever fails, before or after it had its effect, while the ledger grows: in the end every update is there exactly
// once, in order.
func TestExactlyOnceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		often := rapid.Float64Range(0, 0.4).Draw(rt, "often")
		blind := rapid.Bool().Draw(rt, "blind")
		pageSize := rapid.IntRange(1, 30).Draw(rt, "page size")
		checkpoints := rapid.Bool().Draw(rt, "checkpoints")
		restarts := rapid.IntRange(0, 3).Draw(rt, "restarts")
		var want []ledger.Offset
		var got memory
		synctest.Test(t, func(t *testing.T) {
			l := newLoop(t, 50)
			l.ledger.blind, l.ledger.pageSize, l.ledger.latency = blind, pageSize, 3*time.Millisecond
			if checkpoints {
				l.ledger.checkpointAfter = 500 * time.Millisecond
			}
			l.memory.started = false
			if !blind {
				l.sink.last = l.memory.last
			}
			f := newFaults(seed, often)
			f.disturb(l)
			for range restarts {
				stop := l.run()
				for range 5 {
					time.Sleep(time.Duration(f.below(5000)) * time.Millisecond)
					l.ledger.grow(f.below(60))
				}
				if err := stop(); err != nil {
					t.Errorf("stopped with %v", err)
				}
			}
			stop := l.run()
			time.Sleep(time.Minute)
			l.ledger.grow(f.below(60))
			f.stop()
			time.Sleep(2 * longestWait)
			if err := stop(); err != nil {
				t.Errorf("stopped with %v", err)
			}
			want = l.ledger.all()
			got.updates, got.mistakes, got.stateKnown = l.memory.got(), l.memory.mistakes, l.memory.stateKnown
		})
		require.Equal(rt, want, got.updates)
		require.Empty(rt, got.mistakes)
		require.True(rt, got.stateKnown)
	})
}

// The same with UntilCurrent: it ends by itself, and everything up to what was the end is there.
func TestUntilCurrentUnderRandomFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		often := rapid.Float64Range(0, 0.4).Draw(rt, "often")
		var want, got []ledger.Offset
		var mistakes []string
		synctest.Test(t, func(t *testing.T) {
			l := newLoop(t, 200)
			want = l.ledger.all()
			l.UntilCurrent = true
			l.sink.last = l.memory.last
			f := newFaults(seed, often)
			f.disturb(l)
			l.run()
			time.Sleep(time.Second)
			l.ledger.grow(300)
			if err := <-l.done; err != nil {
				t.Errorf("ended with %v", err)
			}
			got, mistakes = l.memory.got(), l.memory.mistakes
		})
		require.GreaterOrEqual(rt, len(got), len(want))
		require.Equal(rt, want, got[:len(want)])
		require.Empty(rt, mistakes)
	})
}
