package ingest

import (
	"context"

	"ledgerindexer/ledger"
)

// transactionsWrites are the records that were read and are not stored yet. Reading continues while they are written.
type transactionsWrites struct {
	batch   ledger.TransactionsBatch    // read, and not being written yet
	from    ledger.TransactionsPosition // where the batch begins
	writing []*transactionsWrite        // in order
	commits *orderedCommits             // of the writes
	pending map[string]bool             // event ids of records that are not stored yet
	room    []ledger.Transaction        // the empty slice of a stored batch, to reuse
}

// transactionsWrite is a batch of records that is being written.
type transactionsWrite struct {
	*orderedCommit
	ledger.TransactionsBatch
	stored ledger.TransactionsPosition // after them, when the write is done
}

func (r *transactionsRun) take(f TransactionPage) error {
	fresh, err := r.pages.Take(f, func(id string) bool { return r.pending[id] })
	if err != nil {
		return err
	}
	if len(r.batch.Records) == 0 {
		r.from, r.batch.Records, r.room = r.at, r.room, nil
	}
	for _, record := range fresh {
		r.pending[record.EventID] = true
		if r.at.MayHave(record) {
			r.batch.New = append(r.batch.New, record.EventID)
		}
	}
	r.batch.Records = append(r.batch.Records, f.Records...)
	r.batch.Cursor = r.pages.Cursor()
	r.at = r.from.After(r.batch.Records)
	return nil
}

// writeAhead begins to write the batch, if that is possible now. It waits only if the batch is full.
func (r *transactionsRun) writeAhead(ctx context.Context) error {
	for {
		full := len(r.batch.Records) >= transactionsBatch
		if len(r.batch.Records) > 0 && r.commits.takes(full) {
			r.write(ctx)
			full = false
		}
		if err := r.collect(ctx); err != nil || !full {
			return err
		}
		<-r.commits.moved
	}
}

// settle writes everything that was read, and waits until it is stored.
func (r *transactionsRun) settle(ctx context.Context) error {
	for len(r.batch.Records)+len(r.writing) > 0 {
		if len(r.batch.Records) > 0 && r.commits.takes(true) {
			r.write(ctx)
		} else {
			<-r.commits.moved
		}
		if err := r.collect(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end waits for the writes under way, and drops the rest.
func (r *transactionsRun) end() {
	for _, write := range r.writing {
		<-write.done
	}
	r.batch, r.writing = ledger.TransactionsBatch{}, nil
}

// write begins to write the batch. The write is finished even if ctx ends.
func (r *transactionsRun) write(ctx context.Context) {
	write, from := &transactionsWrite{orderedCommit: r.commits.add(), TransactionsBatch: r.batch}, r.from
	r.batch = ledger.TransactionsBatch{}
	r.writing = append(r.writing, write)
	go write.run(func(order CommitOrder) (err error) {
		write.stored, err = r.Sink.AppendTransactions(context.WithoutCancel(ctx), from, order, write.TransactionsBatch)
		return err
	})
}

// collect records the writes that have ended. If one failed, it waits for all and returns the error.
func (r *transactionsRun) collect(ctx context.Context) error {
	for len(r.writing) > 0 && isClosed(r.writing[0].done) {
		write := r.writing[0]
		if write.err != nil {
			r.end()
			return write.err
		}
		r.writing = r.writing[1:]
		for i := range write.Records {
			delete(r.pending, write.Records[i].EventID)
		}
		r.stored = write.stored
		if r.Watch.Committed != nil {
			r.Watch.Committed(r.stored, len(write.Records))
		}
		r.warnUnknown(ctx, write.Records)
		r.target.take(write.Records)
		r.goal.take(write.Records)
		r.meter.Add(ctx, r.stored.LastSeq, len(write.Records))
		r.answered(ctx)
		clear(write.Records)
		r.room = write.Records[:0]
	}
	return nil
}
