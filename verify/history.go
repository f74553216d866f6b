package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ledgerindexer/ledger"
)

// History verifies the stored transaction history: with itself, and, record by record, with all that a service shows of
// it up to where it was read. It may run beside the daemon and while both move on.
//
// A record is recognised by its event id and fingerprint, as often as it is stored, and so in any order. Where most records
// stand in the order of their seqs, the service's order is held to be the stored one: then a record that is not
// recognised is the one that is stored in its place, and one that stands elsewhere is out of order.
type History struct {
	Source   HistorySource // nil: the history is only compared with itself
	Database HistoryDatabase
	Repairer HistoryRepairer // nil: nothing is written
	Found    Found
	Progress func(Progress)
	Logger   *slog.Logger

	result    HistoryResult
	networkID string          // of the service; empty: it does not tell
	told      map[string]bool // differences that the comparison of the history with itself found
}

// mostTold is how many of them are remembered, so that the comparison with the service does not tell them again.
const mostTold = 10_000

// HistoryResult is what was compared.
type HistoryResult struct {
	Records   int64    // that the service showed and that are stored
	Repaired  int64    // how often something was written again
	Remaining int64    // differences that are still there after they were to be repaired
	Notes     []string // what was not compared, and why
}

// Run compares, and repairs where there is a Repairer. Differences are told to Found as they are found; the result says
// what was compared, also where an error ended it.
//
// Errors: ledger.ErrNotOffered where the service has no history; all else was compared then. A *ledger.Problem where the
// service is another network's, or where what differs is too much to be repaired.
func (h *History) Run(ctx context.Context) (HistoryResult, error) {
	err := h.run(ctx)
	return h.result, err
}

func (h *History) run(ctx context.Context) error {
	usable, err := h.ask(ctx)
	if err != nil {
		return err
	}
	if err := h.position(ctx); err != nil {
		return err
	}
	var notOffered error
	if usable {
		err := h.read(ctx)
		if errors.Is(err, ledger.ErrNotOffered) {
			notOffered, err = err, nil
		}
		if err != nil {
			return err
		}
	}
	if h.Repairer != nil { // what is claimed follows from the records
		if err := h.settle(ctx); err != nil {
			return err
		}
	}
	err = h.compared(ctx, func(found Found) error {
		return h.Database.CompareBalances(ctx, h.step, found)
	}, func() error { return h.Repairer.RepairBalances(ctx, h.step) })
	if err != nil {
		return err
	}
	return notOffered
}

// ask asks who the service is. usable is false where it can't be compared with.
func (h *History) ask(ctx context.Context) (usable bool, err error) {
	if h.Source == nil {
		return false, nil
	}
	var service ledger.HistoryService
	err = Patiently(ctx, h.Logger, func() (err error) {
		service, err = h.Source.Describe(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	h.networkID = service.NetworkID
	if service.Backfilling {
		h.note("the transaction history: the service is still backfilling its own")
		return false, nil
	}
	return true, nil
}

// position compares what is claimed of the history with its records.
func (h *History) position(ctx context.Context) error {
	h.told = map[string]bool{}
	differs := false
	err := h.Database.ComparePosition(ctx, h.step, func(d ledger.Difference) error {
		differs = true
		if len(h.told) < mostTold {
			h.told[nameOf(d)] = true
		}
		return h.Found(d)
	})
	if err != nil || !differs || h.Repairer == nil {
		return err
	}
	return h.repair(ctx, func() error { return h.Repairer.RepairPosition(ctx, h.step) })
}

// nameOf is a difference as both comparisons name it.
func nameOf(d ledger.Difference) string {
	d.Derived = false
	return d.String()
}

// tell tells of a difference from the service.
func (h *History) tell(d ledger.Difference) error {
	if h.told[nameOf(d)] {
		return nil
	}
	return h.Found(d)
}

// settle makes what is claimed of the history follow from records that were repaired. What differs was told before.
func (h *History) settle(ctx context.Context) error {
	differs := false
	err := h.Database.ComparePosition(ctx, h.step, func(ledger.Difference) error { differs = true; return nil })
	if err != nil || !differs {
		return err
	}
	if err := h.repair(ctx, func() error { return h.Repairer.RepairPosition(ctx, h.step) }); err != nil {
		return err
	}
	return h.Database.ComparePosition(ctx, h.step, func(d ledger.Difference) error { return h.remains(ctx, d) })
}

// compared compares, and repairs what differs and compares again.
func (h *History) compared(ctx context.Context, compare func(Found) error, repair func() error) error {
	differs := false
	err := compare(func(d ledger.Difference) error {
		differs = true
		return h.Found(d)
	})
	if err != nil || !differs || h.Repairer == nil {
		return err
	}
	if err := h.repair(ctx, repair); err != nil {
		return err
	}
	return compare(func(d ledger.Difference) error { return h.remains(ctx, d) })
}

func (h *History) repair(ctx context.Context, repair func() error) error {
	return h.repairOnce(repairPatiently(ctx, h.Logger, repair))
}

// repairOnce notes a repair that must not be tried twice.
func (h *History) repairOnce(err error) error {
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	h.result.Repaired++
	return nil
}

// remains counts what was to be repaired and is still there.
func (h *History) remains(ctx context.Context, d ledger.Difference) error {
	h.result.Remaining++
	h.Logger.WarnContext(ctx, "still different after it was repaired", "difference", d.String())
	return nil
}

func (h *History) step(what string) { h.Progress(Progress{Step: what}) }

func (h *History) note(format string, args ...any) {
	h.result.Notes = append(h.result.Notes, fmt.Sprintf(format, args...))
}
