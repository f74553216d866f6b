package ingest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"ledgerindexer/ledger"
)

// The waits between tries double from the first to the longest. There is no limit on their number: a ledger that is
// away for a week is read on when it is back.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 30 * time.Second
	// A server that asks for more patience gets it, but not so much that nobody notices when it is back.
	longestAsked = 10 * time.Minute
)

// Retry says how something that failed is tried again. The zero value tries without end what may pass, and tells nobody. It is
// not safe for concurrent use.
type Retry struct {
	Backoff
	// Logger is warned of each failure that is tried again; nil: nobody is.
	Logger *slog.Logger
	// Failed, if set, is told of each failure that is tried again, and after which pause.
	Failed func(err error, wait time.Duration)
	// Recovered, if set, is told of the first success after a failure.
	Recovered func()
	// Final tells which errors stay, whatever is tried again; nil: Lasting. They end it.
	Final func(error) bool
	// Rest, if not 0, is after which pause a final error is tried again instead, and the longest pause after any other.
	Rest time.Duration
	// Most is how often something is tried at most; 0: without end.
	Most int
}

// Do calls fn until it succeeds, its error is final, it was tried often enough or ctx ends. It returns fn's last error, or
// ctx's where that ended between two tries.
func (r *Retry) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	for try := 1; ; try++ {
		err := fn(ctx)
		if err == nil || ctx.Err() != nil || try == r.Most || r.Rest == 0 && r.final(err) {
			return err
		}
		if Sleep(ctx, r.Pause(ctx, err)); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Pause tells of a failure and returns after which pause to try again. Do does this by itself.
func (r *Retry) Pause(ctx context.Context, err error) time.Duration {
	wait := r.Rest
	if wait == 0 || !r.final(err) {
		wait = r.Next(err)
	}
	if r.Rest > 0 {
		wait = min(wait, r.Rest)
	}
	if r.Logger != nil {
		r.Logger.WarnContext(ctx, "retrying", "error", err, "wait", wait.String())
	}
	if r.Failed != nil {
		r.Failed(err, wait)
	}
	return wait
}

// Worked begins the pauses anew. Who succeeds in the middle of a try calls it.
func (r *Retry) Worked() {
	if r.failing() && r.Recovered != nil {
		r.Recovered()
	}
	r.Reset()
}

func (r *Retry) final(err error) bool {
	if r.Final != nil {
		return r.Final(err)
	}
	return Lasting(err)
}

// Backoff paces tries. The zero value is ready. It is not safe for concurrent use.
type Backoff struct{ tries int }

// Reset starts anew after a success.
func (b *Backoff) Reset() { b.tries = 0 }

// failing tells whether nothing has succeeded since the last failure.
func (b *Backoff) failing() bool { return b.tries > 0 }

// Next is how long to wait before the next try: between half and the whole of a time that doubles from 0.2 s to 30 s, so
// that many clients of a server that comes back do not come at once. An error whose Wait method asks for a longer wait
// gets it, up to 10 minutes.
func (b *Backoff) Next(err error) time.Duration {
	wait := longestWait
	if b.tries < 16 {
		wait = min(longestWait, firstWait<<b.tries)
	}
	b.tries++
	wait = wait/2 + rand.N(wait/2)
	return max(wait, asksFor(err))
}

// asksFor is how long an error asks to wait; 0: it does not.
func asksFor(err error) time.Duration {
	var asks interface{ Wait() time.Duration }
	if errors.As(err, &asks) {
		return min(asks.Wait(), longestAsked)
	}
	return 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Sleep waits, or returns at once when ctx ends.
func Sleep(ctx context.Context, d time.Duration) { sleepOr(ctx, d, nil) }

// sleepOr waits, until ctx ends or woken is sent to; nil is never sent to.
func sleepOr(ctx context.Context, d time.Duration, woken <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-timer.C:
	}
}

// Lasting tells whether an error stays whatever is tried again: an operator must act, a request should never have been
// made, or an answer can't be understood.
func Lasting(err error) bool {
	var problem *ledger.Problem
	var bug *ledger.Bug
	var undecodable *ledger.DecodeError
	return errors.As(err, &problem) || errors.As(err, &bug) || errors.As(err, &undecodable)
}

// lastingOrNotOffered is Lasting for who needs an operation that the server may lack.
func lastingOrNotOffered(err error) bool { return Lasting(err) || errors.Is(err, ledger.ErrNotOffered) }
