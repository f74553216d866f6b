package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// How the pages of a transaction history are asked for: with what they have to repeat, and how often at its end.
const (
	// Each page begins this many known records early. They must come again, as a proof that the service and its order are
	// the same.
	transactionsOverlap = 50
	// A service that refuses so many event ids, one after the other, is not refusing them for being there twice: it fails,
	// and they are tried again.
	mostRefused = 20
	// A service that has nothing more is asked for so many of its newest records about this often, and this often who it
	// is, what is stored, and for the page of the last known ones.
	transactionsPollDepth  = 3
	transactionsPollEvery  = 2 * time.Second
	transactionsMatchEvery = 10 * time.Minute
)

// TransactionsPages reads the pages of a transaction history after known records. Each page is requested after one of
// these. The records that come again must be the known ones; those after them are new, and known from then on.
type TransactionsPages struct {
	source TransactionsSource
	known  []ledger.TransactionsMark // the last known records, the oldest first
	all    bool                      // they are all there are
}

// NewTransactionsPages reads after the last known records, which are in order. all says that they are all there are.
func NewTransactionsPages(source TransactionsSource, known []ledger.TransactionsMark, all bool) *TransactionsPages {
	return &TransactionsPages{source: source, known: known, all: all}
}

// TransactionsMisfit is the error for a service whose records are not those that are known, or that does not know
// these.
type TransactionsMisfit struct {
	What  string
	Short bool // no record is another one, but some are missing: the service may lack them, or its pages be too short
}

func (e *TransactionsMisfit) Error() string { return e.What }

// Next reads the next records. None: there are no more. The error may be a *TransactionsMisfit.
func (p *TransactionsPages) Next(ctx context.Context) (records []ledger.Record, err error) {
	before := p.known
	for range mostRefused {
		from, ok := p.start()
		if !ok {
			break
		}
		if records, err = p.readAfter(ctx, from); !errors.Is(err, ledger.ErrCursorRefused) {
			return records, err
		}
	}
	p.known = before
	if err == nil {
		return nil, &ledger.Problem{
			What: fmt.Sprintf("the last %d records of the transaction history share their event ids with others, so there is "+
				"none after which it could be read on", len(p.known)),
			Do: "read from another service (--scan-url), in whose order such records do not stand together",
		}
	}
	// no refusal of an id, so that all are tried again
	return nil, errors.New("the service reads on after none of the last known event ids: " + err.Error())
}

// start returns the index of the record after which to read; -1: from the beginning.
func (p *TransactionsPages) start() (index int, ok bool) {
	index = lastUnique(p.known[:max(0, len(p.known)-transactionsOverlap)])
	if index < 0 && !p.all {
		index = slices.IndexFunc(p.known, func(mark ledger.TransactionsMark) bool { return mark.Unique })
	}
	return index, index >= 0 || p.all
}

// readAfter reads page after page until one has a new record, or a different one, or none to read on after. One page
// may be too short for that.
func (p *TransactionsPages) readAfter(ctx context.Context, from int) ([]ledger.Record, error) {
	for {
		page, err := p.page(ctx, from)
		if err != nil {
			return nil, err
		}
		rest := p.known[from+1:]
		same := matching(rest, page)
		switch {
		case same < min(len(rest), len(page)):
			if err := p.heeds(ctx, from, page); err != nil {
				return nil, err
			}
			return nil, &TransactionsMisfit{What: fmt.Sprintf("%s the service has a record of event id %s, and another one, of "+
				"%s, was stored", p.after(from+same), ledger.Quoted(page[same].EventID), ledger.Quoted(rest[same].EventID))}
		case len(page) > len(rest):
			p.take(page[same:])
			return page[same:], nil
		}
		next := lastUnique(rest[:same])
		switch {
		case next >= 0:
			from += 1 + next
		case len(page) == 0 && len(rest) > 0:
			return nil, &TransactionsMisfit{What: fmt.Sprintf("the service has nothing %s, and %s was stored after it",
				p.after(from), ledger.Quoted(rest[0].EventID))}
		case same < len(rest):
			return nil, &TransactionsMisfit{Short: true, What: fmt.Sprintf("%s the service has %d records, and more were "+
				"stored; or it serves fewer records in a page than share an event id", p.after(from), len(page))}
		default:
			return nil, nil
		}
	}
}

// page requests the page after a known record. The error is ledger.ErrCursorRefused if the service can't page after it,
// because more than one of its records has the event id: another one is to be used.
func (p *TransactionsPages) page(ctx context.Context, from int) ([]ledger.Record, error) {
	if from < 0 {
		return p.source.TransactionsAfter(ctx, "")
	}
	id := p.known[from].EventID
	page, err := p.source.TransactionsAfter(ctx, id)
	if err == nil && slices.ContainsFunc(page, func(t ledger.Record) bool { return t.EventID == id }) {
		if err = p.heeds(ctx, from, page); err == nil {
			err = fmt.Errorf("%w, which a record after it has too: %s", ledger.ErrCursorRefused, ledger.Quoted(id))
		}
	}
	if !errors.Is(err, ledger.ErrCursorRefused) {
		return page, err
	}
	if _, outage := p.source.NewestTransactions(ctx, 1); outage != nil {
		return nil, outage // which is no refusal of this id
	}
	p.known = slices.Clone(p.known) // Next may take the refusal back
	p.known[from].Unique = false
	return nil, err
}

