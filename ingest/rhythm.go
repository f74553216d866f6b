package ingest

import (
	"context"
	"time"
)

// How long polls at the end of the ledger wait, for how many updates, and how often they begin. A Scan service, which
// holds no poll, has a pace of its own beneath this (scan/polls.go).
const (
	// LongPoll is how long a source is asked to hold a poll on a quiet ledger: well below the 20 s after which servers
	// give up on a request.
	LongPoll = 10 * time.Second
	// The most updates that one open-ended read asks for. A source may ask for fewer at once.
	mostPolled = 200

	// On a busy ledger a poll waits for as many updates as come in this time.
	gatherFor = 25 * time.Millisecond
	// A poll to a distant server, whose every answer takes long, waits for as many updates as come in this many times the
	// duration of the fastest answer. longestGap still limits the gap between two updates.
	distance = 4
	// A poll for several updates ends when none has come for longestGap, which is at least this.
	shortestGap = 10 * time.Millisecond
	// Longer gaps between updates count as this long, so that the average follows soon when the ledger gets busy.
	farthestApart = 100 * time.Millisecond

	// Requests that bring nothing new begin this far apart on average, however quickly the server answers.
	idlePollEvery = 400 * time.Millisecond
	// This many of them may follow one another at once, so that one that ended early does not delay the next update.
	pollsAtOnce = 5
)

// rhythm measures how fast updates come, from the durations of polls. It uses an average, because two updates that
// happen to come together do not mean a busy ledger. It subtracts the time that every answer takes: else the polls to a
// distant server would each wait for few updates, and never catch up.
type rhythm struct {
	begun   bool
	fastest time.Duration // recent answer, about the duration of one without waiting
	apart   time.Duration // how far apart updates come, a moving average
}

// answered learns from the duration of an answer, which was full or else ended with an idle gap, and returns how long
// of that the server waited.
func (r *rhythm) answered(took time.Duration, full bool, gap time.Duration) (waited time.Duration) {
	own := took
	if !full {
		own = max(0, took-gap)
	}
	if !r.begun {
		*r = rhythm{begun: true, fastest: own, apart: farthestApart}
	}
	r.fastest = min(r.fastest+r.fastest/1000, own) // grows slowly, so that an old minimum is forgotten
	return took - r.fastest
}

// limit returns how many updates the next poll waits for, after one that brought n of them and waited for waited.
func (r *rhythm) limit(n int, waited time.Duration) int {
	gather := max(gatherFor, distance*r.fastest)
	each := waited / time.Duration(max(1, n))
	if n == 0 {
		each = max(each, r.apart) // no update came, so they are at least that far apart
	}
	r.apart += (min(max(farthestApart, gather), each) - r.apart) / 4
	if n == 0 {
		return 1
	}
	return max(1, min(mostPolled, int(gather/max(1, r.apart))))
}

// longestGap returns the idle gap of a poll for limit updates: it ends when none has come for this long.
func longestGap(limit int) time.Duration {
	if limit == 1 {
		return LongPoll
	}
	return max(shortestGap, 2*gatherFor/time.Duration(limit))
}

// idlePolls limits the rate of requests that bring nothing new. The zero value lets the first ones begin at once.
type idlePolls struct {
	// Each request that brought nothing moves this on by idlePollEvery. The next one may begin while it is at most
	// pollsAtOnce of them ahead of now.
	paidUntil time.Time
}

// begin waits until the next request may begin, or ctx ends, and returns the time.
func (p *idlePolls) begin(ctx context.Context) time.Time {
	Sleep(ctx, time.Until(p.paidUntil.Add(-pollsAtOnce*idlePollEvery)))
	return time.Now()
}

// ended records whether a request brought nothing new.
func (p *idlePolls) ended(began time.Time, nothing bool) {
	if !nothing {
		p.paidUntil = time.Time{}
		return
	}
	p.paidUntil = later(p.paidUntil, began).Add(idlePollEvery)
}
