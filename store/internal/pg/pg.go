// Package pg is what every part of the store needs of PostgreSQL: codes of errors, reading rows, ends of transactions
// and connections, and waiting.
package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that mean something to the store.
const (
	UniqueViolation       = "23505"
	ExclusionViolation    = "23P01"
	SerializationFailure  = "40001"
	LockNotAvailable      = "55P03"
	ReadOnly              = "25006"
	DeadlockDetected      = "40P01"
	DuplicateSchema       = "42P06"
	DuplicateTable        = "42P07" // or index
	DependentObjects      = "2BP01"
	InsufficientPrivilege = "42501"
	InvalidParameterValue = "22023"
)

// HasCode reports whether the server refused with one of these codes.
func HasCode(err error, codes ...string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains(codes, pgErr.Code)
}

// IsError reports whether the server refused, or did not answer to the end.
func IsError(err error) bool {
	var refused *pgconn.PgError
	var unreached *pgconn.ConnectError
	var broken net.Error
	return errors.As(err, &refused) || errors.As(err, &unreached) || errors.As(err, &broken) ||
		errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// Wrap says in an error what was being done; nil stays nil. A function that defers it says so in all of its errors.
func Wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// Rollback ends a transaction that was not committed, even where ctx has been cancelled. After a commit it does
// nothing. Its error is of no use: the connection is discarded, and the server rolls back.
func Rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// Close ends a connection, even where ctx has been cancelled.
func Close(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing is lost with it
}

// Queryer is a pool, a connection or a transaction.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Column returns the values of a query with one column.
func Column[T any](ctx context.Context, db Queryer, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// Pool is a pool, or a connection that is in no transaction.
type Pool interface {
	Queryer
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Analyze renews the planner's statistics of those of the tables that have some: they hold values of rows that are
// gone. A table with partitions has its own only where somebody asked for them, and nothing else renews these.
func Analyze(ctx context.Context, db Pool, schema string, tables []string) error {
	names, err := Column[string](ctx, db, "SELECT DISTINCT tablename::text FROM pg_catalog.pg_stats WHERE schemaname = "+
		"$1 AND tablename = ANY ($2::text[])", schema, tables)
	if err != nil {
		return fmt.Errorf("read which statistics there are: %w", err)
	}
	for _, name := range names {
		if _, err := db.Exec(ctx, "ANALYZE "+name); err != nil {
			return fmt.Errorf("ANALYZE %s: %w", name, err)
		}
	}
	return nil
}

// Each reads the rows of a query one after the other: it stores the columns of one in the variables that into points
// to, and calls row.
func Each(ctx context.Context, db Queryer, sql string, args, into []any, row func() error) error {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, row)
	return err
}

// WaitAtMost limits how long the later statements of a transaction wait for a lock.
func WaitAtMost(ctx context.Context, tx pgx.Tx, limit time.Duration) error {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", limit.Milliseconds())); err != nil {
		return fmt.Errorf("set lock_timeout: %w", err)
	}
	return nil
}

// Wait waits for a time, or until the context ends, whose error it returns.
func Wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
