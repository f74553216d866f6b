package audit

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/ledger"
)

// Records verifies the records that follow from the updates of a network against these, as they are stored. It asks no
// source.
type Records struct {
	Database *Stored
	Repairer *Repairer // nil: nothing is written
	Found    Found
	Progress func(Progress)
	Logger   *slog.Logger
}

// Run compares, and repairs if there is a Repairer. It passes each difference to Found. The result says what was
// compared, also if an error ended the comparison.
func (r *Records) Run(ctx context.Context) (result TransactionsResult, err error) {
	differences := int64(0)
	following, err := r.compare(ctx, func(d Difference) error {
		differences++
		return r.Found(d)
	})
	result.Records, result.Compared = following.Records, following.Records > 0
	if following.Outdated {
		result.Notes = append(result.Notes, "the records that follow from the updates, with the updates: the rules have "+
			"changed since, and `indexer run` has not derived them again yet")
	}
	if following.Kept > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("the first %d records, with the updates that they follow from: "+
			"these were pruned", following.Kept))
	}
	if err != nil || r.Repairer == nil || differences == 0 {
		return result, err
	}
	err = retryRepair(ctx, r.Logger, func() error {
		return r.Repairer.DeriveAgain(ctx, func(at ledger.Offset) {
			r.Progress(Progress{Step: "deriving the records again", Done: int64(at)})
		})
	})
	if err == nil {
		_, err = r.compare(ctx, func(d Difference) error {
			result.Remaining++
			logRemaining(ctx, r.Logger, d)
			return nil
		})
	}
	if err != nil {
		return result, fmt.Errorf("repair: %w", err)
	}
	result.Repaired++
	return result, nil
}

func (r *Records) compare(ctx context.Context, found Found) (following Following, err error) {
	step := func(what string) { r.Progress(Progress{Step: what}) }
	if err := r.Database.ComparePosition(ctx, step, found); err != nil {
		return following, err
	}
	following, err = r.Database.CompareFollowing(ctx, func(at ledger.Offset) {
		r.Progress(Progress{Step: "records that follow from the updates", Done: int64(at)})
	}, found)
	if err != nil {
		return following, err
	}
	return following, r.Database.CompareBalances(ctx, step, found)
}
