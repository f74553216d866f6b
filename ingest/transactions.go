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
	// A service that has nothing more is asked for its newest records about this often, for at least transactionsPollDepth
	// of them.
	transactionsPollEvery = 2 * time.Second
	transactionsPollDepth = 3
	// Another service may begin to answer without a failed request. So this often the service is asked who it is, and the
	// whole window is compared.
	transactionsMatchEvery = 10 * time.Minute
	// Pages that came while others were written are written together, up to this many records.
	transactionsBatch = 5_000
	// A page with fewer new records is probably one of the last: it is stored before the next one is read.
	leastForAhead = 100
)

// Transactions is the loop that reads the transaction history from the stored position on, and writes it. It is used
// once.
//
// It knows the service's order by a window of the last stored records. When a page does not fit the window, it asks
// again who the service is, and compares the whole window. Only if that does not fit either does it wait for the
// service, or read the history again from its beginning, into a new generation, which is shown when it is complete.
type Transactions struct {
	Source TransactionsSource
	Sink   TransactionsSink
	// Check, if set, checks that source and sink still belong together, before each try and before anything is done about
	// a page that does not fit: another service may answer. It gets what the source reports of itself.
	Check func(context.Context, ledger.TransactionsService) error
	// UntilCurrent ends the loop when the newest record as of its start is committed and shown.
	UntilCurrent bool
	Logger       *slog.Logger
	Watch        TransactionsWatch

	leastAhead int // replaces leastForAhead in tests; 0: leastForAhead
}

// TransactionsWatch has callbacks for the loop. Each may be nil; they are called from one goroutine.
type TransactionsWatch struct {
	Resumed   func(ledger.TransactionsPosition)                 // at the start, and before each new try
	Committed func(at ledger.TransactionsPosition, records int) // after a commit of that many records
	Current   func()                                            // the service has nothing more
	// the service can't be read yet, without an error; empty: it can again
	Waiting   func(why string)
	Retrying  func(err error, wait time.Duration)
	Recovered func()           // after Retrying: a read succeeded, and its records are committed
	Rereading func(why string) // a new generation was begun
	Progress  func(ledger.Progress)
}

// Run works until ctx ends (nil; transactions under way are finished), UntilCurrent is reached (nil), or an error is
// Lasting. It returns ledger.ErrNotOffered if the service has no transaction history.
func (h *Transactions) Run(ctx context.Context) error {
	r := transactionsRun{
		Transactions: h, meter: NewMeter(h.Logger, ledger.Progress{Stream: "transactions", Unit: "records"},
			h.Watch.Progress), doubled: map[string]bool{},
	}
	r.retry = Retry{
		Logger: h.Logger.With("stream", "transactions"), Final: lastingOrNotOffered,
		Failed: h.Watch.Retrying, Recovered: h.Watch.Recovered,
	}
	return loopResult(ctx, h.Logger, "transactions", r.retry.Do(ctx, r.follow))
}

// transactionsRun is the state of a run of Transactions.
type transactionsRun struct {
	*Transactions
	retry     Retry
	meter     *Meter
	target    transactionsTarget // of UntilCurrent
	caughtUp  bool               // logged
	waiting   string             // for what, as last reported; empty: for nothing
	rereading bool               // logged
	unknown   bool               // logged that there are records of unknown kinds
	rereads   rereads
	failures  int             // tries that ended because the service answered no cursor of the window
	doubled   map[string]bool // event ids on several records that are not adjacent

	// The following is set when the service is asked who it is.
	asked  time.Time
	at     ledger.TransactionsPosition // after everything that was read, stored or not
	stored ledger.TransactionsPosition // after what is stored
	pages  *TransactionPages
	goal   transactionsTarget // of a generation that is not shown: the newest record when it was begun or resumed
	fresh  bool               // nothing was read since then: the next page compares the whole window
	again  bool               // a page brought nothing new, although newer records exist: it is requested once more

	transactionsWrites
}

