package ingest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inFlight is how many requests may be in flight.
func (l *limiter) inFlight() (n int) {
	for l.allows(n) {
		n++
	}
	return n
}

func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	l := newLimiter(8)
	require.Equal(t, 8, l.inFlight())

	l.failed()
	require.Equal(t, 4, l.inFlight(), "a failure halves them")
	for range 10 {
		l.failed()
	}
	require.Equal(t, 1, l.inFlight(), "one is always allowed")

	for range 100 {
		l.answered(10*time.Millisecond, false)
	}
	require.Equal(t, 1, l.inFlight(), "success that did not need more allows no more")
	answers := 0
	for ; l.inFlight() < 8; answers++ {
		l.answered(10*time.Millisecond, true)
	}
	require.Greater(t, answers, 30, "more are allowed slowly")
	require.Less(t, answers, 200)
	for range 1000 {
		l.answered(10*time.Millisecond, true)
	}
	require.Equal(t, 8, l.inFlight())

	for range 100 {
		l.answered(30*time.Millisecond, true)
	}
	require.Equal(t, 8, l.inFlight(), "some more time is none of our business")
	for range 30 {
		l.answered(300*time.Millisecond, true)
	}
	require.Less(t, l.inFlight(), 7, "much more time is")
	require.GreaterOrEqual(t, l.inFlight(), 3, "but gently")
	for range 1000 {
		l.answered(300*time.Millisecond, true)
	}
	require.GreaterOrEqual(t, l.inFlight(), fewestRequests)
	for range 3000 {
		l.answered(300*time.Millisecond, true)
	}
	require.Equal(t, 8, l.inFlight(), "a server that is slow by nature is not slow for us")
}

func TestOneRequestInFlight(t *testing.T) {
	t.Parallel()
	l := newLimiter(1)
	for _, took := range []time.Duration{time.Millisecond, time.Second, time.Second, time.Minute} {
		l.answered(took, true)
		require.Equal(t, 1, l.inFlight())
		l.failed()
		require.Equal(t, 1, l.inFlight())
	}
}
