package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

const (
	// A service that has nothing more is asked for its newest records about this often, for so many at least.
	historyPollEvery = 2 * time.Second
	historyPollDepth = 3
	// A service can become another one without failing a request: so often it is asked who it is, and the whole window
	// is matched.
	historyMatchEvery = 10 * time.Minute
	// Pages that came while others were written are written together, until they have so many records.
	historyBatch = 5_000
	// A page with fewer new records has little behind it: it is stored before the next one is read.
	leastForAhead = 100
)

// History is the loop that reads the transaction history from where it was read to, and writes it. It is used once.
//
// What it knows of the service's order is the window of the last stored records. A page that does not fit the window is looked
// at anew: who is it that serves, and is this its order? Only then is the service waited for, or the history read from its beginning
// into a generation of its own, which is shown when it is complete.
type History struct {
	Source HistorySource
	Sink   HistorySink
	// Check, if set, is asked before each try, and before anything is done about a service that does not fit, whether
	// source and sink still belong together: whoever answers may be somebody else. It is given what the source says of
	// itself.
	Check func(context.Context, ledger.HistoryService) error
	// UntilCurrent ends the loop when what was the newest record at its start is committed, and shown.
	UntilCurrent bool
	Logger       *slog.Logger
	Watch        HistoryWatch

	leastAhead int // a page with fewer new records has little behind it; 0: as usual
}

// HistoryWatch is told what happens. Each function may be nil; they are called from one goroutine.
type HistoryWatch struct {
	Resumed   func(ledger.HistoryPosition)                 // where the loop reads on from, at its start and before each new try
	Committed func(at ledger.HistoryPosition, records int) // after the commit, of so many records
	Current   func()                                       // the service has nothing more
	Waiting   func(why string)                             // nothing is wrong here, but the service must get somewhere first; empty: it has
	Retrying  func(err error, wait time.Duration)
	Recovered func()           // after Retrying: the service was read again, and what it brought was committed
	Rereading func(why string) // a new generation was begun
	Progress  func(ledger.Progress)
}

// Run works until ctx ends (nil: what was being written is stored), UntilCurrent is reached (nil), or an error stays
// whatever is tried again. Where the service has no history at all it returns ledger.ErrNotOffered.
func (h *History) Run(ctx context.Context) error {
	r := historyRun{
		History: h, meter: NewMeter(h.Logger, ledger.Progress{Stream: "transactions", Unit: "records"}, h.Watch.Progress), doubled: map[string]bool{},
	}
	r.retry = Retry{
		Logger: h.Logger.With("stream", "transactions"), Final: lastingOrNotOffered,
		Failed: h.Watch.Retrying, Recovered: h.Watch.Recovered,
	}
	return followed(ctx, h.Logger, "transactions", r.retry.Do(ctx, r.follow))
}

// historyRun is what a run of History knows.
type historyRun struct {
	*History
	retry     Retry
	meter     *Meter
	target    historyTarget
	caughtUp  bool   // it was said
	waiting   string // for what, as it was said; empty: for nothing
	rereading bool   // it was said
	unknown   bool   // it was said that there are records of unknown kinds
	rereads   rereads
	failures  int             // tries that ended because no cursor of the window was answered
	doubled   map[string]bool // event ids that the service has on records which do not stand together

	// Since the service was last asked who it is.
	asked  time.Time
	at     ledger.HistoryPosition // behind all that was read, as if it were stored
	stored ledger.HistoryPosition // behind what is stored
	pages  *HistoryPages
	goal   historyTarget // while a generation is read that is not shown: what was the newest record then
	fresh  bool          // nothing was read since the service was asked who it is: the whole window is to be matched
	again  bool          // a page brought nothing new, the newest records said otherwise, and it is asked for again

	historyWrites
}

// follow reads and writes, until something fails. What is being written when it ends is stored or has failed.
func (r *historyRun) follow(ctx context.Context) error {
	defer r.meter.Rest()
	defer r.end()
	if err := r.begin(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if r.matchDue() {
			if err := r.begin(ctx); err != nil {
				return err
			}
		}
		if err := r.step(ctx); err != nil {
			return notReached(err)
		}
	}
	return nil
}

