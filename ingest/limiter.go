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

// answered learns from the duration of an answer. full says that as many requests as allowed were in flight: only then more may
// be allowed.
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
