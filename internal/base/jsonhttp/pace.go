package jsonhttp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// pace limits the requests to a server. It is safe for concurrent use.
type pace struct {
	slots *semaphore.Weighted // for requests in flight; nil: no limit

	mu       sync.Mutex
	interval time.Duration // between the starts of two requests; 0: none
	next     time.Time     // when the next request may begin
}

// newPace limits the requests in flight and the requests per second; 0 is no limit.
func newPace(inFlight int, perSecond float64) *pace {
	p := &pace{}
	if inFlight > 0 {
		p.slots = semaphore.NewWeighted(int64(inFlight))
	}
	p.limit(perSecond)
	return p
}

// limit changes the limit on the requests per second; 0 is no limit. Requests that wait already are not affected.
func (p *pace) limit(perSecond float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interval = 0
	if perSecond > 0 {
		p.interval = time.Duration(float64(time.Second) / perSecond)
	}
}

// take waits until one more request may begin, or ctx ends. Call done when the request has ended. A long poll does not
// count as in flight: the server is waiting, not busy.
func (p *pace) take(ctx context.Context, longPoll bool) (done func(), err error) {
	done = func() {}
	if p.slots != nil && !longPoll {
		if err := p.slots.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("wait for other requests to end: %w", err)
		}
		done = func() { p.slots.Release(1) }
	}
	if err := p.wait(ctx); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// wait waits until the rate allows the request to start.
func (p *pace) wait(ctx context.Context) error {
	p.mu.Lock()
	if p.interval == 0 {
		p.mu.Unlock()
		return nil
	}
	start := time.Now()
	if p.next.After(start) {
		start = p.next
	}
	p.next = start.Add(p.interval)
	p.mu.Unlock()
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
