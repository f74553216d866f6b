package jsonhttp

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pace bounds what a server is asked for, however many ask. A nil Pace bounds nothing. It is safe for concurrent use.
type Pace struct {
	slots    chan struct{} // one is taken by each request in flight; nil: as many as there are
	interval time.Duration // between the beginnings of two requests; 0: none

	mu   sync.Mutex
	next time.Time // when the next request may begin
}

// NewPace bounds the requests in flight, and those that begin in a second; 0 is no bound.
func NewPace(inFlight int, perSecond float64) *Pace {
	p := &Pace{}
	if inFlight > 0 {
		p.slots = make(chan struct{}, inFlight)
	}
	if perSecond > 0 {
		p.interval = time.Duration(float64(time.Second) / perSecond)
	}
	return p
}

// take waits until one more request may begin, or ctx ends. done is to be called at its end. A long poll does not count as
// in flight: it keeps the server waiting, not busy.
func (p *Pace) take(ctx context.Context, longPoll bool) (done func(), err error) {
	done = func() {}
	if p == nil {
		return done, nil
	}
	if p.slots != nil && !longPoll {
		select {
		case p.slots <- struct{}{}:
			done = func() { <-p.slots }
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for other requests to end: %w", ctx.Err())
		}
	}
	if err := p.wait(ctx); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// wait waits for the request's turn.
func (p *Pace) wait(ctx context.Context) error {
	if p.interval == 0 {
		return nil
	}
	p.mu.Lock()
	now := time.Now()
	turn := now
	if p.next.After(now) {
		turn = p.next
	}
	p.next = turn.Add(p.interval)
	p.mu.Unlock()
	if turn == now {
		return nil
	}
	timer := time.NewTimer(turn.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the turn of a request: %w", ctx.Err())
	}
}
