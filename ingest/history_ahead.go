package ingest

import (
	"context"
	"maps"

	"ledgerindexer/ledger"
)

const (
	// Pages that came while others were written are written together, until they have so many records.
	historyBatch = 5_000
	// A page with fewer new records has little behind it.
	leastForAhead = 100
	// The window that is expected has so many marks, or more where these hold no unique event id.
	aheadWindow = 200
)

// historyAhead reads on while what was read is written, as long as all is regular: each page fits what was read before it,
// and brings no record whose event id stands elsewhere than on the records just before it. Then it is known beforehand
// which position the writes lead to, and that is the run's position meanwhile. Whatever is not regular is read once more by
// the run itself, from what is stored then.
type historyAhead struct {
	*historyRun
	stored  ledger.HistoryPosition
	batch   []ledger.Transaction   // read and not being written yet
	from    ledger.HistoryPosition // where the batch begins
	writing []*historyWrite        // in their order
	commits *orderedCommits        // of them
	pages   int                    // that were read
	pending map[string]int         // event ids of records that are not stored yet, and the page that each came with
	next    *pageAhead             // read already; nil: none is
	rooms   [][]ledger.Transaction // of batches that are stored
}

// pageAhead is what was read behind the expected position.
type pageAhead struct {
	found
	err error
}

// pageIDs are the event ids of a page's records.
type pageIDs struct {
	unknown []string        // each once: they stand on no record that is not stored, but those of the page
	met     map[string]bool // they stand on records before the page
	twice   map[string]bool // they stand on several records of the page
}

// historyWrite is a batch of records that is being written.
type historyWrite struct {
	*orderedCommit
	records []ledger.Transaction
	stored  ledger.HistoryPosition // behind them, when it is done
}

// readsAhead tells whether more is to be expected behind a page of so many new records, and it is known what they lead to.
func (r *historyRun) readsAhead(records int) bool {
	return !r.fresh && !r.again && !r.at.Rereading && records >= r.least()
}

// least is how many new records a page has that more is to be expected behind.
func (r *historyRun) least() int {
	if r.leastAhead > 0 {
		return r.leastAhead
	}
	return leastForAhead
}

// readAhead stores the new records of a page, and what can be read behind them in the meantime. met are those of the
// records' event ids that are stored already.
func (r *historyRun) readAhead(ctx context.Context, records []ledger.Transaction, met map[string]bool) error {
	a := historyAhead{historyRun: r, stored: r.at, from: r.at, commits: newOrderedCommits(), pending: map[string]int{}}
	ids := a.note(records)
	maps.Copy(ids.met, met)
	a.take(records)
	a.at = expected(a.at, records, ids)
	err := a.run(ctx)
	r.at = a.stored
	return err
}

// run reads and writes until reading leads no further. What was read is written then, unless ctx has ended. A batch that is not
// full waits for the page under way.
func (a *historyAhead) run(ctx context.Context) error {
	var failed error
	for reading := true; ; {
		if ctx.Err() != nil {
			reading, a.batch = false, nil
		}
		full := !reading || len(a.batch) >= historyBatch
		switch {
		case len(a.batch) > 0 && a.commits.takes(full):
			a.begin(ctx)
		case !full:
			reading, failed = a.readOn(ctx)
		case len(a.writing) > 0:
			<-a.commits.moved
		default:
			return failed
		}
		if err := a.collect(ctx); err != nil {
			return err
		}
	}
}

// readOn takes the next page. more is false where that was not regular.
func (a *historyAhead) readOn(ctx context.Context) (more bool, err error) {
	if a.matchDue() || a.target.passed || a.at.Cursor() < 0 {
		return false, nil
	}
	if a.next == nil {
		a.readNext(ctx)
	}
	page := a.next
	a.next = nil
	if page.err != nil || page.differs || len(page.records) < a.least() {
		return false, page.err
	}
	ids := a.note(page.records)
	before := a.at
	a.at = expected(before, page.records, ids)
	stored, err := a.lookUp(ctx, ids.unknown)
	if len(stored) > 0 {
		maps.Copy(ids.met, stored)
		a.at, a.next = expected(before, page.records, ids), nil
	}
	if err != nil || unaccounted(page.records, ids.met, before.Window[page.from+1:]) >= 0 {
		a.at = before
		return false, err
	}
	a.take(page.records)
	return true, nil
}

