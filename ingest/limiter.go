package ingest

import "time"

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

// rate spaces requests for a server that refuses those that come too often, and does not say when to come again: by how
// many it answered from one refusal to the next. The zero value spaces nothing.
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