// heeds returns a *ledger.Problem if a page after a known record, with records that should not be there, is the
// beginning of the history: the service ignores what it is asked for.
func (p *TransactionsPages) heeds(ctx context.Context, from int, page []ledger.Record) error {
	if from < 0 {
		return nil
	}
	beginning, err := p.source.TransactionsAfter(ctx, "")
	if err != nil || !slices.EqualFunc(page, beginning, func(a, b ledger.Record) bool { return a.Mark().Is(&b) }) {
		return err
	}
	return &ledger.Problem{
		What: "the service serves the beginning of its history when it is asked to read on " + p.after(from),
		Do: "look for a proxy between here and the service that drops the requests' bodies or answers from a cache; else " +
			"read from another service (--scan-url)",
	}
}

// after names the place behind a known record.
func (p *TransactionsPages) after(index int) string {
	if index < 0 {
		return "at the beginning"
	}
	return "after event id " + ledger.Quoted(p.known[index].EventID)
}

// take adds new records to the known ones, and forgets older ones.
func (p *TransactionsPages) take(records []ledger.Record) {
	if excess := len(records) - ledger.TransactionsTail; excess > 0 {
		p.known, p.all, records = nil, false, records[excess:]
	}
	marks := slices.Clone(p.known[max(0, len(p.known)+len(records)-ledger.TransactionsTail):])
	p.all = p.all && len(marks) == len(p.known)
	for i := range records {
		marks = append(marks, records[i].Mark())
	}
	times := make(map[string]int, len(marks))
	for _, mark := range marks {
		times[mark.EventID]++
	}
	for i := range marks {
		marks[i].Unique = marks[i].Unique && times[marks[i].EventID] == 1
	}
	p.known = marks
}

// matching returns how many of the first records are those of the first marks.
func matching(marks []ledger.TransactionsMark, records []ledger.Record) (n int) {
	for n < min(len(marks), len(records)) && marks[n].Is(&records[n]) {
		n++
	}
	return n
}

// lastUnique returns the index of the newest mark with an event id of its own; -1: there is none.
func lastUnique(marks []ledger.TransactionsMark) int {
	for i, mark := range slices.Backward(marks) {
		if mark.Unique {
			return i
		}
	}
	return -1
}

// lacksLast reports whether newest records lack the last known one, or a copy of it.
func (p *TransactionsPages) lacksLast(newest []ledger.Record) bool {
	last, copies := p.known[len(p.known)-1], 0
	for _, mark := range p.known {
		if mark.EventID == last.EventID && mark.Fingerprint == last.Fingerprint {
			copies++
		}
	}
	for i := range newest {
		if last.Is(&newest[i]) {
			copies--
		}
	}
	return copies > 0
}

// areLast reports whether newest records, the newest first, are the last known ones.
func (p *TransactionsPages) areLast(newest []ledger.Record) bool {
	for i := range newest {
		at := len(p.known) - 1 - i
		if at < 0 {
			return !p.all
		}
		if !p.known[at].Is(&newest[i]) {
			return false
		}
	}
	return len(newest) > 0 || len(p.known) == 0
}

// transactionsRead is what one request, or several, brought: records, and then the end or an error.
type transactionsRead struct {
	records []ledger.Record
	end     bool // there are no more for now
	err     error
}

// follow sends what it reads, until something fails or ctx ends. At the end of the history it goes on looking for more,
// for transactionsMatchEvery: then who the service is, and what is stored, has to be asked again.
func (p *TransactionsPages) follow(ctx context.Context, to chan<- transactionsRead) {
	defer close(to)
	began, matched := time.Now(), false // the last known records came again, and nothing behind them
	for {
		var read transactionsRead
		if matched {
			read.end, read.err = p.isStill(ctx)
		}
		if !read.end && read.err == nil {
			if read.records, read.err = p.Next(ctx); read.err == nil && len(read.records) == 0 {
				read.end, matched = true, true
			}
		}
		select {
		case to <- read:
		case <-ctx.Done():
			return
		}
		if read.err != nil || read.end && time.Since(began) >= transactionsMatchEvery {
			return
		}
		if read.end {
			Sleep(ctx, transactionsPollEvery*3/4+rand.N(transactionsPollEvery/2))
		}
	}
}

// isStill reports whether the newest records of the service are the last known ones. Where they are equal to one
// another, one more may have come; only a page shows that.
func (p *TransactionsPages) isStill(ctx context.Context) (bool, error) {
	newest, err := p.source.NewestTransactions(ctx, transactionsPollDepth)
	return err == nil && p.areLast(newest), err
}
