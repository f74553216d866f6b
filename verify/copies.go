package verify

import (
	"context"
	"fmt"
	"log/slog"

	"ledgerindexer/findings"
)

// Copies compares the rows that the database keeps twice with their copies: floors, scopes, positions and the like, and
// the dictionaries. All other comparisons rely on these rows, so it runs first.
type Copies struct {
	Database CopiesDatabase
	Repairer CopiesRepairer // nil: nothing is written
	Found    Found
	Progress func(Progress)
	Logger   *slog.Logger
}

// CopiesDatabase is a database with rows that are kept twice.
type CopiesDatabase interface {
	// CompareCopies compares each row with its copy, and both with their digests.
	CompareCopies(ctx context.Context, found Found) error
}

// CopiesRepairer writes again what differs.
type CopiesRepairer interface {
	// RepairCopies copies the row that is right over the one that was damaged. It may be repeated.
	RepairCopies(ctx context.Context) error
}

// Run compares, and repairs where there is a Repairer. remaining is how many differences are left then.
func (c *Copies) Run(ctx context.Context) (remaining int64, err error) {
	c.Progress(Progress{Step: "what is kept twice, with its copies"})
	differences := 0
	err = c.Database.CompareCopies(ctx, func(d findings.Difference) error {
		differences++
		return c.Found(d)
	})
	if err != nil || differences == 0 || c.Repairer == nil {
		return 0, err
	}
	if err := repairPatiently(ctx, c.Logger, func() error { return c.Repairer.RepairCopies(ctx) }); err != nil {
		return 0, fmt.Errorf("repair: %w", err)
	}
	err = c.Database.CompareCopies(ctx, func(d findings.Difference) error {
		remaining++
		logRemaining(ctx, c.Logger, d)
		return nil
	})
	return remaining, err
}
