package ingest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"ledgerindexer/ledger"
)

// The waits between tries double from the first to the longest. The number of tries has no limit: after an outage of a
// week, reading resumes.
const (
	firstWait   = 200 * time.Millisecond
	longestWait = 30 * time.Second
	// A server may ask for a longer wait, up to this one.
	longestAsked = 10 * time.Minute
	// Where no connection can be made, it is tried at least this often.
	connectEvery = 2 * time.Second
	// Where a single request is repeated, that is done this many times in a row before the whole try ends.
	triesInPlace = 3
)

// Retry tries a function again after a failure. The zero value retries without limit whatever is not Lasting, and logs
// nothing. It is not safe for concurrent use.
type Retry struct {
	Backoff
	// Logger, if not nil, gets a warning for each failure that is retried, and is told of the first success after it.
	Logger *slog.Logger
	// Failed, if set, is called for each failure that is retried, with the wait before the next try.
	Failed func(err error, wait time.Duration)
	// Recovered, if set, is called at the first success after a failure.
	Recovered func()
	// Final reports which errors are not retried; nil: Lasting.
	Final func(error) bool
	// Rest, if not 0, is the wait after which final errors are retried too, and the longest wait after any other error.
	Rest time.Duration
	// Most is the greatest number of tries; 0: no limit.
	Most int
}

// Do calls fn until it succeeds, its error is final, it was tried Most times, or ctx ends. It returns fn's last error,
// or ctx's error if that ended between two tries.
func (r *Retry) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	err := fn(ctx)
	for try := 1; err != nil && ctx.Err() == nil && try != r.Most && (r.Rest > 0 || !r.final(err)); try++ {
		away := noConnection(err)
		err = r.after(ctx, r.pause(ctx, err, away), away, fn)
	}
	if err == nil && ctx.Err() == nil {
		r.Worked()
	}
	return err
}

// after calls fn after a wait. While no connection can be made, fn is called every 1 to 2 s, and these failures are not
// reported. After the first other failure the waits begin again with the shortest.
func (r *Retry) after(ctx context.Context, wait time.Duration, away bool, fn func(ctx context.Context) error) error {
	for {
		step := wait
		if away {
			step = min(wait, connectEvery/2+rand.N(connectEvery/2))
		}
		if Sleep(ctx, step); ctx.Err() != nil {
			return ctx.Err()
		}
		wait -= step
		tries := r.tries
		err := fn(ctx)
		switch still := noConnection(err); {
		case away && !still && err != nil:
			r.Reset()
			return err
		case !still, wait <= 0, r.tries != tries: // it worked meanwhile, if tries are others
			return err
		}
	}
}

// noConnection reports whether an error is that of a connection that could not be made, and that said so without delay:
// nothing listens, there is no way there, or no such host.
func noConnection(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" && !op.Timeout()
}

// Pause reports a failure to Logger and Failed, and returns the wait before the next try. Do calls it by itself.
func (r *Retry) Pause(ctx context.Context, err error) time.Duration { return r.pause(ctx, err, false) }

// pause is Pause. away says that it is tried more often than that until there is a connection.
func (r *Retry) pause(ctx context.Context, err error, away bool) time.Duration {
	wait := r.Rest
	if wait == 0 || !r.final(err) {
		wait = r.Next(err)
	}
	if r.Rest > 0 {
		wait = min(wait, r.Rest)
	}
	if r.Logger != nil {
		said := wait
		if away {
			said = min(wait, connectEvery)
		}
		r.Logger.WarnContext(ctx, "retrying", "error", err, "wait", said.String())
	}
	if r.Failed != nil {
		r.Failed(err, wait)
	}
	return wait
}

// Worked resets the waits. A function that succeeds in part of a try calls it.
func (r *Retry) Worked() {
	if r.failing() && r.Logger != nil {
		r.Logger.Info("working again")
	}
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

// Reset starts again with the shortest wait.
func (b *Backoff) Reset() { b.tries = 0 }

// failing reports whether nothing has succeeded since the last failure.
func (b *Backoff) failing() bool { return b.tries > 0 }

// Next returns the wait before the next try: a random time between the half and the whole of one that doubles from 0.2
// s to 30 s, so that clients do not all return at once. An error whose Wait method asks for a longer wait gets it, up
// to 10 minutes.
func (b *Backoff) Next(err error) time.Duration {
	wait := longestWait
	if b.tries < 16 {
		wait = min(longestWait, firstWait<<b.tries)
	}
	b.tries++
	wait = wait/2 + rand.N(wait/2)
	return max(wait, asksFor(err))
}

// asksFor returns the wait that an error asks for; 0: none.
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

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) { SleepOr(ctx, d, nil, nil) }

// SleepOr waits for d, or until ctx ends, or woken or other, which may be nil, receives or is closed.
func SleepOr(ctx context.Context, d time.Duration, woken, other <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken:
	case <-other:
	case <-timer.C:
	}
}

// Lasting reports whether an error is permanent, so that retrying does not help: an operator must act, a request should
// never have been sent, or an answer can't be understood.
func Lasting(err error) bool {
	var problem *ledger.Problem
	var bug *ledger.Bug
	var undecodable *ledger.DecodeError
	return errors.As(err, &problem) || errors.As(err, &bug) || errors.As(err, &undecodable)
}

// lastingOrNotOffered is Lasting for work that can't do without an operation that the server may lack.
func lastingOrNotOffered(err error) bool { return Lasting(err) || errors.Is(err, ledger.ErrNotOffered) }

// errReached ends the loop when UntilCurrent is reached.
var errReached = errors.New("reached what was current")

// notReached returns nil for errReached, and any other error unchanged.
func notReached(err error) error {
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// loopResult returns what a stream's loop returns for the error of its last try: nil if ctx has ended, and then the
// error is only logged.
func loopResult(ctx context.Context, logger *slog.Logger, stream string, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	if !errors.Is(err, context.Canceled) {
		logger.WarnContext(ctx, "stopping at what failed; it is read again when the stream starts again", "stream", stream,
			"error", err)
	}
	return nil
}
