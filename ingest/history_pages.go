package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ledgerindexer/ledger"
)

const (
	// So many of the last records are known, or more where these hold no unique cursor: the service is asked for them again after
	// each error.
	historyWindow = 200
	// HistoryWindowLimit is how many are looked at for a unique cursor.
	HistoryWindowLimit = 1000
	// A page is asked for so many known records early, so that they come again and show that the service is still the
	// one, in the order, from which they were read.
	historyOverlap = 50
	// So many of the newest records can be asked for at once.
	mostNewest = 1000
	// So many of the newest records must be the last known ones before the history counts as read to its end.
	confirmDepth = 20
	// A service that refuses so many cursors of the window is not asked for another one.
	mostRefused = 5
	// So many of the first records are compared with the newest ones.
	orderDepth = 5
)

// HistoryPages reads the pages of a transaction history behind a window of known records. Each page is asked for behind a known
// record, and what comes again must match the window, place by place: what comes behind that is new.
type HistoryPages struct {
	Source HistorySource
	Logger *slog.Logger
	Window []ledger.HistoryMark // the last known records, the oldest first
	First  bool                 // the window begins with the history

	refused map[ledger.HistoryCursor]bool // after which the service can't read on
	doubled map[string]bool               // event ids that stand on records which do not stand together
	ordered bool                          // the service tells its beginning from its end
}

// HistoryPage is what was read behind a mark of the window. Marks are told by their index in it.
type HistoryPage struct {
	Records []ledger.Transaction // what came behind the window
	Differs bool                 // within the window stands another record than the known one

	from  int                  // the mark; -1: the beginning of the history
	after int                  // the mark behind which the last page was asked for
	last  int                  // the last mark that came again in its place; from: none did
	page  []ledger.Transaction // the last page
}

// NewHistoryPages reads on behind the last known records, the oldest first. complete says that they are all.
func NewHistoryPages(source HistorySource, logger *slog.Logger, known []ledger.HistoryMark, complete bool) *HistoryPages {
	p := &HistoryPages{Source: source, Logger: logger, First: complete, doubled: map[string]bool{}}
	p.keep(known, nil)
	return p
}

// Next reads on: a little before the end of the window, or, where it is to be matched as a whole, behind its oldest mark that will do.
// No records: there are no more, or the service does not know the cursors of the window.
func (p *HistoryPages) Next(ctx context.Context, whole bool) (HistoryPage, error) {
	for {
		from := p.startAfter(whole)
		if len(p.refused) >= mostRefused {
			from = -1
		}
		f, refused, err := p.readBehind(ctx, from)
		if err != nil || !refused {
			return f, err
		}
	}
}

// startAfter chooses the mark after which to read.
func (p *HistoryPages) startAfter(whole bool) int {
	oldest := -1
	if !p.First {
		oldest = slices.IndexFunc(p.Window, p.usable)
	}
	if whole {
		return oldest
	}
	return max(oldest, p.lastUsable(p.Window[:max(0, len(p.Window)-historyOverlap)]))
}

func (p *HistoryPages) usable(mark ledger.HistoryMark) bool {
	return mark.Unique && !p.refused[mark.Cursor]
}

// lastUsable is the index of the last mark after which can be read; -1: there is none.
func (p *HistoryPages) lastUsable(marks []ledger.HistoryMark) int {
	for i, mark := range slices.Backward(marks) {
		if p.usable(mark) {
			return i
		}
	}
	return -1
}

// Cursor is that of the newest record that has it alone; empty: there is none.
func (p *HistoryPages) Cursor() ledger.HistoryCursor {
	if i := lastUnique(p.Window); i >= 0 {
		return p.Window[i].Cursor
	}
	return ""
}

// readBehind reads behind a mark until something new comes, or something else than is known, or no page that leads further: a page
// may be short for any reason.
func (p *HistoryPages) readBehind(ctx context.Context, from int) (f HistoryPage, refused bool, err error) {
	f.from, f.after = from, from
	for {
		f.page, refused, err = p.askBehind(ctx, f.after)
		if err != nil || refused {
			return f, refused, err
		}
		known := p.Window[f.after+1:]
		matched := 0
		for matched < min(len(known), len(f.page)) && known[matched].Is(&f.page[matched]) {
			matched++
		}
		f.last = f.after + matched
		if f.Differs = matched < min(len(known), len(f.page)); !f.Differs && matched == len(known) {
			f.Records = f.page[matched:]
		}
		next := p.lastUsable(known[:matched])
		if f.Differs || len(f.Records) > 0 || next < 0 {
			return f, false, nil
		}
		f.after += 1 + next
	}
}

