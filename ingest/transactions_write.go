package ingest

import (
	"context"

	"ledgerindexer/ledger"
)

// transactionsWrite is records that are being written, while the next ones are read.
type transactionsWrite struct {
	records []ledger.Transaction
	done    chan struct{}
	at      ledger.TransactionsPosition // after them; valid, as err, when done is closed
	err     error
}

// write adds new records to the batch, and begins to write it unless others are being written: the next page is read
// meanwhile. It waits only if the batch is full.
func (r *transactionsRun) write(ctx context.Context, records []ledger.Transaction) error {
	r.batch = append(r.batch, records...)
	if r.writing != nil && !isClosed(r.writing.done) && len(r.batch) < transactionsBatch {
		return nil
	}
	if err := r.written(ctx); err != nil {
		return err
	}
	write := &transactionsWrite{records: r.batch, done: make(chan struct{})}
	at, batch := r.at, ledger.TransactionsBatch{Records: r.batch, Cursor: r.pages.Cursor()}
	r.batch, r.writing = nil, write
	go func() { // finished even if ctx ends
		defer close(write.done)
		write.at, write.err = r.Sink.AppendTransactions(context.WithoutCancel(ctx), at, batch)
	}()
	return nil
}

// written waits for the write under way.
func (r *transactionsRun) written(ctx context.Context) error {
	write := r.writing
	if write == nil {
		return nil
	}
	<-write.done
	r.writing = nil
	if write.err != nil {
		return write.err
	}
	r.at = write.at
	if r.Watch.Committed != nil {
		r.Watch.Committed(r.at, len(write.records))
	}
	r.warnUnknown(ctx, write.records)
	r.goal.take(write.records)
	r.meter.Add(ctx, r.at.LastSeq, len(write.records))
	r.answered(ctx)
	return nil
}

// settle writes everything that was read, and waits until it is stored.
func (r *transactionsRun) settle(ctx context.Context) error {
	err := r.written(ctx)
	if err == nil && len(r.batch) > 0 {
		if err = r.write(ctx, nil); err == nil {
			err = r.written(ctx)
		}
	}
	return err
}

// drop waits for the write under way, and drops what was read beyond it.
func (r *transactionsRun) drop() {
	if r.writing != nil {
		<-r.writing.done
	}
	r.batch, r.writing = nil, nil
}