// matchDue tells whether the service is to be asked again who it is, and the whole window to be matched.
func (r *historyRun) matchDue() bool { return time.Since(r.asked) >= historyMatchEvery }

// begin asks who serves and what is stored, and assumes nothing of what was known before.
func (r *historyRun) begin(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	for {
		service, err := r.Source.Describe(ctx)
		if err != nil {
			return err
		}
		if r.Check != nil {
			if err := r.Check(ctx, service); err != nil {
				return err
			}
		}
		if !service.Backfilling {
			break
		}
		// A partial history that is filled in later can't be told from a complete one.
		r.await(ctx, "the service is still backfilling its own history")
		Sleep(ctx, backfillingEvery)
	}
	at, window, err := r.Sink.HistoryPosition(ctx)
	if err == nil && at.Leftovers {
		at, err = r.Sink.DropLeftovers(ctx, at)
	}
	if err != nil {
		return err
	}
	r.asked = time.Now()
	r.readOnFrom(at, window)
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	if at.Rereading() && !r.rereading {
		r.rereading = true
		r.Logger.InfoContext(ctx, "going on reading the history again from its beginning", "stream", "transactions", "records", at.Records())
	}
	if r.UntilCurrent && !r.target.known {
		if r.target, err = r.newest(ctx); err != nil {
			return err
		}
	}
	if at.Rereading() {
		r.goal, err = r.newest(ctx)
	}
	return err
}

// readOnFrom forgets what was known of the service's order but some last records that are stored.
func (r *historyRun) readOnFrom(at ledger.HistoryPosition, window []ledger.HistoryMark) {
	r.at, r.stored, r.fresh, r.again = at, at, true, false
	r.pages = NewHistoryPages(r.Source, r.Logger, window, at.Records() == int64(len(window)))
	r.pages.doubled = r.doubled
	r.historyWrites = historyWrites{commits: newOrderedCommits(), pending: map[string]bool{}}
}

// step reads once and does what follows from it. While much is left to read, what was read is written meanwhile.
func (r *historyRun) step(ctx context.Context) error {
	if len(r.pages.Window) >= HistoryWindowLimit && r.pages.Cursor() == "" {
		return &ledger.Problem{
			What: fmt.Sprintf("the last %d records of the transaction history share their event ids with others, so there is none after which it could be read on", len(r.pages.Window)),
			Do:   "read from another service (--scan-url), in whose order such records do not stand together",
		}
	}
	f, err := r.pages.Next(ctx, r.fresh)
	if err == nil && len(f.Records) > 0 {
		err = r.take(f)
	}
	if err == nil && len(f.Records) >= r.least() && !r.fresh && !r.again {
		if err = r.writeAhead(ctx); err == nil {
			return r.passed(ctx)
		}
	}
	if failed := r.settle(ctx); failed != nil {
		err = failed
	}
	var known *ledger.KnownEventIDError
	switch {
	case errors.As(err, &known):
		return r.known(ctx, known)
	case err != nil:
		return err
	case f.Differs:
		return r.differs(ctx, f)
	case len(f.Records) == 0:
		return r.nothingNew(ctx, f)
	}
	r.fresh, r.again = false, false
	return r.passed(ctx)
}

// least is how many new records a page has that more is to be expected behind.
func (r *historyRun) least() int {
	if r.leastAhead > 0 {
		return r.leastAhead
	}
	return leastForAhead
}

// passed does what is to be done when what was the newest record is stored: a busy service is never seen with nothing new.
func (r *historyRun) passed(ctx context.Context) error {
	if r.at.Rereading() && r.goal.passed {
		if err := r.show(ctx); err != nil {
			return err
		}
	}
	if r.target.passed && !r.at.Rereading() {
		if err := r.settle(ctx); err != nil {
			return err
		}
		return errReached
	}
	return nil
}

