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
	// Pages that are fetched and not yet committed take at most this much JSON. The tail may hold one page more, and a page
	// that is larger is read all the same, by itself.
	bytesInFlight = 24 << 20

	// DefaultMaxRequests is how many requests are in flight at most where nothing else is said.
	DefaultMaxRequests = 8
)

// Updates is the loop that reads the update stream from the watermark on and writes it: near the ledger's end one page
// after the other (tail), far behind it many at a time (catchUp). It is used once.
type Updates struct {
	Source UpdateSource
	Sink   UpdateSink
	Scope  ledger.Scope
	Start  Start
	// ParticipantID is recorded with the first watermark; empty where the server does not say.
	ParticipantID string
	// Check, if set, is asked before each try whether source and sink still belong together: whoever answers after an
	// error may be somebody else.
	Check func(context.Context) error
	// UntilCurrent ends the loop when what was the ledger's end at its start is committed.
	UntilCurrent bool
	// MaxRequests is how many requests for updates are in flight at most; 0 means DefaultMaxRequests. Fewer are where the
	// source refuses some or gets slow.
	MaxRequests int
	Logger      *slog.Logger
	Watch       Watch
}

// Watch is told what happens. Each function may be nil; they are called from one goroutine at a time each.
type Watch struct {
	Resumed func(watermark ledger.Offset) // where the loop reads on from, at its start and before each new try
	// Committed is called after each commit that stored so many updates or moved the watermark. Up to the watermark all is
	// shown; up to the frontier all is stored.
	Committed func(watermark, frontier ledger.Offset, updates int)
	LedgerEnd func(end ledger.Offset)
	Retrying  func(err error, wait time.Duration) // something failed, and is tried again after a pause
	Recovered func()                              // after Retrying: a read was answered again, and what it brought was committed
	Progress  func(ledger.Progress)               // while there is much to do, as NewMeter says
}

// Run works until ctx ends (nil: the transactions under way were finished), UntilCurrent is reached (nil), or an error
// stays whatever is tried again.
func (u *Updates) Run(ctx context.Context) error {
	r := updatesRun{
		Updates: u, target: targetOffset{wanted: u.UntilCurrent}, pace: newPace(u.MaxRequests, u.Logger, "updates"),
		fork: newForkCheck(u.Source, u.Sink, u.Logger),
	}
	r.retry.Failed, r.retry.Recovered = u.Watch.Retrying, u.Watch.Recovered
	return followed(ctx, u.Logger, "updates", r.retry.Do(ctx, r.follow))
}

// followed is what the loop of a stream returns after an error of its last try, nil: none. What failed while the loop was told to
// stop is only said.
func followed(ctx context.Context, logger *slog.Logger, stream string, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	if !errors.Is(err, context.Canceled) {
		logger.WarnContext(ctx, "stopping; what failed is read again at the next start", "stream", stream, "error", err)
	}
	return nil
}

// updatesRun is what outlasts a try.
type updatesRun struct {
	*Updates
	pace
	fork   *forkCheck
	target targetOffset
}

// errReached ends the pipeline when UntilCurrent is fulfilled.
var errReached = errors.New("reached what was current")

// notReached is an error, but for errReached, which ends the loop without one.
func notReached(err error) error {
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// targetOffset is what UntilCurrent waits for: the first ledger end that is learned. It is kept over retries.
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

// reached tells whether the loop is done at an offset. A server that does not tell its end is current when it has
// nothing more to give.
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

// errFarBehind ends the tail where catching up is faster.
var errFarBehind = errors.New("the ledger's end is far ahead")

// follow reads and writes from the watermark on, until something fails: the tail, and a catch-up where the tail finds
// itself far behind, or where an earlier one left ranges that are stored and not shown.
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
	ahead, err := r.Sink.Ahead(ctx)
	if err != nil {
		return err
	}
	if err := r.fork.begin(ctx, at, ahead); err != nil {
		return err
	}
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	meter := NewMeter(r.Logger, ledger.Progress{Stream: "updates", Unit: "updates", From: int64(at)}, r.Watch.Progress)
	defer meter.Rest()
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

// learnEnd tells of the ledger's end to all who want to know.
func (r *updatesRun) learnEnd(end ledger.Offset, meter *Meter) {
	r.target.learn(end)
	meter.SetEnd(int64(end))
	if r.Watch.LedgerEnd != nil {
		r.Watch.LedgerEnd(end)
	}
}