// readNext reads the page behind the expected position.
func (a *historyAhead) readNext(ctx context.Context) {
	f, err := a.readOverlapping(ctx, historyOverlap, false)
	a.next = &pageAhead{f, err}
}

// lookUp tells which event ids stand on stored records. Mostly none does: meanwhile the page behind the expected position is
// read.
func (a *historyAhead) lookUp(ctx context.Context, ids []string) (stored map[string]bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		stored, err = a.Sink.MetTransactions(ctx, ids)
	}()
	if a.at.Cursor() >= 0 {
		a.readNext(ctx)
	}
	<-done
	return stored, err
}

// note notes the event ids of a page's records.
func (a *historyAhead) note(records []ledger.Transaction) pageIDs {
	a.pages++
	ids := pageIDs{unknown: make([]string, 0, len(records)), met: map[string]bool{}, twice: map[string]bool{}}
	for i := range records {
		id := records[i].EventID
		switch page, pending := a.pending[id]; {
		case !pending:
			a.pending[id] = a.pages
			ids.unknown = append(ids.unknown, id)
		case page == a.pages:
			ids.twice[id] = true
		default:
			ids.met[id] = true
		}
	}
	return ids
}

// take adds records to the batch.
func (a *historyAhead) take(records []ledger.Transaction) {
	if n := len(a.rooms); a.batch == nil && n > 0 {
		a.batch, a.rooms = a.rooms[n-1], a.rooms[:n-1]
	}
	a.batch = append(a.batch, records...)
}

// expected is the position behind records, as far as reading on needs it. Of the records before them all whose event ids are
// met are shown by the service.
func expected(at ledger.HistoryPosition, records []ledger.Transaction, ids pageIDs) ledger.HistoryPosition {
	before, last := at.Window, at.LastSeq
	behind := len(before) + len(records)
	mark := func(i int) ledger.HistoryMark {
		if i < len(before) {
			m := before[i]
			m.Unique = m.Unique && !ids.met[m.EventID]
			return m
		}
		i -= len(before)
		id := records[i].EventID
		return ledger.HistoryMark{Seq: last + int64(i) + 1, EventID: id, Unique: !ids.met[id] && !ids.twice[id]}
	}
	cursor := behind - 1
	for cursor >= 0 && !mark(cursor).Unique {
		cursor--
	}
	from := max(0, min(cursor, behind-aheadWindow))
	at.LastSeq += int64(len(records))
	at.Window = make([]ledger.HistoryMark, 0, behind-from) // writes need the one before
	for i := from; i < behind; i++ {
		m := mark(i)
		if i >= len(before) {
			m.Fingerprint = records[i-len(before)].Fingerprint() // which takes a while, and most are not kept
		}
		at.Window = append(at.Window, m)
	}
	return at
}

// begin begins to write the batch.
func (a *historyAhead) begin(ctx context.Context) {
	from := a.from
	write := &historyWrite{orderedCommit: a.commits.add(), records: a.batch}
	a.at.Revision++ // with each write
	a.batch, a.from = nil, a.at
	a.writing = append(a.writing, write)
	go write.run(func(order CommitOrder) (err error) {
		write.stored, err = a.Sink.AppendBehind(context.WithoutCancel(ctx), from, order, write.records)
		return err
	})
}

// collect takes note of the writes that have ended. Where one failed it waits for all, and returns why.
func (a *historyAhead) collect(ctx context.Context) error {
	for len(a.writing) > 0 && isClosed(a.writing[0].done) {
		write := a.writing[0]
		if write.err != nil {
			for _, behind := range a.writing {
				<-behind.done
			}
			return write.err
		}
		a.writing = a.writing[1:]
		for i := range write.records {
			delete(a.pending, write.records[i].EventID)
		}
		added := int(write.stored.LastSeq - a.stored.LastSeq)
		a.stored = write.stored
		a.committed(ctx, a.stored, added, write.records)
		clear(write.records)
		a.rooms = append(a.rooms, write.records[:0])
	}
	return nil
}
