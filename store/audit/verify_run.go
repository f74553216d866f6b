package audit

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
)

// Run compares, and repairs if there is a Repairer. The result says what was compared, also if an error ended the
// comparison.
func (u *Updates) Run(ctx context.Context) (UpdatesResult, error) {
	u.Source = &inRanges{UpdateSource: u.Source, logger: u.Logger}
	err := u.run(ctx)
	if now, asked := u.Database.Extent(ctx); asked == nil && now.Watermark < u.result.Watermark {
		reset := fmt.Errorf("the database was reset to offset %d while it was verified, and what it lost seemed to be "+
			"missing: verify again", now.Watermark)
		err = errors.Join(reset, err)
	}
	changed := u.Database.refuseChangedScope(ctx, u.Database.db.Pool, u.Scope)
	if errors.Is(changed, errScopeChanged) && !errors.Is(err, errScopeChanged) {
		err = errors.Join(changed, err)
	}
	return u.result, err
}

func (u *Updates) run(ctx context.Context) error {
	if err := u.ask(ctx); err != nil {
		return err
	}
	u.changes = u.Source.Changes()
	if err := u.checkFork(ctx, maxOffset, false); err != nil {
		return err
	}
	holes, certain, err := u.coverage(ctx)
	if err != nil {
		return err
	}
	if u.result.Extent, err = indexed(ctx, u.Database.Store); err != nil {
		return err
	}
	if certain {
		if err := u.checkFork(ctx, u.result.Watermark, true); err != nil {
			return err
		}
	}
	for _, hole := range holes {
		served := u.stillServed("updates that are not covered,", hole)
		if lost := (ledger.Range{From: hole.From, To: min(served.From, hole.To)}); lost.From < lost.To && u.Repairer != nil {
			u.leaves(uncovered(lost))
		}
		if err := u.readRange(ctx, "offsets that are not covered", served, true); err != nil {
			return err
		}
	}
	if err := u.selected(ctx); err != nil {
		return err
	}
	if u.Selection.All {
		if err := u.carried(ctx); err != nil {
			return err
		}
	}
	if err := u.derived(ctx); err != nil {
		return err
	}
	if u.Selection.All {
		if err := u.lookups(ctx); err != nil {
			return err
		}
	}
	return u.active(ctx)
}

// ask asks the participant which offsets it serves. It reads the watermark first: if that is beyond the ledger's end,
// no daemon has moved it meanwhile.
func (u *Updates) ask(ctx context.Context) error {
	claimed, err := u.Database.Extent(ctx)
	if err != nil {
		u.Logger.WarnContext(ctx, "the recorded floors and watermark can't be read", "error", err)
	}
	served, err := withRetry(ctx, u.Logger, func() (ingest.Served, error) { return ingest.AskServed(ctx, u.Source) })
	u.end, u.pruned = served.End, served.Pruned
	if claimed.Started && u.end != nil && *u.end < claimed.Watermark {
		u.beyond = u.end
	}
	return err
}

// coverage compares the watermark with the ledger's end, and looks for holes. certain says that the watermark is right
// now, and that no update may be missing below it.
func (u *Updates) coverage(ctx context.Context) (holes []ledger.Range, certain bool, err error) {
	u.begin("coverage, checkpoint and floors")
	differences, err := u.compared(ctx, func(found Found) (err error) {
		holes, err = u.Database.CompareCoverage(ctx, u.beyond, found)
		return err
	}, func() error { return u.Repairer.RepairCoverage(ctx, u.beyond) })
	return holes, len(holes) == 0 && (differences == 0 || u.Repairer != nil), err
}
