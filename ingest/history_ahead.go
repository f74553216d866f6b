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
	// The window that is expected behind so many records consists of the last of them.
	aheadWindow = 200
)

// historyAhead reads on while what was read is written, as long as all is regular: each page fits what was read before it,
// and brings only records whose event ids nobody has seen yet. Then it is known beforehand which position the writes lead
// to, and that is the run's position meanwhile. Whatever is not regular is read once more by the run itself, from what is
// stored then.
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

// readsAhead tells whether more is to be expected behind a page, and all is regular so far. met are the event ids that
// stand on stored records.
func (r *historyRun) readsAhead(found *found, met map[string]bool) bool {
	a := historyAhead{historyRun: r}
	return !r.fresh && !r.again && !r.at.Rereading && len(found.records) >= r.least() && a.unseen(found.records, met)
}

// least is how many new records a page has that more is to be expected behind.
func (r *historyRun) least() int {
	if r.leastAhead > 0 {
		return r.leastAhead
	}
	return leastForAhead
}

// readAhead stores the new records of a page, and what can be read behind them in the meantime.
func (r *historyRun) readAhead(ctx context.Context, records []ledger.Transaction) error {
	a := historyAhead{historyRun: r, stored: r.at, from: r.at, pending: map[string]bool{}}
	a.take(records)
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
	if a.matchDue() || a.target.passed {
		return false, nil
	}
	f, err := a.readOverlapping(ctx, historyOverlap, false)
	if err != nil || f.differs || len(f.records) < a.least() {
		return false, err
	}
	met, err := a.Sink.MetTransactions(ctx, eventIDs(f.records))
	if err != nil || !a.unseen(f.records, met) {
		return false, err
	}
	a.take(f.records)
	return true, nil
}

// unseen tells whether each record's event id stands on no other record, stored or not. met are those that are stored.
func (a *historyAhead) unseen(records []ledger.Transaction, met map[string]bool) bool {
	if len(eventIDs(records)) < len(records) {
		return false
	}
	for i := range records {
		if id := records[i].EventID; met[id] || a.pending[id] {
			return false
		}
	}
	return true
}

// take adds records to the batch.
func (a *historyAhead) take(records []ledger.Transaction) {
	for i := range records {
		a.pending[records[i].EventID] = true
	}
	if a.batch == nil {
		a.batch = records
	} else {
		a.batch = append(a.batch, records...)
	}
	a.at = expected(a.at, records)
}

// expected is the position behind records whose event ids are unique, as far as reading on needs it.
func expected(at ledger.HistoryPosition, records []ledger.Transaction) ledger.HistoryPosition {
	kept := min(len(at.Window), max(0, aheadWindow-len(records)))
	window := slices.Clone(at.Window[len(at.Window)-kept:])
	skipped := max(0, len(records)-aheadWindow)
	for i := range records[skipped:] {
		record := &records[skipped+i]
		window = append(window, ledger.HistoryMark{
			Seq: at.LastSeq + int64(skipped+i) + 1, EventID: record.EventID, Fingerprint: record.Fingerprint(), Unique: true,
		})
	}
	at.LastSeq += int64(len(records))
	at.Window = window
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
