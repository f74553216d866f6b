package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ForgetLifetimes makes the computing of the lifetimes of filled history begin again, if it is under way, because rows
// after an offset change: what was computed is removed. The process that fills in history waits for the end of the
// transaction before its next step, which then fails.
func ForgetLifetimes(ctx context.Context, tx pgx.Tx, after int64) error {
	forgotten, err := queries.FillLifetimesForget(ctx, tx, after)
	if err == nil && forgotten > 0 { // in a statement of its own, which sees what the one before has waited for
		err = queries.FillLifetimesDrop(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("have the lifetimes of filled history computed again: %w", err)
	}
	return nil
}
