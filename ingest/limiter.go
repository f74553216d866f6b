package ingest

import "time"

const (
	// Answers that take so many times as long as the fastest lately, and this much more, say that the server has enough to do.
	slowTimes = 3
	slowBy    = 20 * time.Millisecond
	// fewestRequests is how many are in flight at least: while one is read, another one is on its way.
	fewestRequests = 2
)

// limiter says how many requests may be in flight: no more than the server takes easily. It begins with the most.
type limiter struct {
	most    int
	allowed float64       // 1 to most
	fastest time.Duration // of the answers lately
	usual   time.Duration // moving average
}

func newLimiter(most int) limiter { return limiter{most: most, allowed: float64(most)} }

// allows tells whether one more may be sent.
func (l *limiter) allows(inFlight int) bool { return inFlight < int(l.allowed) }

// answered takes in how long an answer took. full says that as many as allowed were in flight: otherwise it says nothing
// about more of them.
func (l *limiter) answered(took time.Duration, full bool) {
	if l.usual == 0 {
		l.fastest, l.usual = took, took
	}
	l.fastest = min(l.fastest+l.fastest/1000, took) // what was fast once is forgotten in time
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
