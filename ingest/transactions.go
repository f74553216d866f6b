package ingest

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// Pages that came while others were written are written together, up to this many records.
const transactionsBatch = 5_000

// Transactions is the loop that reads the transaction history from the stored position on, and writes it. It is used
// once.
//
// Each page begins with records that are stored. Where they are others, the loop asks again who the service is, and
// reads again after what is stored. If the records do not fit then either, it waits for a service that is behind, or
// clears what is stored and reads the history from its beginning.
type Transactions struct {
	Source TransactionsSource
	Sink   TransactionsSink
	// Check, if set, checks that source and sink still belong together, before each try and before anything is done about
	// a page that does not fit: another service may answer. It gets what the source reports of itself.
	Check func(context.Context, ledger.TransactionsService) error
	// UntilCurrent ends the loop when the newest record as of its start is committed.
	UntilCurrent bool
	Logger       *slog.Logger
	Watch        TransactionsWatch
}

// TransactionsWatch has callbacks for the loop. Each may be nil; they are called from one goroutine.
type TransactionsWatch struct {
	Resumed   func(ledger.TransactionsPosition)                 // at the start, and before each new try
	Committed func(at ledger.TransactionsPosition, records int) // after a commit of that many records
	Current   func()                                            // the service has nothing more
	// the service can't be read yet, without an error; empty: it can again
	Waiting   func(why string)
	Retrying  func(err error, wait time.Duration)
	Recovered func()           // after Retrying: a read succeeded, and its records are committed
	Rereading func(why string) // the records were cleared, to read them again
	Progress  func(ledger.Progress)
}

// transactionsRun is the state of a run of Transactions.
type transactionsRun struct {
	*Transactions
	retry    Retry
	meter    *Meter
	goal     transactionsTarget // the newest record when the loop, or reading again, began
	caughtUp bool               // logged
	waiting  string             // for what, as last reported; empty: for nothing
	unknown  bool               // logged that there are records of unknown kinds
	cleared  time.Time          // when the records were last cleared

	// The following is set when the service is asked who it is.
	asked time.Time
	at    ledger.TransactionsPosition // after what is stored
	pages *TransactionPages
	fresh bool // nothing new was read since then
	again bool // no page has a record that is among the newest; they are asked for once more

	batch   []ledger.Transaction // read, and not being written yet
	writing *transactionsWrite   // nil: none is under way
}

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

// answered resets the retry's waits, after the records of a read are committed.
func (r *transactionsRun) answered(ctx context.Context) {
	r.arrived(ctx)
	r.retry.Worked()
}

// await reports, once, that the loop waits for the service, and why.
func (r *transactionsRun) await(ctx context.Context, why string) {
	if r.waiting != why {
		r.waiting = why
		r.Logger.WarnContext(ctx, "waiting for the service of the transaction history", "stream", "transactions",
			"reason", why)
		if r.Watch.Waiting != nil {
			r.Watch.Waiting(why)
		}
	}
	r.retry.Worked()
}

// arrived reports that the wait is over.
func (r *transactionsRun) arrived(ctx context.Context) {
	if r.waiting == "" {
		return
	}
	r.waiting = ""
	r.Logger.InfoContext(ctx, "the service need not be waited for any more", "stream", "transactions")
	if r.Watch.Waiting != nil {
		r.Watch.Waiting("")
	}
}

// warnUnknown logs once that there are records of unknown kinds.
func (r *transactionsRun) warnUnknown(ctx context.Context, records []ledger.Transaction) {
	i := slices.IndexFunc(records, func(t ledger.Transaction) bool { return t.Kind == ledger.TransactionUnknown })
	if r.unknown || i < 0 {
		return
	}
	r.unknown = true
	r.Logger.WarnContext(ctx, "a record is of no kind that this version knows; such records are kept raw in "+
		"ledger.unknown_transactions",
		"stream", "transactions", "event_id", records[i].EventID)
}

// transactionsTarget is a record up to which to read: the newest at some time.
type transactionsTarget struct {
	known  bool
	any    bool // there was a record
	mark   ledger.TransactionsMark
	seen   bool // a record equal to it was committed
	passed bool // then one with another event id was committed: records that share an id are adjacent
}

func (t *transactionsTarget) take(records []ledger.Transaction) {
	for i := range records {
		t.pass(records[i].Cursor(), records[i].Fingerprint)
	}
}

func (t *transactionsTarget) pass(cursor ledger.TransactionsCursor, fingerprint func() int64) {
	switch {
	case !t.any || t.passed:
	case cursor != t.mark.Cursor:
		t.passed = t.seen
	case !t.seen:
		t.seen = fingerprint() == t.mark.Fingerprint
	}
}
