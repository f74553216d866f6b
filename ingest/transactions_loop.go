package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ledgerindexer/ledger"
)

const (
	// A service that has nothing more is asked for its newest records about this often, for at least transactionsPollDepth
	// of them.
	transactionsPollEvery = 2 * time.Second
	transactionsPollDepth = 3
	// This many of the newest records must be the last known ones before the history counts as read to its end.
	transactionsEndDepth = 20
	// Another service may begin to answer without a failed request. So this often the service is asked who it is, and what
	// is known is read from the store again.
	transactionsMatchEvery = 10 * time.Minute
	backfillingEvery       = 30 * time.Second // between requests to a service that is backfilling its own history
	behindEvery            = 10 * time.Second // between requests to a service that is behind
	// The history is not cleared again sooner than this: two services may answer in turn.
	clearEvery = 10 * time.Minute
)

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
	return loopResult(ctx, h.Logger, "transactions", r.retry.Do(ctx, r.follow))
}

// follow reads and writes until something fails. When it returns, no write is under way.
func (r *transactionsRun) follow(ctx context.Context) error {
	defer r.meter.Idle()
	defer r.drop()
	if err := r.begin(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if r.matchDue() {
			if err := r.begin(ctx); err != nil {
				return err
			}
		}
		if err := r.step(ctx); err != nil {
			return notReached(err)
		}
	}
	return nil
}

// matchDue reports whether it is time to ask the service again who it is.
func (r *transactionsRun) matchDue() bool { return time.Since(r.asked) >= transactionsMatchEvery }

// begin asks who the service is, and reads the stored position. It keeps nothing that was known before.
func (r *transactionsRun) begin(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	for {
		service, err := r.Source.Describe(ctx)
		if err != nil {
			return err
		}
		if r.Check != nil {
			if err := r.Check(ctx, service); err != nil {
				return err
			}
		}
		if !service.Backfilling {
			break
		}
		// A partial history can't be distinguished from a complete one, so wait until the service has all of it.
		r.await(ctx, "the service is still backfilling its own history")
		Sleep(ctx, backfillingEvery)
	}
	at, known, err := r.Sink.TransactionsPosition(ctx)
	if err != nil {
		return err
	}
	r.asked = time.Now()
	r.readOnFrom(at, known)
	if r.Watch.Resumed != nil {
		r.Watch.Resumed(at)
	}
	if !r.goal.known && (r.UntilCurrent || at.Rereading) {
		return r.aim(ctx)
	}
	return nil
}

// readOnFrom starts reading at a position, after the last known records.
func (r *transactionsRun) readOnFrom(at ledger.TransactionsPosition, known []ledger.TransactionsMark) {
	r.at, r.fresh, r.again = at, true, false
	r.pages = NewTransactionPages(r.Source, r.Logger, known, at.LastSeq == int64(len(known)))
}

// step reads once and handles the result.
func (r *transactionsRun) step(ctx context.Context) error {
	if len(r.pages.known) >= mostKnown && r.pages.Cursor() == "" {
		return &ledger.Problem{
			What: fmt.Sprintf("the last %d records of the transaction history share their event ids with others, so there is "+
				"none after which it could be read on", len(r.pages.known)),
			Do: "read from another service (--scan-url), in whose order such records do not stand together",
		}
	}
	records, err := r.pages.Next(ctx)
	if err == nil && len(records) > 0 {
		r.fresh, r.again = false, false
		if err := r.write(ctx, records); err != nil {
			return err
		}
		return r.passed(ctx)
	}
	if failed := r.settle(ctx); failed != nil {
		err = failed
	}
	if err == nil {
		err = r.nothingNew(ctx)
	}
	if misfit, ok := errors.AsType[*TransactionsMisfit](err); ok {
		return r.misfits(ctx, misfit)
	}
	return err
}

