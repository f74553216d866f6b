package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ledgerindexer/ledger"
)

// How much of a transaction history is read ahead and written at once, and how a service is judged that does not fit
// it.
const (
	// Pages that came while others were written are written together, up to about this many records.
	recordsTogether = 2_500
	// So many pages are read ahead of what is being written.
	transactionsAhead = 2
	// The history is not cleared again sooner than this: two services may answer in turn.
	clearEvery = 10 * time.Minute
	// A service is behind if so many of its newest records are stored, and the last stored one is not among them.
	behindDepth = 20
)

// Transactions is the loop that reads the transaction history from the stored position on, and writes it. It is used
// once.
//
// Each page begins with records that are stored. Where they are others, the loop asks again who the service is, and
// reads again after what is stored. If the records do not fit then either, it clears what is stored and reads the
// history from its beginning. A service that is behind what is stored is tried again.
type Transactions struct {
	Source TransactionsSource
	Sink   TransactionsSink
	// Check, if set, checks that source and sink still belong together, before each try and before anything is done about
	// a page that does not fit: another service may answer. It gets what the source reports of itself.
	Check func(context.Context, ledger.TransactionsService) error
	// UntilCurrent ends the loop when the newest record that the service had at the start is stored, and what is equal to
	// it.
	UntilCurrent bool
	Logger       *slog.Logger
	Watch        TransactionsWatch

	batch int // in place of recordsTogether; 0: that
}

// TransactionsWatch has callbacks for the loop. Each may be nil; they are called from one goroutine.
type TransactionsWatch struct {
	Resumed   func(ledger.TransactionsPosition)                 // before anything is read, at each try
	Committed func(at ledger.TransactionsPosition, records int) // after a commit of that many records
	Current   func()                                            // the service has nothing more
	Retrying  func(err error, wait time.Duration)
	Recovered func() // after Retrying: a read succeeded, and its records are committed
	Progress  func(ledger.Progress)
}

// transactionsRun is the state of a run of Transactions.
type transactionsRun struct {
	*Transactions
	retry    Retry
	meter    *Meter
	caughtUp bool      // logged
	unknown  bool      // logged that there are records of unknown kinds
	cleared  time.Time // when the records were last cleared

	// The following is set when the service is asked who it is.
	at     ledger.TransactionsPosition // after what is stored
	writes transactionsWrites          // of what comes after it
	pages  *TransactionsPages
	goal   ledger.TransactionsMark // the service's newest record then; none: it had none
	seen   bool                    // the goal is stored
	passed bool                    // so is a batch behind it, which has the records that are equal to the goal
}

// Run works until ctx ends (nil; transactions under way are finished), UntilCurrent is reached (nil), or an error is
// Lasting. It returns ledger.ErrNotOffered if the service has no transaction history.
func (h *Transactions) Run(ctx context.Context) error {
	r := transactionsRun{
		Transactions: h, meter: NewMeter(h.Logger, ledger.Progress{Stream: "transactions", Unit: "records"},
			h.Watch.Progress),
	}
	r.retry = Retry{
		Logger: h.Logger.With("stream", "transactions"), Final: lastingOrNotOffered,
		Failed: h.Watch.Retrying, Recovered: h.Watch.Recovered,
	}
	return loopResult(ctx, h.Logger, "transactions", r.retry.Do(ctx, r.try))
}

// try reads and writes until something fails. When it returns, no request or write is under way.
func (r *transactionsRun) try(ctx context.Context) error {
	defer r.meter.Idle()
	for ctx.Err() == nil {
		if err := r.begin(ctx); err != nil {
			return err
		}
		fits, err := r.read(ctx)
		if misfit, ok := errors.AsType[*TransactionsMisfit](err); ok {
			if fits {
				continue // it fitted before: another service may answer
			}
			err = r.misfits(ctx, misfit)
		}
		if err != nil {
			return notReached(err)
		}
	}
	return nil
}

