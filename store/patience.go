package store

import (
	"context"
	"fmt"
	"time"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
)

const (
	// lockPatience is how long a statement that stops writers or readers waits for its lock: while it waits they wait behind it.
	lockPatience = time.Second
	lockTries    = 60
)

// patiently calls change again, after a pause in which readers and writers pass, while it fails because a lock can't be had. The error is
// a *ledger.Problem after lockTries tries.
func patiently(ctx context.Context, pause time.Duration, change func() error) error {
	for try := 1; ; try++ {
		err := change()
		if !pg.HasCode(err, pg.LockNotAvailable, pg.DeadlockDetected) {
			return err
		}
		if try == lockTries {
			return &ledger.Problem{
				What: fmt.Sprintf("other transactions kept the table locked at each of %d tries", lockTries),
				Do:   "see in pg_stat_activity which are open for so long, and repeat the command", Err: err,
			}
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// wait waits for a time, or until the context ends, whose error it returns.
func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
