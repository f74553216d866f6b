package ingest

import (
	"context"
	"time"
)

// eventLoop is one goroutine that owns the state of some work, and decides what begins. Requests and transactions run beside
// it, and report to it when they are done.
type eventLoop struct {
	unread error // why nothing more is read; what was read is still written
	failed error // why nothing more is begun at all
	// woken, if not nil, is received from when there may be something to begin although nothing has reported.
	woken <-chan struct{}

	reports  chan func()
	underWay int
}

// run lets next begin what can be begun, again after each report and now and then, until there is nothing under way, something
// fails or ctx ends. It returns when all that was begun has ended. What next reads is to end with the context that it is given.
func (l *eventLoop) run(ctx context.Context, next func(reading context.Context)) error {
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	l.reports = make(chan func())
	linger := time.NewTicker(lingerFor) // where one request hangs, and nothing else is under way, nobody reports
	defer linger.Stop()
	for {
		next(reading)
		if l.underWay == 0 {
			break
		}
		select {
		case report := <-l.reports:
			report()
		case <-l.woken:
		case <-linger.C:
		}
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

// begin does something beside run, which then gets its report.
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

// fail ends everything as soon as what is under way has ended; the first reason counts.
func (l *eventLoop) fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
}
