package ingest

import (
	"context"
	"slices"

	"ledgerindexer/ledger"
)

const (
	// So many batches of records are written at the same time, and stored in their order.
	historyWriters = 2
	// Pages that came while others were written are written together, until they have so many records.
	historyBatch = 3_000
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
	last    *orderedWrite          // the last that was begun; nil: none was
	pending map[string]bool        // event ids of records that are not stored yet
}

// historyWrite is a batch of records that is being written.
type historyWrite struct {
	*orderedWrite
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
	a := historyAhead{historyRun: r, stored: r.at, from: r.at, pending: map[string]bool{}}
	a.take(records, met)
	err := a.run(ctx)
	r.at = a.stored
	return err
}

// run reads and writes until reading leads no further. What was read is written then, unless ctx has ended.
func (a *historyAhead) run(ctx context.Context) error {
	var failed error
	for reading := true; ; {
		if ctx.Err() != nil {
			reading, a.batch = false, nil
		}
		if len(a.batch) > 0 && len(a.writing) < historyWriters {
			a.begin(ctx)
		}
		switch {
		case reading && len(a.batch) < historyBatch:
			reading, failed = a.readOn(ctx)
		case len(a.writing) > 0:
			<-a.writing[0].done
		case len(a.batch) == 0:
			return failed
		}
		if err := a.collect(ctx); err != nil {
			return err
		}
	}
}

// readOn reads the next page. more is false where that was not regular.
func (a *historyAhead) readOn(ctx context.Context) (more bool, err error) {
	if a.matchDue() || a.target.passed || a.at.Cursor() < 0 {
		return false, nil
	}
	f, err := a.readOverlapping(ctx, historyOverlap, false)
	if err != nil || f.differs || len(f.records) < a.least() {
		return false, err
	}
	met, err := a.Sink.MetTransactions(ctx, eventIDs(f.records))
	if err != nil {
		return false, err
	}
	for i := range f.records {
		if id := f.records[i].EventID; a.pending[id] {
			met[id] = true
		}
	}
	if unaccounted(f.records, met, a.at.Window[f.from+1:]) >= 0 {
		return false, nil
	}
	a.take(f.records, met)
	return true, nil
}

// take adds records to the batch. met are those of their event ids that stand on records before them.
func (a *historyAhead) take(records []ledger.Transaction, met map[string]bool) {
	for i := range records {
		a.pending[records[i].EventID] = true
	}
	if a.batch == nil {
		a.batch = records
	} else {
		a.batch = append(a.batch, records...)
	}
	a.at = expected(a.at, records, met)
}

// expected is the position behind records, as far as reading on needs it. met are those of their event ids that stand on
// records before them, all of which the service shows.
func expected(at ledger.HistoryPosition, records []ledger.Transaction, met map[string]bool) ledger.HistoryPosition {
	times := make(map[string]int, len(records))
	for i := range records {
		times[records[i].EventID]++
	}
	window := slices.Grow(slices.Clone(at.Window), len(records)) // writes need the one before
	for i := range window {
		if times[window[i].EventID] > 0 {
			window[i].Unique = false
		}
	}
	last := at.LastSeq
	for i := range records {
		id := records[i].EventID
		window = append(window, ledger.HistoryMark{Seq: last + int64(i) + 1, EventID: id, Unique: times[id] == 1 && !met[id]})
	}
	at.LastSeq += int64(len(records))
	at.Window = window
	at.Window = window[max(0, min(at.Cursor(), len(window)-aheadWindow)):]
	for i := range at.Window {
		if mark := &at.Window[i]; mark.Seq > last {
			mark.Fingerprint = records[mark.Seq-last-1].Fingerprint() // which takes a while, and most are not kept
		}
	}
	return at
}

// begin begins to write the batch.
func (a *historyAhead) begin(ctx context.Context) {
	from, before := a.from, a.last
	write := &historyWrite{orderedWrite: newOrderedWrite(), records: a.batch}
	a.at.Revision++ // with each write
	a.batch, a.from, a.last = nil, a.at, write.orderedWrite
	a.writing = append(a.writing, write)
	go write.run(before, func(turn ledger.Turn) (err error) {
		write.stored, err = a.Sink.AppendBehind(context.WithoutCancel(ctx), from, turn, write.records)
		return err
	})
}

// collect takes note of the writes that have ended. Where one failed it waits for all, and returns why.
func (a *historyAhead) collect(ctx context.Context) error {
	for len(a.writing) > 0 && a.writing[0].isDone() {
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
	}
	return nil
}
