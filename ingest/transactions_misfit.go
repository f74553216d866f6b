package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ledgerindexer/ledger"
)

const (
	backfillingEvery = 30 * time.Second // between requests to a service that is backfilling its own history
	behindEvery      = 10 * time.Second // between requests to a service that is behind

	// If the service answers no cursor of the window, the history is read again only after this many tries, which take
	// some minutes: it may be an outage.
	refusedTries = 16

	// The least time between two generations. It doubles each time,
	rereadWait = time.Minute
	// up to this. After twice that without one, it begins again with rereadWait.
	longestRereadWait = time.Hour
)

// errAllRefused is the error for a service that fails for every cursor of the window, if the window is not the whole
// history.
var errAllRefused = errors.New("the service fails to read on after each event id that it was asked for, while its " +
	"newest records can be read")

// differs handles a page with other records than those stored at the same positions.
func (r *transactionsRun) differs(ctx context.Context, f TransactionPage) error {
	if !r.fresh {
		return r.begin(ctx)
	}
	window := r.pages.Window
	if f.from < 0 && !r.pages.First { // the beginning was read only because all cursors were refused
		if r.failures++; r.failures < refusedTries {
			return errAllRefused
		}
		return r.reread(ctx, errAllRefused.Error())
	}
	if f.after >= 0 {
		if err := r.pages.checkCursor(ctx, window[f.after].Cursor, f.page); err != nil {
			return err
		}
	}
	_, newest, err := r.pages.AtEnd(ctx, confirmDepth)
	if err != nil {
		return err
	}
	behind, err := r.isBehind(ctx, newest, f.page)
	if err != nil {
		return err
	}
	if behind {
		return r.behind(ctx)
	}
	place := "at the beginning"
	if f.last >= 0 {
		place = "after event id " + r.nameOf(f.last)
	}
	mark, record := window[f.last+1], &f.page[f.last-f.after]
	if mark.Cursor == record.Cursor() {
		return r.reread(ctx, fmt.Sprintf("%s the service has another record of event id %q than the one that was stored",
			place, record.EventID))
	}
	return r.reread(ctx, fmt.Sprintf("%s the service has event id %q, and %q was stored", place, record.EventID,
		mark.Cursor))
}

// knownEventID handles an event id that is stored on another record already: the service has another order, or has the
// id twice.
func (r *transactionsRun) knownEventID(ctx context.Context, known *ledger.KnownEventIDError) error {
	if !r.fresh {
		return r.begin(ctx)
	}
	// If the service has the id twice, reading the history again would find the same.
	twice, err := r.pages.servesTwice(ctx, known.EventID)
	if err != nil {
		return err
	}
	if !twice {
		return r.reread(ctx, known.Error())
	}
	r.doubled[known.EventID] = true
	return r.begin(ctx)
}

// lost handles a service that has nothing after the window, even when asked again, although its newest record is not
// the window's last.
func (r *transactionsRun) lost(ctx context.Context, f TransactionPage, newest []ledger.Transaction) error {
	behind, err := r.isBehind(ctx, newest, nil)
	switch {
	case err != nil:
		return err
	case behind:
		return r.behind(ctx)
	case f.last > f.from || f.from < 0: // the service knows records of the window, but returns none after them
		return fmt.Errorf("the service has %s and nothing after it, but its newest record is %q, which is not stored; or "+
			"it serves fewer records in a page than share an event id",
			r.nameOf(f.last), newest[0].EventID)
	}
	return r.reread(ctx, fmt.Sprintf("the service knows none of the event ids that were stored last, such as %s, and "+
		"its newest, %q, is not stored",
		r.nameOf(len(r.pages.Window)-1), newest[0].EventID))
}

// isBehind reports whether the service shows only stored records, and not the newest of these.
func (r *transactionsRun) isBehind(ctx context.Context, newest, page []ledger.Transaction) (bool, error) {
	ids := eventIDs(slices.Concat(newest, page))
	stored, err := r.Sink.StoredTransactions(ctx, r.at, ids)
	if err != nil || slices.ContainsFunc(ids, func(id string) bool { return !stored[id] }) {
		return false, err
	}
	cursor := r.pages.Cursor()
	if cursor == "" || r.pages.refused[cursor] || hasCursor(newest, cursor) {
		return cursor == "" && len(newest) == 0 && len(r.pages.Window) > 0, nil
	}
	behind, refused, err := r.pages.askAfter(ctx, lastUnique(r.pages.Window))
	return err == nil && !refused && len(behind) == 0, err
}

