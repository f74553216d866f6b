package ingest

import (
	"context"
	"slices"

	"ledgerindexer/ledger"
)

// transactionsBatch is what was read and is not being written yet.
type transactionsBatch struct {
	transactionsRead
	most int // so many records are written together, and those of the page that is the last of them
}

// full reports whether nothing is to be added.
func (b *transactionsBatch) full() bool { return len(b.records) >= b.most || b.end || b.err != nil }

// add adds what comes behind a batch that is not full. It makes room for a full one at once, where a page is not all of
// it: records are large.
func (b *transactionsBatch) add(next transactionsRead) {
	if b.records == nil {
		b.transactionsRead = next
		return
	}
	if cap(b.records) < b.most {
		b.records = slices.Grow(b.records, b.most)
	}
	b.records = append(b.records, next.records...)
	b.end, b.err = next.end, next.err
}

// transactionsWrites are the batches of records that are being written: at the same time, and stored in their order.
type transactionsWrites struct {
	sink     TransactionsSink
	order    *orderedCommits
	underWay []*transactionsWrite // in order
}

// transactionsWrite is one of the batches.
type transactionsWrite struct {
	*orderedCommit
	records []ledger.Record
	stored  ledger.TransactionsPosition // after them, when the write is done
}

// none reports whether nothing is being written.
func (w *transactionsWrites) none() bool { return len(w.underWay) == 0 }

// takes reports whether a batch can be written now. Pages may be large, so those that wait for their commit count too.
func (w *transactionsWrites) takes(full bool) bool {
	return w.order.takes(full) && len(w.underWay) < commitsWriting
}

// begin begins to write a batch behind the others, the first of which is written at a position. It is written to its
// end even if ctx ends.
func (w *transactionsWrites) begin(ctx context.Context, at ledger.TransactionsPosition, records []ledger.Record) {
	for _, before := range w.underWay {
		at = at.After(before.records)
	}
	write := &transactionsWrite{orderedCommit: w.order.add(), records: records}
	w.underWay = append(w.underWay, write)
	go write.run(func(order CommitOrder) (err error) {
		write.stored, err = w.sink.AppendTransactions(context.WithoutCancel(ctx), at, order, records)
		return err
	})
}

// ended removes the first write and returns it, once it has ended; else it returns nil.
func (w *transactionsWrites) ended() *transactionsWrite {
	if w.none() || !isClosed(w.underWay[0].done) {
		return nil
	}
	first := w.underWay[0]
	w.underWay = slices.Delete(w.underWay, 0, 1) // and its records
	return first
}

// wait waits until every write has ended.
func (w *transactionsWrites) wait() {
	for _, write := range w.underWay {
		<-write.done
	}
}
