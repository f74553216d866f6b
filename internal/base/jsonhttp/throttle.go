package jsonhttp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// throttle limits the requests to a server. It is safe for concurrent use.
type throttle struct {
	slots    *semaphore.Weighted // for requests in flight; nil: no limit
	interval time.Duration       // between the starts of two requests; 0: none

	mu   sync.Mutex
	next time.Time // when the next request may begin
}

// newThrottle limits the requests in flight and the requests per second; 0 is no limit.
func newThrottle(inFlight int, perSecond float64) *throttle {
	t := &throttle{}
	if inFlight > 0 {
		t.slots = semaphore.NewWeighted(int64(inFlight))
	}
	if perSecond > 0 {
		t.interval = time.Duration(float64(time.Second) / perSecond)
	}
	return t
}

// take waits until one more request may begin, or ctx ends. Call done when the request has ended. A long poll does not
// count as in flight: the server is waiting, not busy.
func (t *throttle) take(ctx context.Context, longPoll bool) (done func(), err error) {
	done = func() {}
	if t.slots != nil && !longPoll {
		if err := t.slots.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("wait for other requests to end: %w", err)
		}
		done = func() { t.slots.Release(1) }
	}
	if err := t.wait(ctx); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// wait waits until the rate allows the request to start.
func (t *throttle) wait(ctx context.Context) error {
	if t.interval == 0 {
		return nil
	}
	t.mu.Lock()
	start := time.Now()
	if t.next.After(start) {
		start = t.next
	}
	t.next = start.Add(t.interval)
	t.mu.Unlock()
	if err := Wait(ctx, time.Until(start)); err != nil {
		return fmt.Errorf("wait for the rate limit of requests: %w", err)
	}
	return nil
}

// Wait returns after a time, or with ctx's error if that ends before.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
