package ingest

import (
	"context"
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
	// At least so many of the newest records must be the last stored ones before the history counts as read to its end.
	confirmDepth = 20
	// A page is asked for so many stored records early, so that they come again and show that the service is still the
	// one, in the order, from which they were read.
	historyOverlap = 50
	// A service can become another one without failing a request: so often it is asked who it is, and the whole window
	// is matched.
	historyMatchEvery = 10 * time.Minute
	// So many of the newest records can be asked for at once.
	mostNewest = 1000
)

// History is the loop that reads the transaction history from its checkpoint on and writes it. It is used once.
//
// What it knows of the service's order is the window of the last stored records. Each page is asked after an event id
// of the window, and what comes again must match the window record by record; what comes behind the window is new. So
// a record that is read twice is stored once, and two equal records are stored twice. Whatever does not fit is looked
// at anew: who is it that serves, and is this its order? Only then is the service waited for, or the history read
// again from its beginning.
type History struct {
	Source HistorySource
	Sink   HistorySink
	// Check, if set, is asked before each try, and before anything is done about a service that does not fit, whether
	// source and sink still belong together: whoever answers may be somebody else. It is given what the source says of
	// itself.
	Check func(context.Context, ledger.HistoryService) error
	// UntilCurrent ends the loop when what was the newest record at its start is committed, and the history is not being
	// read again.
	UntilCurrent bool
	Logger       *slog.Logger
	Watch        HistoryWatch

	leastAhead int // a page with fewer new records has little behind it; 0: as usual
}

// HistoryWatch is told what happens. Each function may be nil; they are called from one goroutine.
type HistoryWatch struct {
	Resumed   func(ledger.HistoryPosition)                 // where the loop reads on from, at its start and before each new try
	Committed func(at ledger.HistoryPosition, records int) // after the commit: how many records were new
	Current   func()                                       // the service has nothing more
	Waiting   func(why string)                             // nothing is wrong here, but the service must get somewhere first; empty: it has
	Retrying  func(err error, wait time.Duration)
	Recovered func() // after Retrying: the service was read again, and what it brought was committed
	Rereading func(why string)
	Progress  func(ledger.Progress) // while there is much to read, as NewMeter says
}

// Run works until ctx ends (nil: the page under way was finished), UntilCurrent is reached (nil), or an error stays
// whatever is tried again. Where the service has no history at all it returns ledger.ErrNotOffered.
func (h *History) Run(ctx context.Context) error {
	r := historyRun{History: h, meter: NewMeter(h.Logger, ledger.Progress{Stream: "transactions", Unit: "records"}, h.Watch.Progress)}
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
	target    historyTarget
	meter     *Meter
	caughtUp  bool   // it was said
	waiting   string // for what, as it was said; empty: for nothing
	rereading bool   // it was said
	unknown   bool   // it was said that there are records of unknown kinds
	rereads   rereads
	failures  int // tries that ended because no event id of the window was answered

	// Since the service was last asked who it is.
	asked   time.Time
	at      ledger.HistoryPosition
	goal    historyTarget   // while the history is read again: what was the newest record then
	fresh   bool            // nothing was read since the service was asked who it is: the whole window is to be matched
	again   bool            // a page brought nothing new, the newest records said otherwise, and it is asked for again
	ordered bool            // the service tells its beginning from its end
	refused map[string]bool // event ids after which it can't read on
}

// follow reads and writes, until something fails.
func (r *historyRun) follow(ctx context.Context) error {
	defer r.meter.Rest()
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
	at, err := r.Sink.HistoryPosition(ctx)
	if err != nil {
		return err
	}
	r.asked = time.Now()
	r.at, r.fresh, r.again, r.ordered, r.refused = at, true, false, false, map[string]bool{}
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	if at.Rereading && !r.rereading {
		r.rereading = true
		r.Logger.InfoContext(ctx, "going on reading the history again from its beginning", "stream", "transactions", "last_seq", at.LastSeq)
	}
	if r.UntilCurrent && !r.target.known {
		if r.target, err = r.newest(ctx, at.Window); err != nil {
			return err
		}
	}
	if at.Rereading {
		if r.goal, err = r.newest(ctx, at.Window); err != nil {
			return err
		}
	}
	return nil
}

// step reads once and does what follows from it.
func (r *historyRun) step(ctx context.Context) error {
	found, err := r.read(ctx)
	switch {
	case err != nil:
		return err
	case found.differs:
		return r.differs(ctx, found)
	case len(found.records) > 0:
		return r.add(ctx, found)
	default:
		return r.nothingNew(ctx)
	}
}

