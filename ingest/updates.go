package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"ledgerindexer/ledger"
)

const (
	// The budget for pages that are fetched and not committed yet, in bytes of JSON. The tail may hold one page more, and
	// a larger page is read by itself.
	bytesInFlight = 24 << 20

	// DefaultMaxRequests is the default limit on the requests in flight.
	DefaultMaxRequests = 8
)

// Updates is the loop that reads the update stream from the watermark on and writes it: near the ledger's end one page
// after the other (tail), far behind it many at a time (catchUp). It is used once.
type Updates struct {
	Source UpdateSource
	Sink   UpdateSink
	Scope  ledger.Scope
	Start  Start
	// ParticipantID is recorded with the first watermark; empty if the server does not report it.
	ParticipantID string
	// Check, if set, checks before each try that source and sink still belong together: after an error another server may
	// answer.
	Check func(context.Context) error
	// Past, if set, reads updates that are stored again, in the scope in which they were read, to detect a fork; nil:
	// Source does.
	Past UpdateReader
	// UntilCurrent ends the loop when the ledger's end as of its start is committed.
	UntilCurrent bool
	// MaxRequests limits the requests for updates in flight; 0 means DefaultMaxRequests. The loop uses fewer if the source
	// refuses some or gets slow.
	MaxRequests int
	Logger      *slog.Logger
	Watch       Watch
	Tracer      Tracer // nil: nothing is traced
}

// Watch has callbacks for the loop. Each may be nil, and is called from one goroutine at a time.
type Watch struct {
	Resumed func(watermark ledger.Offset) // at the start, and before each new try
	// Committed is called after each commit that stored updates or moved the watermark, with the number of updates.
	Committed func(watermark, frontier ledger.Offset, updates int)
	LedgerEnd func(end ledger.Offset)
	// how much JSON of updates is fetched and not written now, after each change
	Queued    func(bytes int64)
	Retrying  func(err error, wait time.Duration) // something failed, and is tried again after the wait
	Recovered func()                              // after Retrying: a read succeeded, and its updates are committed
	Progress  func(ledger.Progress)               // during long work; see NewMeter
}

// Run works until ctx ends (nil; transactions under way are finished), UntilCurrent is reached (nil), or an error is
// Lasting.
func (u *Updates) Run(ctx context.Context) error {
	r := updatesRun{
		Updates: u, target: targetOffset{wanted: u.UntilCurrent}, pace: newPace(u.MaxRequests, u.Logger, "updates"),
		fork: newForkCheck(u.Source, u.Past, u.Sink, u.Logger),
	}
	r.retry.Failed, r.retry.Recovered, r.queued, r.tracer = u.Watch.Retrying, u.Watch.Recovered, u.Watch.Queued, u.Tracer
	return loopResult(ctx, u.Logger, "updates", r.retry.Do(ctx, r.follow))
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

// updatesRun is the state that is kept over retries.
type updatesRun struct {
	*Updates
	pace
	fork   *forkCheck
	target targetOffset
}

// errReached ends the loop when UntilCurrent is reached.
var errReached = errors.New("reached what was current")

// notReached returns nil for errReached, and any other error unchanged.
func notReached(err error) error {
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// targetOffset is what UntilCurrent waits for: the first known ledger end. It is kept over retries.
type targetOffset struct {
	wanted bool

	mu     sync.Mutex
	known  bool
	offset ledger.Offset
}

func (t *targetOffset) learn(end ledger.Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		t.offset, t.known = end, true
	}
}

// reached reports whether UntilCurrent is reached at an offset. If the server does not report its end, current decides:
// the last read found nothing more.
func (t *targetOffset) reached(at ledger.Offset, current bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wanted {
		return false
	}
	if t.known {
		return at >= t.offset
	}
	return current
}

// errFarBehind ends the tail when catching up is faster.
var errFarBehind = errors.New("the ledger's end is far ahead")

// follow reads and writes from the watermark on, until something fails. It catches up if the tail is far behind, or if
// an earlier catch-up left ranges that are stored and not projected; else it is the tail.
func (r *updatesRun) follow(ctx context.Context) error {
	if r.Check != nil {
		if err := r.Check(ctx); err != nil {
			return err
		}
	}
	at, err := r.resume(ctx)
	if err != nil {
		return err
	}
	ahead, err := r.Sink.StoredAhead(ctx)
	if err != nil {
		return err
	}
	if err := r.fork.begin(ctx, at, ahead); err != nil {
		return err
	}
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "updates", Unit: "updates", Start: int64(at)}, r.Watch.Progress)
	defer meter.Idle()
	for end := at; ; {
		if len(ahead) > 0 || end > at {
			c := newCatchUp(r, meter, at, end, ahead)
			if err := c.run(ctx); err != nil {
				return notReached(err)
			}
			at, ahead = c.at, nil
		}
		t := newTail(r, meter, at)
		if err := t.run(ctx); !errors.Is(err, errFarBehind) {
			return notReached(err)
		}
		at, end = t.at, t.reader.end
	}
}

// learnEnd passes on the ledger's end.
func (r *updatesRun) learnEnd(end ledger.Offset, meter *Meter) {
	r.target.learn(end)
	meter.SetEnd(int64(end))
	if r.Watch.LedgerEnd != nil {
		r.Watch.LedgerEnd(end)
	}
}
