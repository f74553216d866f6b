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
	// The window has this many of the last records, or more if none of these has a unique cursor. They are read again
	// after each error.
	transactionsWindow = 200
	// TransactionsWindowLimit is the most records that are searched for a unique cursor.
	TransactionsWindowLimit = 1000
	// Each page begins this many known records early. They must come again, as a proof that the service and its order are
	// the same.
	transactionsOverlap = 50
	// The most records that NewestTransactions returns.
	mostNewest = 1000
	// This many of the newest records must be the last known ones before the history counts as read to its end.
	confirmDepth = 20
	// After a service has refused this many cursors of the window, it is asked for no other.
	mostRefused = 5
	// This many of the first records are compared with the newest ones.
	orderDepth = 5
)

// TransactionPages reads the pages of a transaction history after a window of known records. Each page is requested
// after a known record. The records that come again must match the window one by one; those after them are new.
type TransactionPages struct {
	Source TransactionsSource
	Logger *slog.Logger
	Window []ledger.TransactionsMark // the last known records, the oldest first
	First  bool                      // the window begins at the beginning of the history

	refused map[ledger.TransactionsCursor]bool // cursors for which the service fails
	doubled map[string]bool                    // event ids on several records that are not adjacent
	ordered bool                               // the service is known to heed the requested order
}

// TransactionPage is the result of reading after a mark of the window. The marks are given by their index.
type TransactionPage struct {
	Records []ledger.Transaction // the records after the window
	Differs bool                 // a record of the window came back as another one

	from  int                  // the mark; -1: the beginning of the history
	after int                  // the mark after which the last page was requested
	last  int                  // the last mark that came again at its position; from: none did
	page  []ledger.Transaction // the last page
}

// NewTransactionPages reads after the last known records, which are in order. complete says that they are all there
// are.
func NewTransactionPages(source TransactionsSource, logger *slog.Logger, known []ledger.TransactionsMark,
	complete bool) *TransactionPages {
	p := &TransactionPages{Source: source, Logger: logger, First: complete, doubled: map[string]bool{}}
	p.keep(known, nil)
	return p
}

// Next reads the next page, from transactionsOverlap marks before the end of the window; with whole, from its oldest
// usable mark. If it returns no records, there are no more, or the service does not know the cursors of the window.
func (p *TransactionPages) Next(ctx context.Context, whole bool) (TransactionPage, error) {
	for {
		from := p.startAfter(whole)
		if len(p.refused) >= mostRefused {
			from = -1
		}
		f, refused, err := p.readAfter(ctx, from)
		if err != nil || !refused {
			return f, err
		}
	}
}

// startAfter chooses the mark after which to read.
func (p *TransactionPages) startAfter(whole bool) int {
	oldest := -1
	if !p.First {
		oldest = slices.IndexFunc(p.Window, p.usable)
	}
	if whole {
		return oldest
	}
	return max(oldest, p.lastUsable(p.Window[:max(0, len(p.Window)-transactionsOverlap)]))
}

func (p *TransactionPages) usable(mark ledger.TransactionsMark) bool {
	return mark.Unique && !p.refused[mark.Cursor]
}

// lastUsable returns the index of the last usable mark; -1: there is none.
func (p *TransactionPages) lastUsable(marks []ledger.TransactionsMark) int {
	for i, mark := range slices.Backward(marks) {
		if p.usable(mark) {
			return i
		}
	}
	return -1
}

// Cursor returns the newest unique cursor of the window; empty: there is none.
func (p *TransactionPages) Cursor() ledger.TransactionsCursor {
	if i := lastUnique(p.Window); i >= 0 {
		return p.Window[i].Cursor
	}
	return ""
}

