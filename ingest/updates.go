package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ledgerindexer/ledger"
)

const (
	// Pages that are fetched and not yet committed take at most this much JSON, and one page more.
	bytesInFlight = 64 << 20
	pagesAhead    = 16

	// How long the server holds an open-ended read on a quiet ledger. Well below its request timeout of 20 s.
	tailIdle = 10 * time.Second
	// Long polls that bring nothing new begin at least this far apart, however quickly the server answers.
	pollEvery = 200 * time.Millisecond
	// After a long poll that was answered at once, the ledger is busy: this long after it began the rest is fetched.
	gatherFor = 50 * time.Millisecond
	// Where the server does not tell its end, reads that catch up are open-ended too and ask for a full page; the
	// idle gap that ends one delays what has come, so it is short.
	blindLimit = 200
	blindIdle  = 200 * time.Millisecond

	progressEvery = 10 * time.Second
)

// Updates is the loop that reads the update stream from the watermark on and writes it. It is used once.
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
	Logger       *slog.Logger
	Watch        Watch

	compared     ledger.Offset // of the update whose content was compared last
	unrecognized bool          // it was said that the history can't be recognized
}

// Watch is told what happens. Each function may be nil; they are called from one goroutine at a time each.
type Watch struct {
	Resumed   func(watermark ledger.Offset)              // where the loop reads on from, at its start and before each new try
	Committed func(watermark ledger.Offset, updates int) // after the commit
	LedgerEnd func(end ledger.Offset)
	Retrying  func(err error)
	Recovered func() // after Retrying: a read was answered again, and what it brought was committed
}

// Run works until ctx ends (nil: the batch under way was finished), UntilCurrent is reached (nil), or an error stays
// whatever is tried again.
func (u *Updates) Run(ctx context.Context) error {
	var wait Backoff
	target := targetOffset{wanted: u.UntilCurrent}
	for {
		err := u.follow(ctx, &wait, &target)
		switch {
		case errors.Is(err, errReached):
			return nil
		case ctx.Err() != nil:
			if err != nil && !errors.Is(err, context.Canceled) {
				u.Logger.WarnContext(ctx, "stopping; what failed is read again at the next start", "stream", "updates", "error", err)
			}
			return nil
		case Lasting(err):
			return err
		}
		pause := wait.Next(err)
		u.Logger.WarnContext(ctx, "retrying", "stream", "updates", "error", err, "wait", pause.String())
		if u.Watch.Retrying != nil {
			u.Watch.Retrying(err)
		}
		Sleep(ctx, pause)
	}
}

// errReached ends the pipeline when UntilCurrent is fulfilled.
var errReached = errors.New("reached what was current")

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

// fetched is a page on its way from the reader to the writer.
type fetched struct {
	page     ledger.Page
	weight   int64
	answered bool // by the server; a page that only says "current" was not read from it
	current  bool // the ledger had nothing more when it was read
}

// follow reads and writes side by side from the watermark on, until something fails.
func (u *Updates) follow(ctx context.Context, wait *Backoff, target *targetOffset) error {
	if u.Check != nil {
		if err := u.Check(ctx); err != nil {
			return err
		}
	}
	at, err := u.resume(ctx)
	if err != nil {
		return err
	}
	seen := recognition{updates: u, changes: u.Source.Changes()}
	if seen.mark, err = u.recognize(ctx, at); err != nil {
		return err
	}
	if u.Watch.Resumed != nil {
		u.Watch.Resumed(at)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	pages := make(chan fetched, pagesAhead)
	inFlight := semaphore.NewWeighted(bytesInFlight)
	group.Go(func() error {
		defer close(pages)
		return u.read(groupCtx, at, seen, target, pages, inFlight)
	})
	group.Go(func() error {
		w := writer{
			sink: u.Sink, scope: u.Scope, watch: u.Watch, wait: wait, target: target, at: at,
			log: progressLog{logger: u.Logger, since: time.Now(), from: at},
		}
		return w.run(ctx, pages, inFlight)
	})
	return group.Wait()
}

// read fetches page after page from `at` on. A page that another server may have answered is used once the landmark has been
// seen again.
func (u *Updates) read(
	ctx context.Context, at ledger.Offset, seen recognition, target *targetOffset, pages chan<- fetched, inFlight *semaphore.Weighted,
) error {
	r := reader{source: u.Source, at: at, agreed: seen.mark.offset, watch: u.Watch, learn: target.learn}
	for {
		next, err := r.next(ctx)
		if stuck := Lasting(err); err == nil || stuck { // it may be another server that can't go on
			if changed := seen.still(ctx, r.at, stuck); changed != nil {
				return changed
			}
		}
		if err != nil {
			return err
		}
		seen.passed(next.page)
		next.weight = min(next.page.Bytes, bytesInFlight)
		if err := inFlight.Acquire(ctx, next.weight); err != nil {
			return err
		}
		select {
		case pages <- next:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.at = next.page.To
	}
}
