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
	backfillingEvery = 30 * time.Second // how often a service that is not complete is asked whether it is
	behindEvery      = 10 * time.Second // how often a service that is waited for is looked at

	// A history in which no event id is answered is read again only after so many tries, which take some minutes: it may
	// be an outage.
	refusedTries = 16

	// Behind a mark that has so few others behind it is not looked for a history that goes on: they show too little of
	// the order.
	leastFollowers = 5

	// From one reading again to the next pass at least this long, twice as long each time,
	rereadWait = time.Minute
	// up to this long. After twice that the first is as good as forgotten.
	longestRereadWait = time.Hour
)

// errAllRefused says that the service reads on after no event id of the window, and the window is not the beginning of
// its history.
var errAllRefused = errors.New("the service fails to read on after each event id that it was asked for, while its newest records can be read")

// differs is called when the service serves other records than were stored in their places.
func (r *historyRun) differs(ctx context.Context, found found) error {
	if !r.fresh {
		return r.begin(ctx)
	}
	window := r.at.Window
	if found.from < 0 && !beginsHistory(&r.at) { // it was worth a try
		return r.noCursor(ctx)
	}
	if found.after >= 0 {
		if err := r.checkCursor(ctx, window[found.after].EventID, found.page); err != nil {
			return err
		}
	}
	newest, err := r.Source.NewestTransactions(ctx, lookFor(window, confirmDepth))
	if err != nil {
		return err
	}
	stored, err := r.allStored(ctx, slices.Concat(newest, found.page))
	if err != nil {
		return err
	}
	if stored {
		known, err := r.knowsCheckpoint(ctx, newest)
		if err != nil {
			return err
		}
		if !known {
			return r.behind(ctx)
		}
	}
	place := "at the beginning"
	if found.last >= 0 {
		place = fmt.Sprintf("behind event id %q", window[found.last].EventID)
	}
	mark, record := window[found.last+1], &found.page[found.last-found.after]
	if mark.EventID == record.EventID {
		return r.reread(ctx, fmt.Sprintf("%s the service has another record of event id %q than the one that was stored", place, mark.EventID))
	}
	return r.reread(ctx, fmt.Sprintf("%s the service has event id %q, and %q was stored", place, record.EventID, mark.EventID))
}

// noCursor is called when there is no event id in the window after which the service reads on.
func (r *historyRun) noCursor(ctx context.Context) error {
	if r.at.Cursor() < 0 {
		return &ledger.Problem{
			What: fmt.Sprintf("the last %d records of the transaction history share their event ids with others, so there is none after which it could be read on", len(r.at.Window)),
			Do:   "read from another service (--scan-url), in whose order such records do not stand together",
		}
	}
	if r.failures++; r.failures < refusedTries {
		return errAllRefused
	}
	return r.reread(ctx, errAllRefused.Error())
}

// resynchronise is called when nothing follows the window, again and again, and the newest records are not its end.
func (r *historyRun) resynchronise(ctx context.Context, newest []ledger.Transaction) error {
	stored, err := r.allStored(ctx, newest)
	if err != nil {
		return err
	}
	if stored {
		return r.behind(ctx)
	}
	var contradiction error
	for _, index := range slices.Backward(r.steps()) {
		f, refused, err := r.readBehind(ctx, index)
		switch {
		case err != nil:
			return err
		case refused:
			continue
		case f.differs:
			return r.differs(ctx, f)
		case len(f.records) > 0:
			r.Logger.WarnContext(ctx, "the service did not know where the history was read to; reading on after an event id that it knows",
				"stream", "transactions", "event_id", r.nameOf(index))
			return r.add(ctx, f)
		case f.last > index || index < 0: // or the page ends with the window; one that is asked for later does not
			contradiction = fmt.Errorf("the service has %s and nothing behind it, but its newest record is %q, which is not stored; or it serves fewer records in a page than share an event id",
				r.nameOf(f.last), newest[0].EventID)
		}
	}
	if contradiction != nil {
		return contradiction
	}
	return r.reread(ctx, fmt.Sprintf("the service knows none of the event ids that were stored last, such as %s, and its newest, %q, is not stored",
		r.nameOf(len(r.at.Window)-1), newest[0].EventID))
}

// steps are the marks behind which to look for a history that goes on, from the newest to the oldest. What stands behind
// the oldest that the service knows shows the most of the order, if it comes again.
func (r *historyRun) steps() []int {
	var steps []int
	last := len(r.at.Window)
	for distance := leastFollowers; distance < len(r.at.Window); distance *= 2 {
		i := lastCursor(r.at.Window[:min(last, len(r.at.Window)-distance)], r.refused)
		if i < 0 {
			break
		}
		steps = append(steps, i)
		last = i
	}
	if oldest := startAfter(&r.at, r.refused, 0, true); oldest < last {
		steps = append(steps, oldest)
	}
	return steps
}