func (r *transactionsRun) nameOf(index int) string {
	if index < 0 {
		return "the beginning"
	}
	return strconv.Quote(string(r.pages.Window[index].Cursor))
}

// behind waits for a service that is behind what is stored: another instance that lags, or one that lost its history
// and ingests it again.
func (r *transactionsRun) behind(ctx context.Context) error {
	why := "the service is behind: the newest stored record, " + r.nameOf(len(r.pages.Window)-1) +
		", is not in its history yet"
	if len(r.pages.Window) == 0 {
		why = "the service is behind: its history is empty, and records of it are stored"
	}
	r.await(ctx, why)
	if r.UntilCurrent && !r.at.Rereading() {
		return errReached // all that it shows is stored
	}
	Sleep(ctx, behindEvery)
	return r.begin(ctx)
}

// reread begins a new generation, which is right whatever happened to the service. The stored one is shown until it is
// complete.
func (r *transactionsRun) reread(ctx context.Context, why string) error {
	if !r.rereads.due() {
		r.await(ctx, "the history must be read again once more, a while after the last time: "+why)
		Sleep(ctx, behindEvery)
		return r.begin(ctx)
	}
	at, err := r.Sink.BeginGeneration(context.WithoutCancel(ctx), r.stored) // more may have been read, and refused
	if err == nil && at.Leftovers {
		at, err = r.Sink.DropLeftovers(ctx, at)
	}
	if err != nil {
		return err
	}
	r.readOnFrom(at, nil)
	r.fresh = false
	if r.goal, err = r.newest(ctx); err != nil {
		return err
	}
	r.rereads.begun()
	r.rereading = true
	r.arrived(ctx)
	r.Logger.WarnContext(ctx,
		"reading the history again from its beginning; what is stored is shown until that is complete", "stream",
		"transactions", "reason", why)
	if r.Watch.Rereading != nil {
		r.Watch.Rereading(why)
	}
	return nil
}

// show shows the new generation, when it was read to the end of the history, or to what was the end when it was begun.
func (r *transactionsRun) show(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	before := r.at.ShownTo - r.at.ShownAfter
	at, err := r.Sink.ShowGeneration(context.WithoutCancel(ctx), r.at)
	if err != nil {
		return err
	}
	r.at, r.stored = at, at
	r.rereads.ended()
	r.rereading = false
	r.Logger.InfoContext(ctx, "the history was read again to its end, and is shown", "stream", "transactions",
		"records", at.Records(), "last_seq", at.LastSeq)
	if at.Records() < before {
		r.Logger.WarnContext(ctx, "the service shows fewer records than before", "stream", "transactions",
			"records", at.Records(), "before", before)
	}
	if r.Watch.Committed != nil {
		r.Watch.Committed(at, 0)
	}
	at, err = r.Sink.DropLeftovers(ctx, at)
	if err == nil {
		r.at, r.stored = at, at
	}
	return err
}

// await reports, once, that the loop waits for the service, and why.
func (r *transactionsRun) await(ctx context.Context, why string) {
	if r.waiting != why {
		r.waiting = why
		r.Logger.WarnContext(ctx, "waiting for the service of the transaction history", "stream", "transactions",
			"reason", why)
		if r.Watch.Waiting != nil {
			r.Watch.Waiting(why)
		}
	}
	r.retry.Worked()
}

// arrived reports that the wait is over.
func (r *transactionsRun) arrived(ctx context.Context) {
	if r.waiting == "" {
		return
	}
	r.waiting = ""
	r.Logger.InfoContext(ctx, "the service need not be waited for any more", "stream", "transactions")
	if r.Watch.Waiting != nil {
		r.Watch.Waiting("")
	}
}

// rereads limits how often new generations begin.
type rereads struct {
	number int
	last   time.Time // when the last one began or ended
}

func (p *rereads) due() bool {
	passed := time.Since(p.last)
	if passed >= 2*longestRereadWait {
		p.number = 0
	}
	if p.number == 0 {
		return true
	}
	wait := longestRereadWait
	if doublings := p.number - 1; doublings < 6 {
		wait = rereadWait << doublings
	}
	return passed >= wait
}

func (p *rereads) begun() { p.number, p.last = p.number+1, time.Now() }
func (p *rereads) ended() { p.last = time.Now() }