// follow reads and writes until something fails. When it returns, no write is under way.
func (r *transactionsRun) follow(ctx context.Context) error {
	defer r.meter.Idle()
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

// matchDue reports whether it is time to ask the service again who it is, and to compare the whole window.
func (r *transactionsRun) matchDue() bool { return time.Since(r.asked) >= transactionsMatchEvery }

// begin asks who the service is, and reads the stored position. It keeps nothing that was known before.
func (r *transactionsRun) begin(ctx context.Context) error {
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
		// A partial history can't be distinguished from a complete one, so wait until the service has all of it.
		r.await(ctx, "the service is still backfilling its own history")
		Sleep(ctx, backfillingEvery)
	}
	at, window, err := r.Sink.TransactionsPosition(ctx)
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
		r.Logger.InfoContext(ctx, "continuing to read the history again from its beginning", "stream", "transactions",
			"records", at.Records())
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

// readOnFrom starts reading at a position, after a window of stored records.
func (r *transactionsRun) readOnFrom(at ledger.TransactionsPosition, window []ledger.TransactionsMark) {
	r.at, r.stored, r.fresh, r.again = at, at, true, false
	r.pages = NewTransactionPages(r.Source, r.Logger, window, at.Records() == int64(len(window)))
	r.pages.doubled = r.doubled
	r.transactionsWrites = transactionsWrites{commits: newOrderedCommits(), pending: map[string]bool{}}
}

// step reads once and handles the result. While much is left to read, it writes concurrently with reading.
func (r *transactionsRun) step(ctx context.Context) error {
	if len(r.pages.Window) >= TransactionsWindowLimit && r.pages.Cursor() == "" {
		return &ledger.Problem{
			What: fmt.Sprintf("the last %d records of the transaction history share their event ids with others, so there is "+
				"none after which it could be read on", len(r.pages.Window)),
			Do: "read from another service (--scan-url), in whose order such records do not stand together",
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
		return r.knownEventID(ctx, known)
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

// least returns how many new records a page must have for more to be expected after it.
func (r *transactionsRun) least() int {
	if r.leastAhead > 0 {
		return r.leastAhead
	}
	return leastForAhead
}

// passed handles the targets that were passed. A page without new records may never come from a busy service, so it is
// not what ends a generation or UntilCurrent.
func (r *transactionsRun) passed(ctx context.Context) error {
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

// nothingNew handles a page without new records. It asks for the newest records, because such a page is also the answer
// to a cursor that the service does not know.
func (r *transactionsRun) nothingNew(ctx context.Context, f TransactionPage) error {
	if r.fresh && f.from >= 0 && f.last == f.from { // perhaps it does not know the oldest mark only
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
			return nil // the next step reads the page again
		}
	}
	end, newest, err := r.pages.AtEnd(ctx, confirmDepth)
	switch {
	case err != nil:
		return err
	case end:
		return r.current(ctx)
	case !r.again: // perhaps a record came between the two requests
		r.again = true
		return nil
	case !r.fresh:
		return r.begin(ctx)
	default:
		return r.lost(ctx, f, newest)
	}
}

// current is called when the history was read to its end. It waits for more.
func (r *transactionsRun) current(ctx context.Context) error {
	if r.at.Rereading() {
		if r.at.Records() == 0 && r.at.ShownTo > r.at.ShownAfter { // an empty generation must not replace one with records
			return r.behind(ctx)
		}
		if err := r.show(ctx); err != nil {
			return err
		}
	}
	r.fresh, r.again = false, false
	r.answered(ctx)
	r.meter.Idle()
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
		Sleep(ctx, transactionsPollEvery*3/4+rand.N(transactionsPollEvery/2))
		if r.matchDue() {
			return nil
		}
		end, _, err := r.pages.AtEnd(ctx, transactionsPollDepth)
		if err != nil || !end {
			return err
		}
	}
}

// answered resets the retry's waits, after the records of a read are committed. Refused cursors may be tried again:
// those that two records share are not unique in the window any more.
func (r *transactionsRun) answered(ctx context.Context) {
	r.failures = 0
	clear(r.pages.refused)
	r.arrived(ctx)
	r.retry.Worked()
}

// warnUnknown logs once that there are records of unknown kinds.
func (r *transactionsRun) warnUnknown(ctx context.Context, records []ledger.Transaction) {
	i := slices.IndexFunc(records, func(t ledger.Transaction) bool { return t.Kind == ledger.TransactionUnknown })
	if r.unknown || i < 0 {
		return
	}
	r.unknown = true
	r.Logger.WarnContext(ctx, "a record is of no kind that this version knows; such records are kept raw in "+
		"ledger.unknown_transactions",
		"stream", "transactions", "event_id", records[i].EventID)
}

// newest returns the record that is the newest now as a target. It may be in the window already.
func (r *transactionsRun) newest(ctx context.Context) (target transactionsTarget, err error) {
	newest, err := r.Source.NewestTransactions(ctx, 1)
	if err != nil {
		return target, err
	}
	if target.known = true; len(newest) == 0 {
		return target, nil
	}
	target.any, target.mark = true, ledger.TransactionsMark{Cursor: newest[0].Cursor(),
		Fingerprint: newest[0].Fingerprint()}
	for _, mark := range r.pages.Window {
		target.pass(mark.Cursor, func() int64 { return mark.Fingerprint })
	}
	return target, nil
}

// transactionsTarget is a record up to which to read: the newest at some time.
type transactionsTarget struct {
	known  bool
	any    bool // there was a record
	mark   ledger.TransactionsMark
	seen   bool // a record equal to it was committed
	passed bool // then one with another event id was committed: records that share an id are adjacent
}

func (t *transactionsTarget) take(records []ledger.Transaction) {
	for i := range records {
		t.pass(records[i].Cursor(), records[i].Fingerprint)
	}
}

func (t *transactionsTarget) pass(cursor ledger.TransactionsCursor, fingerprint func() int64) {
	switch {
	case !t.any || t.passed:
	case cursor != t.mark.Cursor:
		t.passed = t.seen
	case !t.seen:
		t.seen = fingerprint() == t.mark.Fingerprint
	}
}