// nothingNew asks for the newest records: a page without new ones may also be the answer to a cursor that the
// service does not know.
func (r *historyRun) nothingNew(ctx context.Context, f HistoryPage) error {
	if r.fresh && f.from >= 0 && f.last == f.from { // it may have lost the oldest mark only
		more, err := r.pages.Next(ctx, false)
		if err != nil {
			return err
		}
		f = more
		if f.Differs {
			return r.differs(ctx, f)
		}
		if len(f.Records) > 0 {
			r.fresh = false
			return nil // it is read once more
		}
	}
	end, newest, err := r.pages.AtEnd(ctx, confirmDepth)
	switch {
	case err != nil:
		return err
	case end:
		return r.current(ctx)
	case !r.again: // a record may have come between the two requests
		r.again = true
		return nil
	case !r.fresh:
		return r.begin(ctx)
	default:
		return r.lost(ctx, f, newest)
	}
}

// current notes that the history was read to its end, and waits for more.
func (r *historyRun) current(ctx context.Context) error {
	if r.at.Rereading() {
		if r.at.Records() == 0 && r.at.ShownTo > r.at.ShownAfter { // nothing takes the place of something only by mistake
			return r.behind(ctx)
		}
		if err := r.show(ctx); err != nil {
			return err
		}
	}
	r.fresh, r.again = false, false
	r.answered(ctx)
	r.meter.Rest()
	if !r.caughtUp {
		r.caughtUp = true
		r.Logger.InfoContext(ctx, "caught up", "stream", "transactions", "last_seq", r.at.LastSeq)
	}
	for {
		if r.Watch.Current != nil {
			r.Watch.Current()
		}
		if r.UntilCurrent {
			return errReached
		}
		Sleep(ctx, historyPollEvery*3/4+rand.N(historyPollEvery/2))
		if r.matchDue() {
			return nil
		}
		end, _, err := r.pages.AtEnd(ctx, historyPollDepth)
		if err != nil || !end {
			return err
		}
	}
}

// answered begins the waits anew: the service was read, and what it brought is committed. A cursor that it refused
// is in the window with both its records by then, or can be tried once more.
func (r *historyRun) answered(ctx context.Context) {
	r.failures = 0
	clear(r.pages.refused)
	r.arrived(ctx)
	r.retry.Worked()
}

// tellUnknown says once that there are records of unknown kinds.
func (r *historyRun) tellUnknown(ctx context.Context, records []ledger.Transaction) {
	i := slices.IndexFunc(records, func(t ledger.Transaction) bool { return t.Kind == ledger.TransactionUnknown })
	if r.unknown || i < 0 {
		return
	}
	r.unknown = true
	r.Logger.WarnContext(ctx, "a record is of no kind that this version knows; such records are kept raw in ledger.unknown_transactions",
		"stream", "transactions", "event_id", records[i].EventID)
}

// newest makes the record that is the newest now a target, of which the window may have been read already.
func (r *historyRun) newest(ctx context.Context) (target historyTarget, err error) {
	newest, err := r.Source.NewestTransactions(ctx, 1)
	if err != nil {
		return target, err
	}
	if target.known = true; len(newest) == 0 {
		return target, nil
	}
	target.any, target.mark = true, ledger.HistoryMark{Cursor: newest[0].Cursor(), Fingerprint: newest[0].Fingerprint()}
	for _, mark := range r.pages.Window {
		target.pass(mark.Cursor, func() int64 { return mark.Fingerprint })
	}
	return target, nil
}

// historyTarget is a record to which to read: the one that was the newest at a first look. What UntilCurrent waits for
// is kept over retries.
type historyTarget struct {
	known  bool
	any    bool // there was one
	mark   ledger.HistoryMark
	seen   bool // it, or one that is equal to it
	passed bool // it was seen, and one of another event id behind it: records that share an id stand together
}

// take notes records that were committed.
func (t *historyTarget) take(records []ledger.Transaction) {
	for i := range records {
		t.pass(records[i].Cursor(), records[i].Fingerprint)
	}
}

func (t *historyTarget) pass(cursor ledger.HistoryCursor, fingerprint func() int64) {
	switch {
	case !t.any || t.passed:
	case cursor != t.mark.Cursor:
		t.passed = t.seen
	case !t.seen:
		t.seen = fingerprint() == t.mark.Fingerprint
	}
}