// nameOf is a mark, for people.
func (r *historyRun) nameOf(index int) string {
	if index < 0 {
		return "the beginning"
	}
	return strconv.Quote(r.at.Window[index].EventID)
}

// allStored tells whether each of some records has an event id that is stored.
func (r *historyRun) allStored(ctx context.Context, records []ledger.Transaction) (bool, error) {
	if len(records) == 0 {
		return true, nil
	}
	ids := eventIDs(records)
	stored, err := r.Sink.HasTransactions(ctx, ids)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if !stored[id] {
			return false, nil
		}
	}
	return true, nil
}

// knowsCheckpoint tells whether the service has the newest record whose event id is unique.
func (r *historyRun) knowsCheckpoint(ctx context.Context, newest []ledger.Transaction) (bool, error) {
	cursor := r.at.Cursor()
	if cursor < 0 {
		return true, nil // there is none to wait for
	}
	id := r.at.Window[cursor].EventID
	if r.refused[id] || hasEventID(newest, id) {
		return true, nil
	}
	page, refused, err := r.askBehind(ctx, cursor)
	return refused || len(page) > 0, err
}

// behind waits for a service that shows nothing but what is stored, and does not know the end of that: another one that
// lags, or one that lost its history and takes it in again.
func (r *historyRun) behind(ctx context.Context) error {
	why := "the service is behind: the newest stored record, " + r.nameOf(len(r.at.Window)-1) + ", is not in its history yet"
	if len(r.at.Window) == 0 {
		why = "the service is behind: its history is empty, and records of it are stored"
	}
	r.await(ctx, why)
	if r.UntilCurrent && !r.at.Rereading {
		return errReached // all that it shows is stored
	}
	Sleep(ctx, behindEvery)
	return r.begin(ctx)
}

// reread begins to read the history again from its beginning: the one way that is right whatever became of the service.
// It is long, so one that did not help is not followed by another one at once.
func (r *historyRun) reread(ctx context.Context, why string) error {
	if !r.rereads.due() {
		r.await(ctx, "the history must be read again once more, a while after the last time: "+why)
		Sleep(ctx, behindEvery)
		return r.begin(ctx)
	}
	goal, err := r.newest(ctx, nil)
	if err != nil {
		return err
	}
	at, err := r.Sink.RereadHistory(context.WithoutCancel(ctx), r.at)
	if err != nil {
		return err
	}
	r.goal = goal
	r.rereads.begun()
	r.rereading = true
	r.at, r.fresh, r.again, r.refused = at, false, false, map[string]bool{}
	r.arrived(ctx)
	r.Logger.WarnContext(ctx, "reading the history again from its beginning; what is stored already is not stored again", "stream", "transactions", "why", why)
	if r.Watch.Rereading != nil {
		r.Watch.Rereading(why)
	}
	return nil
}

// finishReread is called when the history was read again to its end, or to what was its end when that was begun.
func (r *historyRun) finishReread(ctx context.Context) error {
	at, gone, err := r.Sink.FinishReread(context.WithoutCancel(ctx), r.at)
	if err != nil {
		return err
	}
	r.rereads.ended()
	r.rereading = false
	r.at = at
	r.Logger.InfoContext(ctx, "the history was read again to its end", "stream", "transactions", "last_seq", at.LastSeq)
	if gone > 0 {
		r.Logger.WarnContext(ctx, "the service does not show some of the stored records any more; they stay", "stream", "transactions", "records", gone)
	}
	if r.Watch.Committed != nil {
		r.Watch.Committed(at, 0)
	}
	return nil
}

// await says, once, that the service must get somewhere before anything can be read.
func (r *historyRun) await(ctx context.Context, why string) {
	if r.waiting != why {
		r.waiting = why
		r.Logger.WarnContext(ctx, "waiting for the service of the transaction history", "stream", "transactions", "why", why)
		if r.Watch.Waiting != nil {
			r.Watch.Waiting(why)
		}
	}
	r.retry.Worked()
}

// arrived says that it got there.
func (r *historyRun) arrived(ctx context.Context) {
	if r.waiting == "" {
		return
	}
	r.waiting = ""
	r.Logger.InfoContext(ctx, "the service need not be waited for any more", "stream", "transactions")
	if r.Watch.Waiting != nil {
		r.Watch.Waiting("")
	}
}

// rereads paces readings from the beginning.
type rereads struct {
	number int
	last   time.Time // when the last one began or ended
}

// due tells whether another one may begin.
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