// readAfter reads page after page from a mark on, until a page has a new record, or a different one, or no usable mark
// to continue from. One page may be too short for that.
func (p *TransactionPages) readAfter(ctx context.Context, from int) (f TransactionPage, refused bool, err error) {
	f.from, f.after = from, from
	for {
		f.page, refused, err = p.askAfter(ctx, f.after)
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

// askAfter requests the page after a mark. refused says that the service fails for this cursor only, because two of its
// records share it.
func (p *TransactionPages) askAfter(ctx context.Context,
	index int) (page []ledger.Transaction, refused bool, err error) {
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
	default: // the record after the mark has the same cursor, so the cursor is ambiguous
		if err := p.checkCursor(ctx, cursor, page); err != nil {
			return nil, false, err
		}
	}
	if p.refused == nil {
		p.refused = map[ledger.TransactionsCursor]bool{}
	}
	p.refused[cursor] = true
	p.Logger.InfoContext(ctx, "the service can't read on after an event id, which more than one of its records has by "+
		"now; reading on after another one",
		"stream", "transactions", "event_id", string(cursor))
	return nil, true, nil
}

// Take adds the new records of a page to the window. fresh are those with an event id that no known record has. pending
// reports whether an event id is known of a record that is not in the window any more.
//
// The error is a *ledger.KnownEventIDError if an event id is that of a known record which did not come again on this
// page: a service that serves old records after the window has another order.
func (p *TransactionPages) Take(f TransactionPage, pending func(string) bool) (fresh []*ledger.Transaction, err error) {
	near, far := map[string]bool{}, map[string]bool{}
	for i, mark := range p.Window {
		if i > f.after {
			near[string(mark.Cursor)] = true
		} else {
			far[string(mark.Cursor)] = true
		}
	}
	times := make(map[string]int, len(f.Records))
	fresh = make([]*ledger.Transaction, 0, len(f.Records))
	for i := range f.Records {
		id := f.Records[i].EventID
		if times[id]++; times[id] > 1 || near[id] || p.doubled[id] {
			continue
		}
		if far[id] || pending(id) {
			return nil, &ledger.KnownEventIDError{EventID: id}
		}
		fresh = append(fresh, &f.Records[i])
	}
	for i := range p.Window {
		p.Window[i].Unique = p.Window[i].Unique && times[string(p.Window[i].Cursor)] == 0
	}
	marks := make([]ledger.TransactionsMark, len(f.Records))
	for i := range f.Records {
		id := f.Records[i].EventID
		marks[i] = ledger.TransactionsMark{Cursor: f.Records[i].Cursor(), Unique: times[id] == 1 && !near[id] &&
			!p.doubled[id]}
	}
	p.keep(append(slices.Clone(p.Window), marks...), f.Records)
	return fresh, nil
}

// TakeAll is Take, but accepts an event id on several records that are not adjacent.
func (p *TransactionPages) TakeAll(f TransactionPage) error {
	_, err := p.Take(f, func(string) bool { return false })
	var known *ledger.KnownEventIDError
	for errors.As(err, &known) {
		p.doubled[known.EventID] = true
		_, err = p.Take(f, func(string) bool { return false })
	}
	return err
}

// keep makes the last marks the window. The marks of records, which are the last ones, have no fingerprint yet: keep
// computes only those that it keeps, because that is slow.
func (p *TransactionPages) keep(marks []ledger.TransactionsMark, records []ledger.Transaction) {
	cursor := lastUnique(marks)
	cut := max(0, min(cursor, len(marks)-transactionsWindow))
	before := len(marks) - len(records)
	for i := max(cut, before); i < len(marks); i++ {
		marks[i].Fingerprint = records[i-before].Fingerprint()
	}
	p.First = p.First && cut == 0
	p.Window = marks[cut:]
}

// lastUnique returns the index of the newest mark with a unique cursor; -1: there is none.
func lastUnique(marks []ledger.TransactionsMark) int {
	for i, mark := range slices.Backward(marks) {
		if mark.Unique {
			return i
		}
	}
	return -1
}

// AtEnd reports whether the newest records of the service are the last ones of the window, and returns the newest.
// Records with shared cursors prove that only together with one that has a unique cursor, or if they are the whole
// window or mostNewest.
func (p *TransactionPages) AtEnd(ctx context.Context, least int) (end bool, newest []ledger.Transaction, err error) {
	// All records up to the last one with a unique cursor, and one more, in case that one is a copy of it.
	depth := min(max(min(least, len(p.Window)), len(p.Window)-lastUnique(p.Window)+1), mostNewest)
	newest, err = p.Source.NewestTransactions(ctx, depth)
	if err != nil || len(newest) == 0 { // records that can't be served any more may be stored, and are not in the window
		return len(p.Window) == 0, newest, err
	}
	proof := len(newest) == min(len(p.Window), mostNewest)
	for i := range newest {
		if i >= len(p.Window) {
			// This record is older than the window, which is right unless the window is the whole history, or the record is a
			// copy.
			if p.First || len(p.Window) == 0 || newest[i].Cursor() == p.Window[0].Cursor {
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

// eventIDs returns the ids of records, each once.
func eventIDs(records []ledger.Transaction) []string {
	ids := make([]string, len(records))
	for i := range records {
		ids[i] = records[i].EventID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func sameRecords(a, b []ledger.Transaction) bool {
	return slices.EqualFunc(a, b, func(a, b ledger.Transaction) bool {
		return a.EventID == b.EventID && a.Fingerprint() == b.Fingerprint()
	})
}

func hasCursor(page []ledger.Transaction, cursor ledger.TransactionsCursor) bool {
	return slices.ContainsFunc(page, func(record ledger.Transaction) bool { return record.Cursor() == cursor })
}

// servesTwice reports whether the service has two records of an event id: then it fails for it as a cursor, or serves
// one record after the other.
func (p *TransactionPages) servesTwice(ctx context.Context, id string) (bool, error) {
	page, err := p.Source.TransactionsAfter(ctx, ledger.TransactionsCursor(id))
	if errors.Is(err, ledger.ErrCursorRefused) {
		return true, nil
	}
	return hasCursor(page, ledger.TransactionsCursor(id)), err
}

// errChanging is the error for answers that contradict one another only because the service changed between them.
var errChanging = errors.New("the service changed between two requests")

// checkCursor returns a *ledger.Problem if a page that does not fit is the beginning of the history: the service
// ignores cursors.
func (p *TransactionPages) checkCursor(ctx context.Context, cursor ledger.TransactionsCursor,
	page []ledger.Transaction) error {
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
		What: fmt.Sprintf("the service serves the beginning of its history when it is asked to read on after event id %q",
			cursor),
		Do: "look for a proxy between here and the service that drops the requests' bodies or answers from a cache; else " +
			"read from another service (--scan-url)",
	}
}

// checkOrder returns a *ledger.Problem if the service ignores the order that it is asked for. It checks until that is
// settled.
func (p *TransactionPages) checkOrder(ctx context.Context, page []ledger.Transaction) error {
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
		What: fmt.Sprintf("the service serves the same records, from event id %q on, as the first of its history and as "+
			"the newest: it ignores the order that it is asked for", page[0].EventID),
		Do: "read from another service (--scan-url)",
	}
}
