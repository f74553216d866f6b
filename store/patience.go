package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
)

const (
	// lockPatience is how long a statement that stops writers waits for its lock: while it waits they wait behind it.
	lockPatience = time.Second
	lockTries    = 60
	// readersWait is how long the readers may wait at a time. It is less than deadlock_timeout (1 s by default): so where a reader
	// that has a lock asks for another one, no deadlock is found that would end his query.
	readersWait = 500 * time.Millisecond
)

// lockOut keeps everybody from tables, which are quoted, until the transaction ends. It gets all of them before anything is done that takes
// time, or fails: a reader that waits for one of them may keep another.
func lockOut(ctx context.Context, tx pgx.Tx, tables []string) error {
	if err := pg.WaitAtMost(ctx, tx, readersWait); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE ONLY "+strings.Join(tables, ", ONLY ")+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return fmt.Errorf("wait for readers: %w", err)
	}
	return nil
}

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
		if err := pg.Wait(ctx, pause); err != nil {
			return err
		}
	}
}