// passed handles the goal when it was passed. A page without new records may never come from a busy service, so it is
// not what ends reading again, or UntilCurrent.
func (r *transactionsRun) passed(ctx context.Context) error {
	if !r.goal.passed || !r.UntilCurrent && !r.at.Rereading {
		return nil
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.complete(ctx); err != nil {
		return err
	}
	if r.UntilCurrent {
		return errReached
	}
	return nil
}

// nothingNew asks for the newest records, because pages do not prove that there are no more.
func (r *transactionsRun) nothingNew(ctx context.Context) error {
	end, newest, err := r.pages.AtEnd(ctx, transactionsEndDepth)
	switch {
	case err != nil:
		return err
	case end && r.at.Rereading && r.at.LastSeq == 0: // it had records
		return r.behind(ctx)
	case end:
		return r.current(ctx)
	case !r.again: // perhaps a record came between the two requests
		r.again = true
		return nil
	case len(newest) == 0:
		return &TransactionsMisfit{What: "the service has no records any more", Short: true}
	}
	return &TransactionsMisfit{What: fmt.Sprintf("the service serves nothing after the last stored record, but its "+
		"newest is %q; or it serves fewer records in a page than share an event id", newest[0].EventID), Short: true}
}

// current is called when the history was read to its end. It waits for more.
func (r *transactionsRun) current(ctx context.Context) error {
	if err := r.complete(ctx); err != nil {
		return err
	}
	r.fresh, r.again = false, false
	r.answered(ctx)
	r.meter.Idle()
	if !r.caughtUp {
		r.caughtUp = true
		r.Logger.InfoContext(ctx, "caught up", "stream", "transactions", "last_seq", r.at.LastSeq)
	}
	for {
		if r.Watch.Current != nil {
			r.Watch.Current()
		}
		if r.UntilCurrent {
			return errReached
		}
		Sleep(ctx, transactionsPollEvery*3/4+rand.N(transactionsPollEvery/2))
		if r.matchDue() {
			return nil
		}
		end, _, err := r.pages.AtEnd(ctx, transactionsPollDepth)
		if err != nil || !end {
			return err
		}
	}
}

// misfits handles a service whose records do not fit those that are stored.
func (r *transactionsRun) misfits(ctx context.Context, misfit *TransactionsMisfit) error {
	if !r.fresh {
		return r.begin(ctx)
	}
	newest, err := r.Source.NewestTransactions(ctx, transactionsEndDepth)
	if err != nil {
		return err
	}
	behind, err := r.pages.IsBehind(ctx, newest, r.Sink.StoredTransactions)
	switch {
	case err != nil:
		return err
	case behind || misfit.Short && len(newest) == 0:
		return r.behind(ctx)
	case misfit.Short:
		return misfit
	case !r.cleared.IsZero() && time.Since(r.cleared) < clearEvery:
		r.await(ctx, "the history must be read again once more, a while after the last time: "+misfit.What)
		Sleep(ctx, behindEvery)
		return r.begin(ctx)
	}
	return r.clear(ctx, misfit.What)
}

// behind waits for a service that is behind what is stored: another instance that lags, or one that lost its history
// and takes it in again.
func (r *transactionsRun) behind(ctx context.Context) error {
	why := "its history is empty, and records of it were stored"
	if n := len(r.pages.known); n > 0 {
		why = fmt.Sprintf("the newest stored record, %q, is not in its history yet", r.pages.known[n-1].Cursor)
	}
	r.await(ctx, "the service is behind: "+why)
	if r.UntilCurrent && !r.at.Rereading {
		return errReached // all that it shows is stored
	}
	Sleep(ctx, behindEvery)
	return r.begin(ctx)
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
	r.readOnFrom(at, nil)
	r.arrived(ctx)
	if r.Watch.Rereading != nil {
		r.Watch.Rereading(why)
	}
	if r.Watch.Committed != nil {
		r.Watch.Committed(at, 0)
	}
	return r.aim(ctx)
}

// complete notes that the end was reached after the history was cleared.
func (r *transactionsRun) complete(ctx context.Context) error {
	if !r.at.Rereading {
		return nil
	}
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
	return nil
}

// aim makes the newest record of the service the goal. It may be known already.
func (r *transactionsRun) aim(ctx context.Context) error {
	newest, err := r.Source.NewestTransactions(ctx, 1)
	if err != nil {
		return err
	}
	r.goal = transactionsTarget{known: true}
	if len(newest) > 0 {
		r.goal.any, r.goal.mark = true, ledger.TransactionsMark{Cursor: newest[0].Cursor(),
			Fingerprint: newest[0].Fingerprint()}
	}
	for _, mark := range r.pages.known {
		r.goal.pass(mark.Cursor, func() int64 { return mark.Fingerprint })
	}
	return nil
}
