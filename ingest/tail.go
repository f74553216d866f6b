package ingest

import (
	"context"
	"errors"
	"math"
	"time"

	"ledgerindexer/ledger"
)

// How far a tail, which reads near the ledger's end, reads ahead of writing.
const (
	// At most this many pages are read ahead of writing.
	pagesAhead = 16
	// A quiet ledger repeats its offset checkpoint with newer times about twice a second. Such repetitions are written
	// this often.
	repeatEvery = 10 * time.Second
)

// tail reads and writes near the ledger's end. It is a loader with one open-ended window: it reads one page after the
// other, and meanwhile writes what has come: facts, coverage, projections and watermark in one transaction.
type tail struct {
	*updatesRun
	load   *loader
	reader reader
	meter  *Meter

	at       ledger.Offset // the watermark
	repeated time.Time     // when repeated offset checkpoints were last written
	caughtUp bool
}

func newTail(r *updatesRun, meter *Meter, at ledger.Offset) *tail {
	return &tail{
		updatesRun: r, meter: meter, at: at,
		load: &loader{pace: &r.pace, source: r.Source, scope: r.Scope, fork: r.fork, plan: &plan{limit: math.MaxInt64},
			ordered: true},
		reader: reader{updatesRun: r, at: at, agreed: r.fork.last.offset, meter: meter},
	}
}

// read begins to read the next page, unless one is being read or too much waits to be written.
func (t *tail) read(ctx context.Context) {
	l := t.load
	if ctx.Err() != nil || l.unread != nil || l.fetching > 0 || len(l.pages) >= pagesAhead || l.room > mostRoom {
		return
	}
	l.fetching++
	reading, trail := l.startTrail(ctx)
	l.begin(func() func() {
		var next fetched
		err := l.readChecked(reading, func() (page *ledger.Page, err error) {
			next, err = t.reader.next(reading)
			next.trail = trail
			return &next.page, err
		})
		return func() {
			l.fetching--
			switch {
			case err == nil:
				t.arrived(next)
			case ctx.Err() == nil:
				if !errors.Is(err, errFarBehind) {
					l.endTrail(trail, Work{Name: "read", Range: ledger.Range{From: t.reader.at, To: t.reader.at}}, err)
				}
				l.giveUp(0, err)
			}
		}
	})
}

// arrived records a page. It drops repeated offset checkpoints until repeatEvery has passed.
func (t *tail) arrived(next fetched) {
	page := &next.page
	t.reader.at = page.To
	if page.To == page.From && len(page.Checkpoints) > 0 {
		if time.Since(t.repeated) < repeatEvery {
			page.Checkpoints = nil
		} else {
			t.repeated = time.Now()
		}
	}
	t.load.answered = t.load.answered || next.answered // an answer to LedgerEnd alone must not reset the retry's waits
	t.load.hold(page.Bytes)
	t.load.pages = append(t.load.pages, next)
}

func (t *tail) written(ctx context.Context, b batch) {
	if len(b.pages) > 0 {
		t.at = b.to()
		if t.Watch.Committed != nil {
			t.Watch.Committed(t.at, t.at, b.updates)
		}
		t.meter.Add(ctx, int64(t.at), b.updates)
	}
	if b.current {
		t.meter.Idle()
	}
	reached := t.target.reached(t.at, b.current)
	if (b.current || reached) && !t.caughtUp {
		t.caughtUp = true
		t.Logger.InfoContext(ctx, "caught up", "stream", "updates", "watermark", int64(t.at))
	}
	if reached {
		t.load.fail(errReached)
	}
}
