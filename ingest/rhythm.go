package ingest

import (
	"context"
	"time"
)

const (
	// On a busy ledger a poll waits for as many updates as come in this time.
	gatherFor = 25 * time.Millisecond
	// To a distant server it waits for as many as come while so many answers are on their way: whatever part of their time it
	// takes for waiting, as answers are not all as fast as the fastest, the next poll asks for more. They do not wait so long
	// for one another, see longestGap.
	distance = 4
	// A poll for several updates gives up when none has come for this long, or less where more are to come.
	shortestGap = 10 * time.Millisecond
	// Updates that come farther apart count as this far apart, so that a ledger that gets busy is soon seen to be.
	farthestApart = 100 * time.Millisecond

	// Requests that bring nothing new begin this far apart on average, however quickly the server answers.
	pollEvery = 400 * time.Millisecond
	// So many of them may follow one another at once: what ends one early must not delay the update that comes next.
	pollsAtOnce = 5
)

// rhythm is how quickly updates come, as polls see it. It is an average, as two updates that happen to come together are no busy
// ledger. The time that every answer takes says nothing about updates: were it counted, the polls to a distant server would
// wait for few updates each, and never catch up with those that come meanwhile.
type rhythm struct {
	begun   bool
	fastest time.Duration // of the answers lately, so about what one takes that waits for nothing
	apart   time.Duration // how far apart updates come, a moving average
}

// answered takes in how long an answer took that was full, or that ended with an idle gap, and returns for how long of that the
// server waited.
func (r *rhythm) answered(took time.Duration, full bool, gap time.Duration) (waited time.Duration) {
	own := took
	if !full {
		own = max(0, took-gap)
	}
	if !r.begun {
		*r = rhythm{begun: true, fastest: own, apart: farthestApart}
	}
	r.fastest = min(r.fastest+r.fastest/1000, own) // what was fast once is forgotten in time
	return took - r.fastest
}

// limit is how many updates the next poll waits for, after one brought n of them and the server waited so long.
func (r *rhythm) limit(n int, waited time.Duration) int {
	gather := max(gatherFor, distance*r.fastest)
	each := waited / time.Duration(max(1, n))
	if n == 0 {
		each = max(each, r.apart) // they are at least so far apart
	}
	r.apart += (min(max(farthestApart, gather), each) - r.apart) / 4
	if n == 0 {
		return 1
	}
	return max(1, min(fullPoll, int(gather/max(1, r.apart))))
}

// longestGap is how long a poll for so many updates may go without one before it is answered with what has come.
func longestGap(limit int) time.Duration {
	if limit == 1 {
		return tailIdle
	}
	return max(shortestGap, 2*gatherFor/time.Duration(limit))
}

// idlePace keeps requests that bring nothing new from becoming many. The zero value lets the first ones begin at once.
type idlePace struct{ used time.Time } // until when the time is used up that those so far may take

// begin waits until the next request may begin, or ctx ends, and returns the time.
func (p *idlePace) begin(ctx context.Context) time.Time {
	Sleep(ctx, time.Until(p.used.Add(-pollsAtOnce*pollEvery)))
	return time.Now()
}

// ended notes whether a request that began then brought nothing new.
func (p *idlePace) ended(began time.Time, nothing bool) {
	if !nothing {
		p.used = time.Time{}
		return
	}
	p.used = later(p.used, began).Add(pollEvery)
}
