package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"ledgerindexer/ledger"
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

// Start is where the updates stream begins in a database without a checkpoint. The zero value is genesis.
type Start struct {
	latest bool
	offset ledger.Offset
}

// ParseStart parses "genesis", "latest" or an offset.
func ParseStart(text string) (Start, error) {
	switch text {
	case "genesis":
		return Start{}, nil
	case "latest":
		return Start{latest: true}, nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return Start{}, fmt.Errorf("start must be genesis, latest or an offset of at least 0, not %q", text)
	}
	return Start{offset: ledger.Offset(offset)}, nil
}

// Offset returns the offset, 0 for genesis. fixed is false for latest, which has none.
func (s Start) Offset() (at ledger.Offset, fixed bool) { return s.offset, !s.latest }

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

// updatesRun is the state that is kept over retries.
type updatesRun struct {
	*Updates
	pace
	fork   *forkCheck
	target targetOffset
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

// learnEnd passes on the ledger's end.
func (r *updatesRun) learnEnd(end ledger.Offset, meter *Meter) {
	r.target.learn(end)
	meter.SetEnd(int64(end))
	if r.Watch.LedgerEnd != nil {
		r.Watch.LedgerEnd(end)
	}
}

// resume returns the watermark. In a new database it sets the watermark to Start first.
func (u *Updates) resume(ctx context.Context) (ledger.Offset, error) {
	at, started, err := u.Sink.Watermark(ctx)
	if err != nil || started {
		return at, err
	}
	at, err = u.firstOffset(ctx)
	if err != nil {
		return 0, err
	}
	// At the beginning of the ledger nothing is active, so the active set is known from there on.
	if err := u.Sink.Start(ctx, u.ParticipantID, u.Scope, at, at == 0); err != nil {
		return 0, err
	}
	if at > 0 {
		u.Logger.WarnContext(ctx, "started in the middle of the ledger without a snapshot: contracts created before are "+
			"missing from the active set",
			"offset", int64(at))
	}
	return at, nil
}

func (u *Updates) firstOffset(ctx context.Context) (ledger.Offset, error) {
	wanted := &u.Start.offset
	if u.Start.latest {
		wanted = nil
	}
	return chooseOffset(ctx, u.Source, wanted, cures{
		noEnd: "give the offset to start at with --start",
		above: "give --start an offset up to the ledger's end",
		pruned: "seed the database with `backfill`, then start the indexer again; or give --start an offset from the " +
			"pruned one on, which leaves the active set unknown",
	})
}
