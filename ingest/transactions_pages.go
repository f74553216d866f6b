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
	// Each page begins this many known records early. They must come again, as a proof that the service and its order are
	// the same.
	transactionsOverlap = 50
	// So many of the last records are known, or more if none of these has a unique cursor,
	transactionsKnown = 2 * transactionsOverlap
	// up to this many.
	mostKnown = 1000
	// The most records that NewestTransactions returns.
	mostNewest = 1000
	// After a service has refused this many cursors, it is asked for no other.
	mostRefused = 20
)

// TransactionPages reads the pages of a transaction history after known records. Each page is requested after one of
// these. The records that come again must be the known ones; those after them are new, and known from then on.
type TransactionPages struct {
	source TransactionsSource
	logger *slog.Logger
	known  []ledger.TransactionsMark // the last known records, the oldest first
	all    bool                      // they are all there are
}

// NewTransactionPages reads after the last known records, which are in order. all says that they are all there are.
func NewTransactionPages(source TransactionsSource, logger *slog.Logger, known []ledger.TransactionsMark,
	all bool) *TransactionPages {
	p := &TransactionPages{source: source, logger: logger, all: all}
	p.keep(known, nil)
	return p
}

// TransactionsMisfit is the error for a service whose records are not those that are known, or that does not know
// these.
type TransactionsMisfit struct {
	What  string
	Short bool // perhaps only the page is too short to tell
}

func (e *TransactionsMisfit) Error() string { return e.What }

// errAllRefused is the error for a service that fails for each cursor that it could be read on after.
var errAllRefused = errors.New("the service fails to read on after each event id that it was asked for, while its " +
	"newest records can be read")

// Next reads the next records. None: as far as pages show that, there are no more; AtEnd proves it. The error may be a
// *TransactionsMisfit.
func (p *TransactionPages) Next(ctx context.Context) ([]ledger.Transaction, error) {
	for range mostRefused {
		from, ok := p.start()
		if !ok {
			break
		}
		records, refused, err := p.readAfter(ctx, from)
		if !refused {
			return records, err
		}
	}
	return nil, errAllRefused
}

// start returns the index of the record after which to read; -1: from the beginning.
func (p *TransactionPages) start() (index int, ok bool) {
	index = lastUnique(p.known[:max(0, len(p.known)-transactionsOverlap)])
	if index < 0 && !p.all {
		index = slices.IndexFunc(p.known, func(mark ledger.TransactionsMark) bool { return mark.Unique })
	}
	return index, index >= 0 || p.all
}

// readAfter reads page after page until one has a new record, or a different one, or none to read on after. One page
// may be too short for that.
func (p *TransactionPages) readAfter(ctx context.Context,
	from int) (records []ledger.Transaction, refused bool, err error) {
	for {
		page, refused, err := p.ask(ctx, from)
		if err != nil || refused {
			return nil, refused, err
		}
		known := p.known[from+1:]
		same := 0
		for same < min(len(known), len(page)) && known[same].Is(&page[same]) {
			same++
		}
		switch {
		case same < min(len(known), len(page)):
			return nil, false, p.differs(ctx, from, from+1+same, page, &page[same])
		case len(page) > len(known):
			p.take(page[same:])
			return page[same:], false, nil
		case len(page) == 0 && len(known) > 0:
			return nil, false, &TransactionsMisfit{What: fmt.Sprintf("the service has nothing %s, and %q was stored after it",
				p.after(from), known[0].Cursor)}
		}
		next := lastUnique(known[:same])
		if next < 0 && same < len(known) {
			return nil, false, &TransactionsMisfit{What: fmt.Sprintf("%s the service has %d records, and more were stored; or "+
				"it serves fewer records in a page than share an event id", p.after(from), len(page)), Short: true}
		}
		if next < 0 {
			return nil, false, nil
		}
		from += 1 + next
	}
}

// heedsCursor returns a *ledger.Problem if a page after a known record, with records that should not be there, is the
// beginning of the history: the service ignores cursors.
func (p *TransactionPages) heedsCursor(ctx context.Context, index int, page []ledger.Transaction) error {
	if index < 0 {
		return nil
	}
	beginning, err := p.source.TransactionsAfter(ctx, "")
	if err != nil || !slices.EqualFunc(page, beginning, func(a, b ledger.Transaction) bool {
		return a.EventID == b.EventID && a.Fingerprint() == b.Fingerprint()
	}) {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the service serves the beginning of its history when it is asked to read on after event id %q",
			p.known[index].Cursor),
		Do: "look for a proxy between here and the service that drops the requests' bodies or answers from a cache; else " +
			"read from another service (--scan-url)",
	}
}

// differs returns the error for a page, after a known record, with another record in the place of a known one.
func (p *TransactionPages) differs(ctx context.Context, from, at int, page []ledger.Transaction,
	record *ledger.Transaction) error {
	if err := p.heedsCursor(ctx, from, page); err != nil {
		return err
	}
	what := fmt.Sprintf("%s the service has event id %q, and %q was stored", p.after(at-1), record.EventID,
		p.known[at].Cursor)
	if record.Cursor() == p.known[at].Cursor {
		what = fmt.Sprintf("%s the service has another record of event id %q than the one that was stored", p.after(at-1),
			record.EventID)
	}
	return &TransactionsMisfit{What: what}
}