// begin asks who the service is, and reads the stored position. It keeps nothing that was known before.
func (r *transactionsRun) begin(ctx context.Context) error {
	service, err := r.Source.Describe(ctx)
	if err == nil && r.Check != nil {
		err = r.Check(ctx, service)
	}
	switch {
	case err != nil:
		return err
	case service.Backfilling: // a partial history can't be distinguished from a complete one
		return errors.New("the service is still backfilling its own history")
	}
	at, known, err := r.Sink.TransactionsPosition(ctx)
	if err != nil {
		return err
	}
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	newest, err := r.Source.NewestTransactions(ctx, 1)
	if err != nil {
		return err
	}
	r.at, r.pages = at, NewTransactionsPages(r.Source, known, at.LastSeq == int64(len(known)))
	r.writes = transactionsWrites{sink: r.Sink, order: newOrderedCommits()}
	r.goal, r.seen, r.passed = ledger.TransactionsMark{}, true, false
	if len(newest) > 0 {
		r.goal = newest[0].Mark()
		r.seen = slices.ContainsFunc(known, func(m ledger.TransactionsMark) bool { return m.Is(&newest[0]) })
	}
	return nil
}

// read writes what is read, until something fails. fits says that at least one page followed what is stored. The end of
// the history and an error come behind the records that were read before.
func (r *transactionsRun) read(ctx context.Context) (fits bool, err error) {
	reading, stop := context.WithCancel(ctx)
	pages := make(chan transactionsRead, transactionsAhead)
	go r.pages.follow(reading, pages)
	defer func() {
		stop()
		for range pages { // until no request is under way
		}
		r.writes.wait()
	}()
	batch := transactionsBatch{most: cmp.Or(r.batch, recordsTogether)}
	for more := true; ; {
		if err := r.written(ctx); err != nil {
			return fits, err
		}
		idle := r.writes.none()
		switch {
		case idle && ctx.Err() != nil:
			return fits, nil
		case idle && r.reachesGoal():
			if err := r.reached(ctx); err != nil {
				return fits, err
			}
		case len(batch.records) > 0 && ctx.Err() == nil && !r.reachesGoal() && r.writes.takes(batch.full()):
			r.writes.begin(ctx, r.at, batch.records)
			batch.records = nil
		case idle && batch.err != nil:
			return fits, batch.err
		case idle && batch.end:
			if err := r.current(ctx); err != nil {
				return fits, err
			}
			batch.end, fits = false, true
		case idle && !more:
			return fits, nil
		default:
			var next <-chan transactionsRead // none while the batch is full
			if more && !batch.full() {
				next = pages
			}
			select {
			case <-r.writes.order.moved:
			case page, ok := <-next:
				batch.add(page)
				more, fits = ok, fits || len(page.records) > 0
			}
		}
	}
}

// written takes note of the batches that have been stored. It is an error if one was not.
func (r *transactionsRun) written(ctx context.Context) error {
	for {
		write := r.writes.ended()
		if write == nil {
			return nil
		}
		if write.err != nil {
			return write.err
		}
		r.at = write.stored
		if r.Watch.Committed != nil {
			r.Watch.Committed(r.at, len(write.records))
		}
		r.warnUnknown(ctx, write.records)
		r.meter.Add(ctx, r.at.LastSeq, len(write.records))
		r.retry.Worked()
		r.passed = r.passed || r.seen && r.goal.EventID != ""
		r.seen = r.seen || slices.ContainsFunc(write.records, func(t ledger.Record) bool { return r.goal.Is(&t) })
	}
}

// reachesGoal reports whether the goal is reached although no page was without new records: from a busy service none
// may ever be.
func (r *transactionsRun) reachesGoal() bool { return r.passed && (r.UntilCurrent || r.at.Rereading) }

