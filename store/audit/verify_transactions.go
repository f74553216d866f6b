package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// Transactions verifies the stored transaction history: its tables with one another, and the n-th record with the n-th
// record of the service. It may run beside the daemon, while both grow. A repair clears the history and reads all of it
// again.
type Transactions struct {
	Source   ingest.TransactionsSource // nil: only the tables are compared with one another
	Database *Stored
	Repairer *Repairer // nil: nothing is written
	Found    Found
	Progress func(Progress)
	Logger   *slog.Logger

	result    TransactionsResult
	networkID string          // of the service; empty: it does not report it
	usable    bool            // the service's history can be compared
	lacking   bool            // the service has fewer records than are stored
	reported  map[string]bool // differences that the comparison of the tables with one another found
}

const (
	// mostReported is how many of them are remembered, so that the comparison with the service does not report them again.
	mostReported = 10_000
	// A page with at least this many records, all of which differ, means that the service has another order.
	leastOfAnother = 5
)

// TransactionsResult is what was compared. Its JSON form is for scripts.
type TransactionsResult struct {
	Records   int64    `json:"records"` // that the service showed and that are stored
	Repaired  int64    `json:"repairs"` // how often something was written again
	Remaining int64    `json:"-"`       // differences that a repair has left
	Notes     []string `json:"-"`       // what was not compared, and why
	Compared  bool     `json:"-"`       // at least one answer of the service was compared, an empty one included
}

// Run compares, and repairs if there is a Repairer. It passes each difference to Found. The result says what was
// compared, also if an error ended the comparison.
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
	var inRecords, inBalances int64
	notOffered, err := h.compare(ctx, h.counted(&inRecords))
	if err == nil {
		err = h.Database.CompareBalances(ctx, h.step, h.counted(&inBalances))
	}
	if err != nil || h.Repairer == nil || inRecords+inBalances == 0 {
		return errors.Join(err, notOffered)
	}
	remains := func(d Difference) error { return h.countRemaining(ctx, d) }
	switch {
	case inRecords > 0 && (!h.usable || notOffered != nil):
		h.result.Remaining += inRecords + inBalances
		h.note("the transaction history was not repaired: that takes a service of it that can be read (--scan-url)")
		return notOffered
	case inRecords > 0 && h.lacking:
		return &ledger.Problem{
			What: "the service of the transaction history has fewer records than are stored, so that repairing from it would " +
				"lose some",
			Do: "repair with a Scan that has all of them (--scan-url), or wait until this one has; where they are really " +
				"gone, `indexer run` notices",
		}
	case inRecords > 0: // reading the records again computes the balances again too
		if err = h.readAgain(ctx); err == nil {
			_, err = h.compare(ctx, remains)
		}
	default:
		err = retryRepair(ctx, h.Logger, func() error { return h.Repairer.RepairBalances(ctx, h.step) })
	}
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	h.result.Repaired++
	return errors.Join(h.Database.CompareBalances(ctx, h.step, remains), notOffered)
}

// counted passes differences to Found, and counts them.
func (h *Transactions) counted(n *int64) Found {
	return func(d Difference) error {
		*n++
		return h.Found(d)
	}
}

func (h *Transactions) ask(ctx context.Context) error {
	if h.Source == nil {
		return nil
	}
	service, err := withRetry(ctx, h.Logger,
		func() (ledger.TransactionsService, error) {
			return h.Source.Describe(ctx)
		})
	if err != nil {
		return err
	}
	h.networkID, h.usable = service.NetworkID, !service.Backfilling
	if service.Backfilling {
		h.note("the transaction history: the service is still backfilling its own")
	}
	return nil
}

// compare compares the tables with one another, and with the service.
func (h *Transactions) compare(ctx context.Context, found Found) (notOffered, err error) {
	h.reported, h.result.Records = map[string]bool{}, 0
	err = h.Database.ComparePosition(ctx, h.step, func(d Difference) error {
		if len(h.reported) < mostReported {
			h.reported[nameOf(d)] = true
		}
		return found(d)
	})
	if err != nil || !h.usable {
		return nil, err
	}
	err = h.read(ctx, func(d Difference) error {
		if h.reported[nameOf(d)] {
			return nil
		}
		return found(d)
	})
	if errors.Is(err, ledger.ErrNotOffered) {
		return err, nil
	}
	return nil, err
}