// add stores the records of a page that follow the window.
func (r *historyRun) add(ctx context.Context, found found) error {
	// Place alone does not protect from a service that serves old records behind the window.
	met, err := r.Sink.MetTransactions(ctx, eventIDs(found.records))
	if err != nil {
		return err
	}
	matched := r.at.Window[found.from+1:]
	for i := unaccounted(found.records, met, matched); i >= 0; i = unaccounted(found.records, met, matched) {
		if !r.fresh {
			return r.begin(ctx)
		}
		id := found.records[i].EventID
		// To read again and again would not bring two records of one id closer together.
		twice := false
		if r.at.Rereading {
			if twice, err = r.servesTwice(ctx, id); err != nil {
				return err
			}
		}
		if !twice {
			return r.reread(ctx, fmt.Sprintf("behind the last records that were read the service serves event id %q, which was read already", id))
		}
		delete(met, id)
	}
	if r.readsAhead(len(found.records)) {
		err = r.readAhead(ctx, found.records, met)
	} else {
		err = r.commit(ctx, found.records)
	}
	if err != nil {
		return err
	}
	r.fresh, r.again = false, false
	if r.at.Rereading && r.goal.passed && r.endsWithNew() {
		// A busy service is never seen with nothing new.
		if err := r.finishReread(ctx); err != nil {
			return err
		}
	}
	if r.target.passed && !r.at.Rereading {
		return errReached
	}
	return nil
}

// endsWithNew tells whether the last record that was read had not been stored before.
func (r *historyRun) endsWithNew() bool {
	return r.at.Window[len(r.at.Window)-1].Seq == r.at.LastSeq
}

// commit writes records. That is finished once it was begun.
func (r *historyRun) commit(ctx context.Context, records []ledger.Transaction) error {
	at, err := r.Sink.AppendTransactions(context.WithoutCancel(ctx), r.at, records)
	if err != nil {
		return err
	}
	added := int(at.LastSeq - r.at.LastSeq)
	r.at = at
	r.committed(ctx, at, added, records)
	return nil
}

// committed notes that records are stored, of which some were new.
func (r *historyRun) committed(ctx context.Context, at ledger.HistoryPosition, added int, records []ledger.Transaction) {
	if r.Watch.Committed != nil {
		r.Watch.Committed(at, added)
	}
	r.tellUnknown(ctx, records)
	r.target.take(records)
	r.goal.take(records)
	r.meter.Add(ctx, at.LastSeq, len(records))
	r.answered(ctx)
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

// nothingNew asks for the newest records: a page without new ones may also be the answer to an event id that the
// service does not know.
func (r *historyRun) nothingNew(ctx context.Context) error {
	newest, err := r.Source.NewestTransactions(ctx, lookFor(r.at.Window, confirmDepth))
	switch {
	case err != nil:
		return err
	case endsWith(&r.at, newest):
		return r.current(ctx)
	case !r.again: // a record may have come between the two requests
		r.again = true
		return nil
	case !r.fresh:
		return r.begin(ctx)
	default:
		return r.resynchronise(ctx, newest)
	}
}

// current notes that the history was read to its end, and waits for more.
func (r *historyRun) current(ctx context.Context) error {
	if r.at.Rereading {
		if err := r.finishReread(ctx); err != nil {
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
		newest, err := r.Source.NewestTransactions(ctx, lookFor(r.at.Window, historyPollDepth))
		if err != nil {
			return err
		}
		if !endsWith(&r.at, newest) {
			return nil
		}
	}
}

// answered begins the waits anew: the service was read, and what it brought is committed. An event id that it refused
// is in the window with both its records by then, or can be tried once more.
func (r *historyRun) answered(ctx context.Context) {
	r.failures = 0
	clear(r.refused)
	r.arrived(ctx)
	r.retry.Worked()
}

// newest makes the record that is the newest now a target, of which the window may have been read already.
func (r *historyRun) newest(ctx context.Context, window []ledger.HistoryMark) (target historyTarget, err error) {
	newest, err := r.Source.NewestTransactions(ctx, 1)
	if err == nil {
		target.learn(newest, window)
	}
	return target, err
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

func (t *historyTarget) learn(newest []ledger.Transaction, window []ledger.HistoryMark) {
	t.known = true
	if len(newest) == 0 {
		return
	}
	t.any, t.mark = true, ledger.HistoryMark{EventID: newest[0].EventID, Fingerprint: newest[0].Fingerprint()}
	for _, mark := range window {
		t.pass(mark.EventID, func() int64 { return mark.Fingerprint })
	}
}

// take notes records that were committed.
func (t *historyTarget) take(records []ledger.Transaction) {
	for i := range records {
		t.pass(records[i].EventID, records[i].Fingerprint)
	}
}

func (t *historyTarget) pass(eventID string, fingerprint func() int64) {
	switch {
	case !t.any || t.passed:
	case eventID != t.mark.EventID:
		t.passed = t.seen
	case !t.seen:
		t.seen = fingerprint() == t.mark.Fingerprint
	}
}
