package session

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/pg"
)

// Lock is an empty view in the schema of the tables that exists to be locked. Locking it needs the right to write to
// it, so a reader can't block anybody, as it could with an advisory lock. It is a view and no table, because vacuum
// would wait for the lock of a table.
type Lock string

const (
	// LockLists is held while lists of parties are added: a lock of their table would interrupt autovacuum again and
	// again.
	LockLists Lock = "turn_lists"
	// LockSchema is held while schemas are migrated or changed, or rights. It is made with the schema, before the first
	// migration.
	LockSchema Lock = "turn_schema"
	// LockIndexes is held while indexes of fields are made or dropped.
	LockIndexes Lock = "turn_indexes"
)

// Lead returns the lock of the process that has the lease.
func (r Lease) Lead() Lock { return Lock("lead_" + string(r)) }

// Turn returns the lock that writers of the lease share, and that a repair of what they write takes alone.
func (r Lease) Turn() Lock { return Lock("turn_" + string(r)) }

// Alone returns the statement that waits for the lock, and holds it until the transaction ends.
func (l Lock) Alone() string { return "LOCK TABLE " + string(l) + " IN EXCLUSIVE MODE" }

// seen returns a transaction that makes the session read the catalog entries that Alone needs. It waits for no holder
// of the lock.
func (l Lock) seen() string {
	return "BEGIN; LOCK TABLE " + string(l) + " IN ACCESS SHARE MODE; COMMIT"
}

// Shared is like Alone, for a lock that others may share.
func (l Lock) Shared() string { return "LOCK TABLE " + string(l) + " IN SHARE MODE" }

// TryHold takes a lock and returns the transaction that holds it. The server ends the session after it was idle for the
// given time; 0: never. The transaction has neither a snapshot nor an id, so vacuum and CREATE INDEX CONCURRENTLY don't
// wait for it however long it stays open. ok is false if another session has the lock.
func TryHold(ctx context.Context, db interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}, lock Lock, idle time.Duration) (tx pgx.Tx, ok bool, err error) {
	// Reading the catalog takes a snapshot for a moment. CREATE INDEX CONCURRENTLY in that moment would wait for the end
	// of the transaction, which holds the lock for long. So the catalog is read in a transaction before. SET takes no
	// snapshot, as a query would.
	begin := lock.seen() + "; BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = " +
		strconv.FormatInt(idle.Milliseconds(), 10)
	if tx, err = db.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin}); err != nil {
		return nil, false, fmt.Errorf("begin the transaction that holds lock %s: %w", lock, err)
	}
	version, _, _ := strings.Cut(tx.Conn().PgConn().ParameterStatus("server_version"), ".")
	if major, parseErr := strconv.Atoi(version); parseErr == nil && major >= 17 {
		_, err = tx.Exec(ctx, "SET LOCAL transaction_timeout = 0")
	}
	if err == nil {
		_, err = tx.Exec(ctx, lock.Alone()+" NOWAIT")
	}
	if err == nil {
		return tx, true, nil
	}
	pg.Rollback(ctx, tx)
	if pg.HasCode(err, pg.LockNotAvailable) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("take lock %s: %w", lock, err)
}

const (
	// holdPause is the time between two tries of Hold.
	holdPause = 100 * time.Millisecond
	// holdLogged is the number of tries after which Hold logs which session it waits for.
	holdLogged = 50
)

// Hold tries to take a lock, at most tries times; 0: without end. After some tries it logs which session holds the
// lock. Its own session may be idle without limit. Hold does not wait within a statement: a holder that builds an index
// could wait for the statement's snapshot.
func (d *Database) Hold(ctx context.Context, lock Lock, tries int) (tx pgx.Tx, ok bool, err error) {
	for try := 1; ; try++ {
		if tx, ok, err = TryHold(ctx, d.Pool, lock, 0); ok || err != nil || try == tries {
			return tx, ok, err
		}
		if try == holdLogged {
			if err := d.sayHolders(ctx, lock); err != nil {
				return nil, false, err
			}
		}
		if err := pg.Wait(ctx, holdPause); err != nil {
			return nil, false, fmt.Errorf("wait for lock %s: %w", lock, err)
		}
	}
}

// sayHolders logs which sessions have a lock.
func (d *Database) sayHolders(ctx context.Context, lock Lock) (err error) {
	defer pg.Wrap(&err, "look who has lock %s", lock)
	holders, err := queries.LockHolders(ctx, d.Pool, string(lock))
	for _, holder := range holders {
		d.Config.Logger.InfoContext(ctx, "waiting for another session that has a lock; if its program is gone or hangs, "+
			"end it with pg_terminate_backend",
			"lock", string(lock), "pid", holder.Pid, "application_name", holder.ApplicationName)
	}
	return err
}

// Keep holds the lock of a transaction until the context ends, which frees it, or until the session is lost, and
// returns why. It shows the server that the session is used, every so often, and calls each, if that is not nil.
func Keep(ctx context.Context, lock pgx.Tx, every time.Duration, each func()) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			// A rollback frees the lock at once. The server would notice only later that the connection has ended.
			pg.Rollback(ctx, lock)
			return context.Cause(ctx)
		case <-ticker.C:
		}
		// The end of the context does not cancel a ping: that would close the connection. A longer timeout, for the sake of a
		// long transaction such as pruning, would gain two seconds only: then the server ends the idle session itself.
		ping, cancel := context.WithTimeout(context.WithoutCancel(ctx), PingTimeout)
		err := lock.Conn().Ping(ping) // takes no snapshot
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case each != nil:
			each()
		}
	}
}
