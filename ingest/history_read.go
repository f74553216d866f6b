package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ledger"
)

const (
	// A service that refuses so many event ids of the window is not asked for another one.
	mostRefused = 5
	// So many of the first records are compared with the newest ones.
	orderDepth = 5
)

// found is what was read behind a mark of the window. Marks are told by their index in it.
type found struct {
	from    int                  // the mark; -1: the beginning of the history
	after   int                  // the mark behind which the last page was asked: that page was not the first
	last    int                  // the last mark that came again in its place; from: none did
	differs bool                 // behind it stands another record than in the window
	page    []ledger.Transaction // the last page
	records []ledger.Transaction // what came behind the window: new, by its place
}

// read reads on: when the service was just asked who it is, behind the oldest mark that will do, so that the whole window
// is matched; else a little before the newest.
func (r *historyRun) read(ctx context.Context) (found, error) {
	if !r.again {
		return r.readOverlapping(ctx, historyOverlap, r.fresh)
	}
	// Nothing new came although there seems to be more: the page may have been too short. What is read right behind the
	// newest mark shows nothing of the order that it belongs to, so that is matched once more.
	more, err := r.readOverlapping(ctx, 0, false)
	if err != nil || more.differs || len(more.records) == 0 {
		return more, err
	}
	f, err := r.readOverlapping(ctx, historyOverlap, r.fresh)
	if err == nil && !f.differs && len(f.records) == 0 && f.last == len(r.at.Window)-1 {
		f.records = more.records
	}
	return f, err
}

// readOverlapping reads behind a mark that has overlap others behind it, or behind the oldest; behind other ones where
// the service refuses it.
func (r *historyRun) readOverlapping(ctx context.Context, overlap int, whole bool) (found, error) {
	for {
		from := startAfter(&r.at, r.refused, overlap, whole)
		if len(r.refused) >= mostRefused {
			from = -1
		}
		f, refused, err := r.readBehind(ctx, from)
		if err != nil || !refused {
			return f, err
		}
	}
}

// readBehind reads behind a mark until something new comes, or something else than was stored, or no page that leads
// further.
func (r *historyRun) readBehind(ctx context.Context, from int) (f found, refused bool, err error) {
	f.from, f.after = from, from
	for {
		f.page, refused, err = r.askBehind(ctx, f.after)
		if err != nil || refused {
			return f, refused, err
		}
		known := r.at.Window[f.after+1:]
		var matched int
		matched, f.differs = matchPage(known, f.page)
		f.last = f.after + matched
		if matched == len(known) {
			f.records = f.page[matched:]
		}
		// A page may be short for any reason. One that ends among the stored records is read on from there.
		next := lastCursor(known[:matched], r.refused)
		if f.differs || matched == len(known) || next < 0 {
			return f, false, nil
		}
		f.after += 1 + next
	}
}

// askBehind asks for the page behind a mark. refused says that the service can't read on from there, although it can be
// asked: two of its records share the event id.
func (r *historyRun) askBehind(ctx context.Context, index int) (page []ledger.Transaction, refused bool, err error) {
	if index < 0 {
		page, err = r.Source.TransactionsAfter(ctx, "")
		if err == nil {
			err = r.checkOrder(ctx, page)
		}
		return page, false, err
	}
	id := r.at.Window[index].EventID
	page, err = r.Source.TransactionsAfter(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrCursorRefused):
		if _, err := r.Source.NewestTransactions(ctx, 1); err != nil {
			return nil, false, err // an outage
		}
	case err != nil:
		return nil, false, err
	case !hasEventID(page, id):
		return page, false, nil
	default: // it shares the id, and this service does not mind; but which of the two was meant?
		if err := r.checkCursor(ctx, id, page); err != nil {
			return nil, false, err
		}
	}
	r.refused[id] = true
	level := slog.LevelInfo
	if r.failures > 0 { // it was said already
		level = slog.LevelDebug
	}
	r.Logger.Log(ctx, level, "the service can't read on after an event id, which more than one of its records has by now; reading on after another one",
		"stream", "transactions", "event_id", id)
	return nil, true, nil
}

// servesTwice tells whether the service has two records of an event id now: then it can't read on after it, or serves
// the one behind the other.
func (r *historyRun) servesTwice(ctx context.Context, id string) (bool, error) {
	page, err := r.Source.TransactionsAfter(ctx, id)
	if errors.Is(err, ledger.ErrCursorRefused) {
		return true, nil
	}
	return hasEventID(page, id), err
}

// errChanging says that what looked like a service that can't be read was only one that changed meanwhile.
var errChanging = errors.New("the service changed between two requests")

// checkCursor makes sure that a page which does not fit is not the beginning of the history.
func (r *historyRun) checkCursor(ctx context.Context, id string, page []ledger.Transaction) error {
	beginning, err := r.Source.TransactionsAfter(ctx, "")
	if err != nil || len(page) == 0 || !sameRecords(page, beginning) {
		return err
	}
	again, err := r.Source.TransactionsAfter(ctx, id)
	switch {
	case err != nil:
		return err
	case !sameRecords(again, beginning):
		return errChanging
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the service serves the beginning of its history when it is asked to read on after event id %q", id),
		Do:   "look for a proxy between here and the service that drops the requests' bodies or answers from a cache; else read from another service (--scan-url)",
	}
}

// checkOrder makes sure, once in a try, that the service tells the beginning of its history from the end.
func (r *historyRun) checkOrder(ctx context.Context, page []ledger.Transaction) error {
	n := min(len(page), orderDepth)
	if r.ordered || n < 2 || len(eventIDs(page[:n])) < n { // equal records look the same from both ends
		return nil
	}
	newest, err := r.Source.NewestTransactions(ctx, n)
	if err != nil {
		return err
	}
	if !sameRecords(page[:n], newest) {
		r.ordered = true
		return nil
	}
	beginning, err := r.Source.TransactionsAfter(ctx, "")
	switch {
	case err != nil:
		return err
	case len(beginning) < n || !sameRecords(beginning[:n], newest):
		return errChanging
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the service serves the same records, from event id %q on, as the first of its history and as the newest: it ignores the order that it is asked for", page[0].EventID),
		Do:   "read from another service (--scan-url)",
	}
}
