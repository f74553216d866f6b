package jsonhttp

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPaceBoundsRequestsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newThrottle(3, 0)
		var now, most atomic.Int32
		var all sync.WaitGroup
		began := time.Now()
		for range 12 {
			all.Go(func() {
				done, err := p.take(t.Context(), false)
				if err != nil {
					t.Error(err)
					return
				}
				defer done()
				n := now.Add(1)
				for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
				}
				time.Sleep(time.Second)
				now.Add(-1)
			})
		}
		synctest.Wait()
		poll, err := p.take(t.Context(), true)
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "a long poll waits for nobody")
		poll()
		waiting, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, stop)
		_, err = p.take(waiting, false)
		require.ErrorIs(t, err, context.Canceled)
		all.Wait()
		require.EqualValues(t, 3, most.Load())
		require.Equal(t, 4*time.Second, time.Since(began))
	})
}

func TestPaceBoundsTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newThrottle(0, 4)
		began := time.Now()
		for i := range 9 {
			_, err := p.take(t.Context(), i%2 == 0) // long polls count
			require.NoError(t, err)
		}
		require.Equal(t, 2*time.Second, time.Since(began))
		time.Sleep(time.Minute)
		began = time.Now()
		for range 5 { // nothing was saved up
			_, err := p.take(t.Context(), false)
			require.NoError(t, err)
		}
		require.Equal(t, time.Second, time.Since(began))
		waiting, stop := context.WithCancel(t.Context())
		stop()
		_, err := p.take(waiting, false)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestNoPaceBoundsNothing(t *testing.T) {
	t.Parallel()
	p := newThrottle(0, 0)
	for range 1000 {
		_, err := p.take(t.Context(), false)
		require.NoError(t, err)
	}
}