// askBehind asks for the page behind a mark. refused says that the service can't read on from there, although it can be
// asked: two of its records share the cursor.
func (p *HistoryPages) askBehind(ctx context.Context, index int) (page []ledger.Transaction, refused bool, err error) {
	if index < 0 {
		page, err = p.Source.TransactionsAfter(ctx, "")
		if err == nil {
			err = p.checkOrder(ctx, page)
		}
		return page, false, err
	}
	cursor := p.Window[index].Cursor
	page, err = p.Source.TransactionsAfter(ctx, cursor)
	switch {
	case errors.Is(err, ledger.ErrCursorRefused):
		if _, err := p.Source.NewestTransactions(ctx, 1); err != nil {
			return nil, false, err // an outage
		}
	case err != nil:
		return nil, false, err
	case !hasCursor(page, cursor):
		return page, false, nil
	default: // it shares the cursor, and this service does not mind; but which of the two was meant?
		if err := p.checkCursor(ctx, cursor, page); err != nil {
			return nil, false, err
		}
	}
	if p.refused == nil {
		p.refused = map[ledger.HistoryCursor]bool{}
	}
	p.refused[cursor] = true
	p.Logger.InfoContext(ctx, "the service can't read on after an event id, which more than one of its records has by now; reading on after another one",
		"stream", "transactions", "event_id", string(cursor))
	return nil, true, nil
}

// Take adds the new records of a page to the window. fresh are the event ids that no known record has. pending tells of an event id
// whether it is known, of records that are not in the window any more.
//
// The error is a *ledger.KnownEventIDError where a record's event id stands on a known record that did not come again just before it:
// a service that serves old records behind the window has another order.
func (p *HistoryPages) Take(f HistoryPage, pending func(string) bool) (fresh []string, err error) {
	near, far := map[string]bool{}, map[string]bool{}
	for i, mark := range p.Window {
		if i > f.after {
			near[string(mark.Cursor)] = true
		} else {
			far[string(mark.Cursor)] = true
		}
	}
	times := make(map[string]int, len(f.Records))
	fresh = make([]string, 0, len(f.Records))
	for i := range f.Records {
		id := f.Records[i].EventID
		if times[id]++; times[id] > 1 || near[id] || p.doubled[id] {
			continue
		}
		if far[id] || pending(id) {
			return nil, &ledger.KnownEventIDError{EventID: id}
		}
		fresh = append(fresh, id)
	}
	for i := range p.Window {
		p.Window[i].Unique = p.Window[i].Unique && times[string(p.Window[i].Cursor)] == 0
	}
	marks := make([]ledger.HistoryMark, len(f.Records))
	for i := range f.Records {
		id := f.Records[i].EventID
		marks[i] = ledger.HistoryMark{Cursor: f.Records[i].Cursor(), Unique: times[id] == 1 && !near[id] && !p.doubled[id]}
	}
	p.keep(append(slices.Clone(p.Window), marks...), f.Records)
	return fresh, nil
}

// TakeAll is Take for who accepts records of an event id that do not stand together.
func (p *HistoryPages) TakeAll(f HistoryPage) error {
	_, err := p.Take(f, func(string) bool { return false })
	var known *ledger.KnownEventIDError
	for errors.As(err, &known) {
		p.doubled[known.EventID] = true
		_, err = p.Take(f, func(string) bool { return false })
	}
	return err
}

// keep makes the last of some marks the window. Those of the last records have no fingerprint yet, which takes a while to work out.
func (p *HistoryPages) keep(marks []ledger.HistoryMark, records []ledger.Transaction) {
	cursor := lastUnique(marks)
	cut := max(0, min(cursor, len(marks)-historyWindow))
	before := len(marks) - len(records)
	for i := max(cut, before); i < len(marks); i++ {
		marks[i].Fingerprint = records[i-before].Fingerprint()
	}
	p.First = p.First && cut == 0
	p.Window = marks[cut:]
}

