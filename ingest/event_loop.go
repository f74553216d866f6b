package ingest

import (
	"context"
	"time"
)

// eventLoop is one goroutine that owns the state of some work and decides what to start. Requests and transactions run
// in goroutines of their own, and send it a report, a function that it calls, when they are done.
type eventLoop struct {
	unread error // why nothing more is read; what was read is still written
	failed error // why nothing more is started at all
	// woken, if not nil, wakes the loop when there may be something to start although nothing has reported.
	woken <-chan struct{}
	// wakeAt, if set, is when there is something to start although nothing is under way. next sets it anew.
	wakeAt time.Time

	reports  chan func()
	underWay int
}

// lingerFor is how long an eventLoop waits without a report before it looks again whether something can be started.
// Batches that do not get full are written this often.
const lingerFor = 2 * time.Second

// run calls next, which starts what can be started, after each report and every lingerFor, until nothing is under way
// and no time is set to wake. It returns when everything that was started has ended. next starts its reads with the
// context reading, which ends when something fails.
func (l *eventLoop) run(ctx context.Context, next func(reading context.Context)) error {
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	l.reports = make(chan func())
	linger := time.NewTicker(lingerFor) // while one request hangs and nothing else is under way, there is no report
	defer linger.Stop()
	for {
		l.wakeAt = time.Time{}
		next(reading)
		if l.underWay == 0 && l.wakeAt.IsZero() {
			break
		}
		var ended <-chan struct{} // while something is under way, its report comes soon
		if l.underWay == 0 {
			ended = ctx.Done()
		}
		wake := time.NewTimer(time.Until(l.wakeAt))
		if l.wakeAt.IsZero() {
			wake.Stop()
		}
		select {
		case report := <-l.reports:
			report()
		case <-l.woken:
		case <-ended:
		case <-wake.C:
		case <-linger.C:
		}
		wake.Stop()
		if l.failed != nil {
			stopReading()
		}
	}
	switch {
	case l.failed != nil:
		return l.failed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return l.unread
}

// begin runs do in a goroutine of its own; run then calls the report that it returns.
func (l *eventLoop) begin(do func() (report func())) {
	l.underWay++
	go func() {
		report := do()
		l.reports <- func() {
			l.underWay--
			report()
		}
	}()
}

// fail ends the loop as soon as what is under way has ended; the first error counts.
func (l *eventLoop) fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
}
