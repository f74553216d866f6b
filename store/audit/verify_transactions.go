package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// Transactions verifies the stored transaction history: its tables with one another, and with what they were read, or
// derived, from. It may run beside the daemon, while both grow. A repair removes the records and writes all of them
// again.
type Transactions struct {
	*Verification
	// The n-th record is compared with the n-th of the service. nil: only the tables are compared with one another.
	Source ingest.TransactionsSource
	// The records follow from the stored updates of a network, and are compared with these. No source is asked.
	Derived bool

	result    TransactionsResult
	networkID string // of the service; empty: it does not report it
	usable    bool   // the service's history can be compared
	lacking   bool   // the service has fewer records than are stored

	most int // how often reading it again is tried, in tests; 0: mostTries
}

// A page with at least this many records, all of which differ, means that the service has another order.
const leastOfAnother = 5

// TransactionsResult is what was compared. Its JSON form is for scripts.
type TransactionsResult struct {
	Records  int64 `json:"records"` // that the service showed, or that follow from updates, and that are stored
	Repaired int64 `json:"repairs"` // how often something was written again
	Compared bool  `json:"-"`       // at least one answer of the service was compared, an empty one included
}

// Run compares, and repairs if there is a Repairer. The result says what was compared, also if an error ended the
// comparison.
//
// Errors: ledger.ErrNotOffered if the service has no history; everything else was compared then. A *ledger.Problem if
// the service belongs to another network, or can't be used for a repair.
func (h *Transactions) Run(ctx context.Context) (TransactionsResult, error) {
	err := h.run(ctx)
	return h.result, err
}

func (h *Transactions) run(ctx context.Context) error {
	if err := h.ask(ctx); err != nil {
		return err
	}
	differences := int64(0)
	found := func(d Difference) {
		differences++
		h.Found(d)
	}
	notOffered, err := h.compare(ctx, found)
	inRecords := differences
	if err == nil {
		err = h.Database.CompareBalances(ctx, h.begin, found)
	}
	if err != nil || h.Repairer == nil || differences == 0 {
		return errors.Join(err, notOffered)
	}
	repair := h.readAgain // computes the balances again too
	switch {
	case h.Derived:
		repair = h.deriveAgain
	case inRecords == 0:
		repair = h.repairBalances
	case !h.usable || notOffered != nil:
		h.Left += differences
		h.Note("the transaction history was not repaired: that takes a service of it that can be read (--scan-url)")
		return notOffered
	case h.lacking:
		return &ledger.Problem{
			What: "the service of the transaction history has fewer records than are stored, so that repairing from it would " +
				"lose some",
			Do: "repair with a Scan that has all of them (--scan-url), or wait until this one has; where they are really " +
				"gone, `indexer run` notices",
		}
	}
	if err := repair(ctx); err != nil {
		return err
	}
	h.result.Repaired++
	if h.Derived || inRecords > 0 {
		if _, err := h.compare(ctx, h.remains); err != nil {
			return err
		}
	}
	return errors.Join(h.Database.CompareBalances(ctx, h.begin, h.remains), notOffered)
}

func (h *Transactions) ask(ctx context.Context) error {
	if h.Source == nil {
		return nil
	}
	service, err := withRetry(ctx, h.Logger, func() (ledger.TransactionsService, error) { return h.Source.Describe(ctx) })
	if err != nil {
		return err
	}
	h.networkID, h.usable = service.NetworkID, !service.Backfilling
	if service.Backfilling {
		h.Note("the transaction history: the service is still backfilling its own")
	}
	return nil
}

// compare compares the tables with one another, and with the service, or with the updates that they follow from.
func (h *Transactions) compare(ctx context.Context, found Found) (notOffered, err error) {
	h.result.Records = 0
	if err := h.Database.ComparePosition(ctx, h.begin, found); err != nil {
		return nil, err
	}
	if h.Derived {
		return nil, h.following(ctx, found)
	}
	if !h.usable {
		return nil, nil
	}
	err = h.read(ctx, found)
	if errors.Is(err, ledger.ErrNotOffered) {
		return err, nil
	}
	return nil, err
}

// following compares the records with the updates that they follow from.
func (h *Transactions) following(ctx context.Context, found Found) error {
	step := func(at ledger.Offset) {
		h.Begin(Progress{Step: "records that follow from the updates", Done: int64(at)})
	}
	step(0)
	is, err := h.Database.CompareFollowing(ctx, step, found)
	h.result.Records, h.result.Compared = is.Records, is.Records > 0
	if is.Outdated {
		h.Note("the records that follow from the updates, with the updates: the rules have changed since, and `indexer " +
			"run` has not derived them again yet")
	}
	if is.Kept > 0 {
		h.Note("the first %d records, with the updates that they follow from: these were pruned", is.Kept)
	}
	return err
}

