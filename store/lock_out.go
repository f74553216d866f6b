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

// How long whoever changes tables waits for locks, and lets others wait.
const (
	// lockPatience limits how long a statement that locks out writers waits for its lock. They queue behind it meanwhile.
	lockPatience = time.Second
	lockTries    = 60
	// readersWait limits how long readers wait at a time. It is less than deadlock_timeout (1 s by default), so that no
	// deadlock with a reader that holds one lock and asks for another is detected, which would end its query.
	readersWait = 500 * time.Millisecond
)

// lockOut locks everybody out of tables, whose names are quoted, until the transaction ends. It locks all of them
// before anything else, because a reader that waits for one may hold another.
func lockOut(ctx context.Context, tx pgx.Tx, tables []string) error {
	if err := pg.WaitAtMost(ctx, tx, readersWait); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "LOCK TABLE ONLY "+strings.Join(tables, ", ONLY ")+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return fmt.Errorf("wait for readers: %w", err)
	}
	return nil
}

// patiently calls change again while it fails to get a lock, after a pause that lets readers and writers pass. After
// lockTries tries the error is a *ledger.Problem.
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