// current is called when the history was read to its end.
func (r *transactionsRun) current(ctx context.Context) error {
	switch {
	case !r.seen:
		return fmt.Errorf("the service serves nothing after the last stored record, but its newest is %s; or it serves "+
			"fewer records in a page than share an event id", ledger.Quoted(r.goal.EventID))
	case r.at.Rereading && r.at.LastSeq == 0:
		return errors.New("the service is behind: its history is empty, and records of it were stored")
	}
	r.retry.Worked()
	r.meter.Idle()
	if !r.caughtUp {
		r.caughtUp = true
		r.Logger.InfoContext(ctx, "caught up", "stream", "transactions", "last_seq", r.at.LastSeq)
	}
	err := r.reached(ctx)
	if r.Watch.Current != nil && (err == nil || errors.Is(err, errReached)) {
		r.Watch.Current()
	}
	return err
}

// reached notes that the goal is stored, which ends reading again, and the loop if it is UntilCurrent.
func (r *transactionsRun) reached(ctx context.Context) error {
	if r.at.Rereading {
		at, err := r.Sink.CompleteTransactions(context.WithoutCancel(ctx), r.at)
		if err != nil {
			return err
		}
		r.at = at
		r.Logger.InfoContext(ctx, "the transaction history was read again to its end", "stream", "transactions",
			"last_seq", at.LastSeq)
		if r.Watch.Committed != nil {
			r.Watch.Committed(at, 0)
		}
	}
	if r.UntilCurrent {
		return errReached
	}
	return nil
}

// misfits handles a service whose records do not fit those that are stored. Only where it shows something else it
// returns nil: the history is to be read again.
func (r *transactionsRun) misfits(ctx context.Context, misfit *TransactionsMisfit) error {
	newest, err := r.Source.NewestTransactions(ctx, behindDepth)
	if err != nil {
		return err
	}
	ids := make([]string, len(newest))
	for i := range newest {
		ids[i] = newest[i].EventID
	}
	stored, err := r.Sink.StoredTransactions(ctx, ids)
	if err != nil {
		return err
	}
	last := r.pages.known[len(r.pages.known)-1]
	switch {
	case stored && r.pages.lacksLast(newest):
		// another instance that lags, or one that lost its history and takes it in again
		err := fmt.Errorf("the service is behind: the newest stored record, %s, is not in its history yet",
			ledger.Quoted(last.EventID))
		if r.UntilCurrent && !r.at.Rereading { // all that it shows is stored
			r.Logger.WarnContext(ctx, "nothing more is read", "stream", "transactions", "reason", err)
			return errReached
		}
		return err
	case misfit.Short:
		return misfit // to be tried again
	case time.Since(r.cleared) < clearEvery:
		return fmt.Errorf("the history must be read again once more, a while after the last time: %w", misfit)
	}
	// The service may have got what it lacked since it was asked for the page.
	_, err = r.pages.Next(ctx)
	if still, ok := errors.AsType[*TransactionsMisfit](err); !ok || still.Short {
		return cmp.Or(err, error(misfit))
	}
	return r.clear(ctx, misfit.What)
}

// clear removes the records, to read them again from the beginning: that is right whatever happened to the service.
func (r *transactionsRun) clear(ctx context.Context, why string) error {
	r.Logger.WarnContext(ctx, "the stored transaction history is not the service's: clearing it, and reading it again "+
		"from its beginning", "stream", "transactions", "reason", why, "last_seq", r.at.LastSeq)
	at, err := r.Sink.ClearTransactions(context.WithoutCancel(ctx), r.at)
	if err != nil {
		return err
	}
	r.cleared, r.caughtUp = time.Now(), false
	if r.Watch.Committed != nil {
		r.Watch.Committed(at, 0)
	}
	return nil
}

// warnUnknown logs once that there are records of unknown kinds.
func (r *transactionsRun) warnUnknown(ctx context.Context, records []ledger.Record) {
	i := slices.IndexFunc(records, func(t ledger.Record) bool { return t.Kind == ledger.RecordUnknown })
	if r.unknown || i < 0 {
		return
	}
	r.unknown = true
	r.Logger.WarnContext(ctx, "a record is of no kind that this version knows; such records are kept raw in "+
		"ledger.unknown_transactions",
		"stream", "transactions", "event_id", records[i].EventID)
}