// read compares the records with the service's.
func (h *Transactions) read(ctx context.Context, found Found) error {
	standing, network, err := h.Database.TransactionsStanding(ctx)
	if err != nil {
		return err
	}
	if network != "" && h.networkID != "" && network != h.networkID {
		return &ledger.Problem{
			What: fmt.Sprintf("the database holds the transaction history of the network that %s operates, but the Scan URL "+
				"leads to the one that %s operates", network, h.networkID),
			Do: "correct --scan-url or --database-url",
		}
	}
	if standing.Rereading {
		h.Note("the transaction history: it is being read again from its beginning")
		h.usable = false
		return nil
	}
	h.begin("transaction history")
	pages := ingest.NewTransactionsPages(h.Source, nil, true)
	var last ledger.TransactionsMark // that was read
	for at := int64(0); at < standing.LastSeq; {
		page, err := h.next(ctx, pages, last)
		if err != nil {
			return fmt.Errorf("read the transaction history again: %w", err)
		}
		h.result.Compared = true
		if len(page) == 0 {
			h.lacking = true
			h.Note("the transaction history: the service has no records beyond the %d-th", at)
			extraRecords(at, standing.LastSeq, found)
			return nil
		}
		last = page[len(page)-1].Mark()
		page = page[:min(int64(len(page)), standing.LastSeq-at)]
		other, err := h.comparePage(ctx, at, page, found)
		if err != nil {
			return err
		}
		if other {
			h.Note("the transaction history behind its record %d: the service has it in another order", at)
			break
		}
		at += int64(len(page))
		h.Begin(Progress{Step: "transaction history", Done: h.result.Records, Of: standing.LastSeq})
	}
	now, _, err := h.Database.TransactionsStanding(ctx)
	if err == nil && (now.Rereading || now.LastSeq < standing.LastSeq) {
		err = errors.New("the daemon began to read the transaction history again while it was verified: verify again when " +
			"it is done")
	}
	return err
}

// next returns the records after the last one that was read; none at the end. There is no reading on after a page of
// records that share an event id: such a page is not the end where the service's newest record is another one.
func (h *Transactions) next(ctx context.Context, pages *ingest.TransactionsPages,
	last ledger.TransactionsMark) ([]ledger.Record, error) {
	for again := false; ; again = true { // more may come meanwhile
		records, err := withRetry(ctx, h.Logger, func() ([]ledger.Record, error) {
			records, err := pages.Next(ctx)
			if misfit, ok := errors.AsType[*ingest.TransactionsMisfit](err); ok && !misfit.Short {
				err = errTransactionsChanged
			}
			return records, err
		})
		if err != nil || len(records) > 0 {
			return records, err
		}
		newest, err := withRetry(ctx, h.Logger, func() ([]ledger.Record, error) {
			return h.Source.NewestTransactions(ctx, 1)
		})
		switch {
		case err != nil || len(newest) == 0 || last.Is(&newest[0]):
			return nil, err
		case again:
			return nil, &ledger.Problem{
				What: fmt.Sprintf("the service serves nothing after event id %q, but its newest is %q; or it serves fewer "+
					"records in a page than share an event id", last.EventID, newest[0].EventID),
				Do: "verify again, or with another service (--scan-url)",
			}
		}
	}
}

// comparePage compares records with what is stored after a seq. other reports that the service has another order.
func (h *Transactions) comparePage(ctx context.Context, after int64, records []ledger.Record,
	found Found) (other bool, err error) {
	others := 0
	err = h.Database.CompareRecords(ctx, after, records, func(d Difference) {
		if d.Relation == "transactions" && d.Column == "event_id" {
			others++
		}
		found(d)
	})
	h.result.Records += int64(len(records))
	return others == len(records) && others >= leastOfAnother, err
}

func (h *Transactions) deriveAgain(ctx context.Context) error {
	step := func(at ledger.Offset) { h.Begin(Progress{Step: "deriving the records again", Done: int64(at)}) }
	return h.repair(ctx, func() error { return h.Repairer.DeriveAgain(ctx, step) })
}

func (h *Transactions) repairBalances(ctx context.Context) error {
	return h.repair(ctx, func() error { return h.Repairer.RepairBalances(ctx, h.begin) })
}

// readAgain clears the history, and reads it again.
func (h *Transactions) readAgain(ctx context.Context) error {
	const step = "reading the transaction history again"
	h.begin(step)
	if err := h.repair(ctx, func() error { return h.Repairer.RestartTransactions(ctx) }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tries := 0
	loop := ingest.Transactions{Source: h.Source, Sink: h.Repairer.History(), UntilCurrent: true, Logger: h.Logger,
		Watch: ingest.TransactionsWatch{
			Committed: func(at ledger.TransactionsPosition, _ int) {
				tries = 0
				h.Begin(Progress{Step: step, Done: at.LastSeq})
			},
			Retrying: func(err error, _ time.Duration) {
				if tries++; tries >= cmp.Or(h.most, mostTries) {
					cancel(unreadable(err))
				}
			},
		}}
	if err := cmp.Or(loop.Run(ctx), context.Cause(ctx)); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

// unreadable is the error for a history that was cleared and can't be read again.
func unreadable(err error) error {
	return &ledger.Problem{
		What: "the transaction history was cleared, to be read again, and that can't be done yet", Err: err,
		Do: "let `indexer run` read it when it can be, and verify again then",
	}
}