// after names the place behind a known record.
func (p *TransactionPages) after(index int) string {
	if index < 0 {
		return "at the beginning"
	}
	return fmt.Sprintf("after event id %q", p.known[index].Cursor)
}

// ask requests the page after a known record. refused says that the service fails for this cursor only, because two of
// its records share it.
func (p *TransactionPages) ask(ctx context.Context, index int) (page []ledger.Transaction, refused bool, err error) {
	cursor := ledger.TransactionsCursor("")
	if index >= 0 {
		cursor = p.known[index].Cursor
	}
	page, err = p.source.TransactionsAfter(ctx, cursor)
	switch {
	case index >= 0 && errors.Is(err, ledger.ErrCursorRefused):
		if _, err := p.source.NewestTransactions(ctx, 1); err != nil {
			return nil, false, err // an outage
		}
	case index < 0 || err != nil || !hasCursor(page, cursor):
		return page, false, err
	default: // the record after it has the same cursor
		if err := p.heedsCursor(ctx, index, page); err != nil {
			return nil, false, err
		}
	}
	p.known[index].Unique = false
	p.logger.InfoContext(ctx, "the service can't read on after an event id, which more than one of its records has by "+
		"now; reading on after another one",
		"stream", "transactions", "event_id", string(cursor))
	return nil, true, nil
}

// take adds new records to the known ones.
func (p *TransactionPages) take(records []ledger.Transaction) {
	times := make(map[ledger.TransactionsCursor]int, len(p.known)+len(records))
	marks := slices.Clone(p.known)
	for i := range records {
		marks = append(marks, ledger.TransactionsMark{Cursor: records[i].Cursor(), Unique: true})
	}
	for i := range marks {
		times[marks[i].Cursor]++
	}
	for i := range marks {
		marks[i].Unique = marks[i].Unique && times[marks[i].Cursor] == 1
	}
	p.keep(marks, records)
}

// keep makes the last marks the known ones. The marks of records, which are the last ones, have no fingerprint yet:
// keep computes only those that it keeps, because that is slow.
func (p *TransactionPages) keep(marks []ledger.TransactionsMark, records []ledger.Transaction) {
	cut := max(0, min(lastUnique(marks), len(marks)-transactionsKnown))
	before := len(marks) - len(records)
	for i := max(cut, before); i < len(marks); i++ {
		marks[i].Fingerprint = records[i-before].Fingerprint()
	}
	p.all = p.all && cut == 0
	p.known = marks[cut:]
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

// Cursor returns the newest unique cursor of the known records; empty: there is none.
func (p *TransactionPages) Cursor() ledger.TransactionsCursor {
	if i := lastUnique(p.known); i >= 0 {
		return p.known[i].Cursor
	}
	return ""
}

// AtEnd reports whether the newest records of the service are the last known ones, and returns the newest: at least so
// many, up to the last one with a unique cursor.
func (p *TransactionPages) AtEnd(ctx context.Context, least int) (end bool, newest []ledger.Transaction, err error) {
	// One more than up to the unique one, in case that is a copy of it.
	depth := min(max(min(least, len(p.known)), len(p.known)-lastUnique(p.known)+1), mostNewest)
	newest, err = p.source.NewestTransactions(ctx, depth)
	if err != nil || len(newest) == 0 {
		return len(p.known) == 0, newest, err
	}
	proof := len(newest) == min(len(p.known), mostNewest)
	for i := range newest {
		if i >= len(p.known) {
			// This record is older than the known ones, which is right unless these are all, or the record is a copy.
			if p.all || len(p.known) == 0 || newest[i].Cursor() == p.known[0].Cursor {
				return false, newest, nil
			}
			break
		}
		mark := p.known[len(p.known)-1-i]
		if !mark.Is(&newest[i]) {
			return false, newest, nil
		}
		proof = proof || mark.Unique
	}
	return proof, newest, nil
}

// IsBehind reports whether the service, with these newest records, does not have the last known record yet: it knows
// nothing after it, and what it shows is stored.
func (p *TransactionPages) IsBehind(ctx context.Context, newest []ledger.Transaction,
	stored func(ctx context.Context, eventIDs []string) (map[string]bool, error)) (bool, error) {
	ids := make([]string, len(newest))
	for i := range newest {
		ids[i] = newest[i].EventID
	}
	have, err := stored(ctx, ids)
	if err != nil || slices.ContainsFunc(ids, func(id string) bool { return !have[id] }) {
		return false, err
	}
	last := lastUnique(p.known)
	if last < 0 || hasCursor(newest, p.known[last].Cursor) {
		return last < 0 && len(newest) == 0 && len(p.known) > 0, nil
	}
	page, refused, err := p.ask(ctx, last)
	return err == nil && !refused && len(page) == 0, err
}

func hasCursor(page []ledger.Transaction, cursor ledger.TransactionsCursor) bool {
	return slices.ContainsFunc(page, func(record ledger.Transaction) bool { return record.Cursor() == cursor })
}
