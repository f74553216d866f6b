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

// Backoff paces tries. The zero value is ready. It is not safe for concurrent use.
type Backoff struct{ tries int }

// Reset starts anew after a success.
func (b *Backoff) Reset() { b.tries = 0 }

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

// retrying says that something of a stream is to be tried again, and returns after which pause.
func (b *Backoff) retrying(ctx context.Context, logger *slog.Logger, stream string, err error) time.Duration {
	pause := b.Next(err)
	logger.WarnContext(ctx, "retrying", "stream", stream, "error", err, "wait", pause.String())
	return pause
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
