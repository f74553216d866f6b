package ingest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"
)

// pace decides when the loader may send its next request. It is kept over retries.
//
// After a request that failed, such as a 429 or 503, no other begins for as long as Retry says or the server asks for,
// and half as many are in flight from then on; after triesInPlace in a row the whole try ends, and Retry waits before
// the next one. Each 429 also spaces the requests (rate). Answers that take long reduce how many are in flight, and
// quick ones raise it again (limiter). What a request asks for is a matter of sizes.
type pace struct {
	retry  Retry
	queued func(bytes int64) // Watch.Queued
	tracer Tracer            // nil: nothing is traced
	sizes  windowSizes
	limit  limiter
	rate   rate
	pause  time.Time // no request begins before, because one failed
	tries  int       // requests that failed in a row, without those during a pause
}

// DefaultMaxRequests is the default limit on the requests in flight.
const DefaultMaxRequests = 8

// newPace allows maxRequests in flight, or DefaultMaxRequests if that is 0. stream is the name for the log.
func newPace(maxRequests int, logger *slog.Logger, stream string) pace {
	return pace{retry: Retry{Logger: logger.With("stream", stream)},
		limit: newLimiter(cmp.Or(maxRequests, DefaultMaxRequests))}
}

// waitsUntil returns when the next request may begin; the zero time: now.
func (p *pace) waitsUntil() time.Time {
	if next := later(p.pause, p.rate.next); time.Now().Before(next) {
		return next
	}
	return time.Time{}
}

// requestWorked learns from an answer.
func (p *pace) requestWorked() {
	p.tries = 0
	p.rate.worked()
}

// requestFailed begins a pause after a request that failed and may be repeated. giveUp says that too many failed in a
// row. Requests that were in flight with one that failed may fail too: they count as the same failure, but may ask for
// a longer pause.
func (p *pace) requestFailed(ctx context.Context, err error) (giveUp bool) {
	if refusedTooOften(err) {
		p.rate.tooOften(time.Now())
	}
	if time.Now().Before(p.pause) {
		p.pause = later(p.pause, time.Now().Add(asksFor(err)))
		return false
	}
	p.limit.failed()
	if p.tries++; p.tries > triesInPlace {
		p.tries = 0
		return true
	}
	p.pause = time.Now().Add(p.retry.Pause(ctx, err))
	return false
}

// refusedTooOften reports whether a server refused a request because too many came.
func refusedTooOften(err error) bool {
	var refusal interface{ TooOften() bool }
	return errors.As(err, &refusal) && refusal.TooOften()
}

// startTrail is Tracer.Follow; without a tracer the trail is nil.
func (p *pace) startTrail(ctx context.Context) (context.Context, Trail) {
	if p.tracer == nil {
		return ctx, nil
	}
	return p.tracer.Follow(ctx)
}

func (p *pace) endTrail(trail Trail, work Work, err error, before ...Trail) {
	if trail != nil {
		work.Attempt = p.retry.tries + 1
		trail.End(work, err, before...)
	}
}

const (
	// A server is busy when answers take this many times as long as the fastest recent one, plus slowBy.
	slowTimes = 3
	slowBy    = 20 * time.Millisecond
	// A busy server still gets this many requests, so that one is on its way while another is read.
	fewestRequests = 2
)

// limiter limits the requests in flight to what the server answers without slowing down. It begins with the maximum.
type limiter struct {
	most    int
	allowed float64       // 1 to most
	fastest time.Duration // of the recent answers
	usual   time.Duration // moving average of the durations
}

func newLimiter(most int) limiter { return limiter{most: most, allowed: float64(most)} }

func (l *limiter) allows(inFlight int) bool { return inFlight < int(l.allowed) }

// answered learns from the duration of an answer. full says that as many requests as allowed were in flight: only then
// more may be allowed.
func (l *limiter) answered(took time.Duration, full bool) {
	if l.usual == 0 {
		l.fastest, l.usual = took, took
	}
	l.fastest = min(l.fastest+l.fastest/1000, took) // grows slowly, so that an old minimum is forgotten
	l.usual += (took - l.usual) / 16
	switch {
	case l.usual > slowTimes*l.fastest+slowBy:
		l.allowed = max(min(fewestRequests, float64(l.most)), 0.98*l.allowed)
	case full:
		l.allowed = min(float64(l.most), l.allowed+0.5/l.allowed)
	}
}

// failed halves what is allowed: the server refused a request, or is in trouble.
func (l *limiter) failed() { l.allowed = max(1, l.allowed/2) }

const (
	// Refusals less than refusedApart after the first one are of the same moment: those requests began before it was
	// known.
	refusedApart = time.Second
	// longestSpace is the longest time between the beginnings of two requests.
	longestSpace = time.Minute
)

// rate spaces requests for a server that refuses those that come too often: by how many it answered from one refusal to
// the next. The zero value spaces nothing.
type rate struct {
	every    time.Duration // between the beginnings of two requests
	next     time.Time     // none begins before
	refused  time.Time     // the first refusal after the last answers
	answered int           // since then
}

// tooOften learns from a refusal.
func (r *rate) tooOften(now time.Time) {
	since := now.Sub(r.refused)
	if !r.refused.IsZero() && (r.answered == 0 || since < refusedApart) {
		return
	}
	if !r.refused.IsZero() {
		r.every = min(longestSpace, since/time.Duration(r.answered))
	}
	r.refused, r.answered = now, 0
}

// worked learns from an answer: the server may let more through by now.
func (r *rate) worked() {
	r.answered++
	r.every -= r.every / 64
}

// begun notes that a request begins.
func (r *rate) begun(now time.Time) { r.next = later(r.next, now).Add(r.every) }