// nameOf names a difference in the same way for both comparisons.
func nameOf(d Difference) string {
	d.Derived = false
	return d.String()
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
		h.note("the transaction history: it is being read again from its beginning")
		h.usable = false
		return nil
	}
	pages := ingest.NewTransactionPages(h.Source, h.Logger, nil, true)
	for at := int64(0); at < standing.LastSeq; {
		page, err := h.next(ctx, pages)
		if err != nil {
			return fmt.Errorf("read the transaction history again: %w", err)
		}
		h.result.Compared = true
		if len(page) == 0 {
			h.lacking = true
			h.note("the transaction history: the service has no records beyond the %d-th", at)
			return h.lacks(at, standing.LastSeq, found)
		}
		page = page[:min(int64(len(page)), standing.LastSeq-at)]
		other, err := h.comparePage(ctx, at, page, found)
		if err != nil {
			return err
		}
		if other {
			h.note("the transaction history behind its record %d: the service has it in another order", at)
			break
		}
		at += int64(len(page))
		h.Progress(Progress{Step: "transaction history", Done: h.result.Records, Of: standing.LastSeq})
	}
	now, _, err := h.Database.TransactionsStanding(ctx)
	if err == nil && (now.Rereading || now.LastSeq < standing.LastSeq) {
		err = errors.New("the daemon began to read the transaction history again while it was verified: verify again when " +
			"it is done")
	}
	return err
}

// next returns the next records; none at the end.
func (h *Transactions) next(ctx context.Context,
	pages *ingest.TransactionPages) (records []ledger.Transaction, err error) {
	err = Retry(ctx, h.Logger, func() error {
		for again := range 2 {
			var misfit *ingest.TransactionsMisfit
			if records, err = pages.Next(ctx); errors.As(err, &misfit) {
				return errTransactionsChanged
			}
			if err != nil || len(records) > 0 {
				return err
			}
			// A page without records is also the answer to a cursor that the service does not know any more.
			if end, _, err := pages.AtEnd(ctx, 1); err != nil || end {
				return err
			} else if again > 0 {
				return errTransactionsChanged
			}
		}
		return nil
	})
	return records, err
}

// comparePage compares records with what is stored after a seq. other reports that the service has another order.
func (h *Transactions) comparePage(ctx context.Context, after int64, records []ledger.Transaction,
	found Found) (other bool, err error) {
	others := 0
	err = h.Database.CompareRecords(ctx, after, records, func(d Difference) error {
		if d.Relation == "transactions" && d.Column == "event_id" {
			others++
		}
		return found(d)
	})
	h.result.Records += int64(len(records))
	return others == len(records) && others >= leastOfAnother, err
}

// lacks reports the records that the service does not have.
func (h *Transactions) lacks(after, to int64, found Found) error {
	for seq := after + 1; seq <= to; seq++ {
		if err := found(Difference{Kind: Extra, Relation: "transactions", Seq: seq}); err != nil {
			return err
		}
	}
	return nil
}

// readAgain clears the history, and reads it again.
func (h *Transactions) readAgain(ctx context.Context) error {
	h.step("reading the transaction history again")
	if err := retryRepair(ctx, h.Logger, func() error { return h.Repairer.RestartTransactions(ctx) }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tries := 0
	loop := ingest.Transactions{Source: h.Source, Sink: h.Repairer.History(), UntilCurrent: true, Logger: h.Logger,
		Watch: ingest.TransactionsWatch{
			Committed: func(at ledger.TransactionsPosition, _ int) {
				tries = 0
				h.Progress(Progress{Step: "reading the transaction history again", Done: at.LastSeq})
			},
			Retrying: func(err error, _ time.Duration) {
				if tries++; tries >= mostTries {
					cancel(err)
				}
			},
		}}
	if err := loop.Run(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (h *Transactions) countRemaining(ctx context.Context, d Difference) error {
	h.result.Remaining++
	logRemaining(ctx, h.Logger, d)
	return nil
}

func (h *Transactions) step(what string) { h.Progress(Progress{Step: what}) }

func (h *Transactions) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(h.result.Notes, note) { // a repair compares twice
		h.result.Notes = append(h.result.Notes, note)
	}
}