// lastUnique is the index of the newest mark that has its cursor alone; -1: there is none.
func lastUnique(marks []ledger.HistoryMark) int {
	for i, mark := range slices.Backward(marks) {
		if mark.Unique {
			return i
		}
	}
	return -1
}

// AtEnd tells whether the newest records of the service are the last ones of the window, and returns those that were asked for. Records
// that share their cursors prove that only together with one that has it alone, as the whole window, or as all that can be asked for.
func (p *HistoryPages) AtEnd(ctx context.Context, least int) (end bool, newest []ledger.Transaction, err error) {
	// All that share their cursors, one that has it alone, and one more: a copy of that one would look like it.
	depth := min(max(min(least, len(p.Window)), len(p.Window)-lastUnique(p.Window)+1), mostNewest)
	newest, err = p.Source.NewestTransactions(ctx, depth)
	if err != nil || len(newest) == 0 {
		return len(p.Window) == 0 && p.First, newest, err
	}
	proof := len(newest) == min(len(p.Window), mostNewest)
	for i := range newest {
		if i >= len(p.Window) {
			// It stands before the window, unless that is all there is, or it is a copy.
			if p.First || newest[i].Cursor() == p.Window[0].Cursor {
				return false, newest, nil
			}
			break
		}
		mark := p.Window[len(p.Window)-1-i]
		if !mark.Is(&newest[i]) {
			return false, newest, nil
		}
		proof = proof || mark.Unique
	}
	return proof, newest, nil
}

// eventIDs are the ids of records, each once.
func eventIDs(records []ledger.Transaction) []string {
	ids := make([]string, len(records))
	for i := range records {
		ids[i] = records[i].EventID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// sameRecords tells whether two pages hold the same records.
func sameRecords(a, b []ledger.Transaction) bool {
	return slices.EqualFunc(a, b, func(a, b ledger.Transaction) bool {
		return a.EventID == b.EventID && a.Fingerprint() == b.Fingerprint()
	})
}

func hasCursor(page []ledger.Transaction, cursor ledger.HistoryCursor) bool {
	return slices.ContainsFunc(page, func(record ledger.Transaction) bool { return record.Cursor() == cursor })
}

// servesTwice tells whether the service has two records of an event id now: then it can't read on after it, or serves
// the one behind the other.
func (p *HistoryPages) servesTwice(ctx context.Context, id string) (bool, error) {
	page, err := p.Source.TransactionsAfter(ctx, ledger.HistoryCursor(id))
	if errors.Is(err, ledger.ErrCursorRefused) {
		return true, nil
	}
	return hasCursor(page, ledger.HistoryCursor(id)), err
}

// errChanging says that what looked like a service that can't be read was only one that changed meanwhile.
var errChanging = errors.New("the service changed between two requests")

// checkCursor makes sure that a page which does not fit is not the beginning of the history.
func (p *HistoryPages) checkCursor(ctx context.Context, cursor ledger.HistoryCursor, page []ledger.Transaction) error {
	beginning, err := p.Source.TransactionsAfter(ctx, "")
	if err != nil || len(page) == 0 || !sameRecords(page, beginning) {
		return err
	}
	again, err := p.Source.TransactionsAfter(ctx, cursor)
	switch {
	case err != nil:
		return err
	case !sameRecords(again, beginning):
		return errChanging
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the service serves the beginning of its history when it is asked to read on after event id %q", cursor),
		Do:   "look for a proxy between here and the service that drops the requests' bodies or answers from a cache; else read from another service (--scan-url)",
	}
}

// checkOrder makes sure, once, that the service tells the beginning of its history from the end.
func (p *HistoryPages) checkOrder(ctx context.Context, page []ledger.Transaction) error {
	n := min(len(page), orderDepth)
	if p.ordered || n < 2 || len(eventIDs(page[:n])) < n { // equal records look the same from both ends
		return nil
	}
	newest, err := p.Source.NewestTransactions(ctx, n)
	if err != nil {
		return err
	}
	if !sameRecords(page[:n], newest) {
		p.ordered = true
		return nil
	}
	beginning, err := p.Source.TransactionsAfter(ctx, "")
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
