package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// leftoverBlocks is how many blocks of a table, of 8 KiB by default, are cleared in one transaction: some 100,000 rows.
const leftoverBlocks = 1_000

// BeginGeneration begins to read the transaction history from its beginning, because the service's order is not the
// stored one. What is shown stays shown. A generation that was begun before and is not shown is given up. Records that
// can't be derived again are carried into it: those of updates that were pruned.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) BeginGeneration(ctx context.Context,
	at ledger.TransactionsPosition) (ledger.TransactionsPosition, error) {
	next := at
	err := l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) (err error) {
		next, err = l.beginGeneration(ctx, tx, at)
		return err
	})
	if err != nil {
		return at, fmt.Errorf("begin to read the transaction history again: %w", session.Refused(err))
	}
	return next, nil
}

func (l *TransactionsWriter) beginGeneration(ctx context.Context, tx pgx.Tx,
	at ledger.TransactionsPosition) (next ledger.TransactionsPosition, err error) {
	if err := l.holdPosition(ctx, tx, at); err != nil {
		return at, err
	}
	next = at
	next.Revision++
	if at.Rereading() {
		next.Leftovers = true
	}
	next.ReadAfter = at.LastSeq
	next, cursor, err := l.CarryUnderivable(ctx, tx, at, next)
	if err != nil {
		return at, err
	}
	return next, writing.PutPosition(ctx, tx, next, cursor)
}

// CarryUnderivable begins the generation that next reads with copies of those records of the generation that at reads
// that can't be derived again, and with what is derived from them. It returns the position after them, and the event id
// of the last one.
func (l *TransactionsWriter) CarryUnderivable(ctx context.Context, tx pgx.Tx, at, next ledger.TransactionsPosition) (
	_ ledger.TransactionsPosition, cursor ledger.TransactionsCursor, err error,
) {
	carried, err := held.Underivable(ctx, l.store.db, tx, at.ReadAfter, at.LastSeq)
	if err != nil {
		return at, "", err
	}
	next.LastSeq = next.ReadAfter + carried
	if cursor, err = l.carry(ctx, tx, at, next); err != nil {
		return at, "", fmt.Errorf("carry %d records that can't be derived again: %w", carried, err)
	}
	return next, cursor, nil
}

func (l *TransactionsWriter) carry(ctx context.Context, tx pgx.Tx, at,
	next ledger.TransactionsPosition) (cursor ledger.TransactionsCursor, err error) {
	q, carried := l.store.db.Queries, next.Records()
	if carried > 0 {
		for _, table := range tables.In(tables.Records, tables.Totals) {
			if !table.OfRecords() {
				continue
			}
			columns, err := q.RecordColumns(ctx, tx, table.Name)
			if err != nil {
				return "", err
			}
			_, err = tx.Exec(ctx, "INSERT INTO "+table.Name+" SELECT "+columns+" FROM "+table.Name+" s WHERE s.seq > $2 AND "+
				"s.seq <= $3 ORDER BY s.seq",
				next.ReadAfter-at.ReadAfter, at.ReadAfter, at.ReadAfter+carried)
			if err != nil {
				return "", fmt.Errorf("%s: %w", table.Name, err)
			}
		}
		if err = q.DerivePlainly(ctx, tx); err != nil {
			return "", err
		}
		err = q.BalanceTotalsAdd(ctx, tx, dbsqlc.BalanceTotalsAddParams{Generation: next.ReadAfter,
			FromExclusive: next.ReadAfter, ToInclusive: next.LastSeq})
		if err != nil {
			return "", err
		}
		marks, err := l.store.transactionsMarks(ctx, tx, next, next.LastSeq-1, next.LastSeq)
		if problem, lost := errors.AsType[*ledger.Problem](err); lost {
			return "", &ledger.Problem{What: problem.What, Do: "restore a backup of the database: the update that the last of " +
				"them follows from was pruned"}
		}
		if err != nil {
			return "", err
		}
		cursor = marks[0].Cursor
	}
	return cursor, q.BalanceRoundsCompute(ctx, tx, dbsqlc.BalanceRoundsComputeParams{FromExclusive: next.ReadAfter,
		ToInclusive: next.LastSeq})
}

// ShowGeneration replaces the shown generation by the one that is read: readers see either as a whole. Windows that
// were verified in the old one say nothing about the new one. DropLeftovers removes the old one.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) ShowGeneration(ctx context.Context,
	at ledger.TransactionsPosition) (ledger.TransactionsPosition, error) {
	if !at.Rereading() {
		return at, &ledger.Bug{What: "the generation of the transaction history that is read is shown already"}
	}
	next := at
	next.Revision, next.ShownAfter, next.ShownTo, next.Leftovers = at.Revision+1, at.ReadAfter, at.LastSeq, true
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.holdPosition(ctx, tx, at); err != nil {
			return err
		}
		if err := l.store.db.Queries.TransactionsPositionPut(ctx, tx, dbsqlc.TransactionsPositionPutParams(next)); err != nil {
			return fmt.Errorf("move the position in the transaction history: %w", err)
		}
		if err := writing.Unseal(ctx, tx, findings.SealedTransactions, 0); err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, findings.SealedTransactions, 0, next.ShownTo, writing.ReadAgain)
	})
	if err != nil {
		return at, fmt.Errorf("show the transaction history that was read again: %w", session.Refused(err))
	}
	return next, nil
}

// DropLeftovers removes the rows of generations that are neither shown nor read, some at a time. Each table is gone
// through once, block by block. A DropLeftovers that was cut short leaves the rest to the next one.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) DropLeftovers(ctx context.Context, at ledger.TransactionsPosition) (ledger.TransactionsPosition, error) {
	next := at
	next.Revision, next.Leftovers = at.Revision+1, false
	for _, table := range tables.In(tables.Records, tables.Totals) {
		if err := l.dropLeftoversOf(ctx, &table, at); err != nil {
			return at, fmt.Errorf("remove rows of %s of readings of the transaction history that are not shown: %w", table.Name, session.Refused(err))
		}
	}
	err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := l.holdPosition(ctx, tx, at); err != nil {
			return err
		}
		return l.store.db.Queries.TransactionsPositionPut(ctx, tx, dbsqlc.TransactionsPositionPutParams(next))
	})
	if err != nil {
		return at, fmt.Errorf("note that nothing is left of other readings of the transaction history: %w", session.Refused(err))
	}
	return next, nil
}

func (l *TransactionsWriter) dropLeftoversOf(ctx context.Context, table *tables.Table, at ledger.TransactionsPosition) error {
	for block, blocks := int64(0), int64(1); block < blocks; block += leftoverBlocks {
		err := l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			if err := l.holdPosition(ctx, tx, at); err != nil {
				return err
			}
			if blocks, err = l.store.db.Queries.RelationBlocks(ctx, tx, table.Name); err != nil {
				return err
			}
			some := fmt.Sprintf("s.ctid >= '(%d,0)' AND s.ctid < '(%d,0)' AND (%s)", block, block+leftoverBlocks, leftover(table))
			_, err = tx.Exec(ctx, table.Delete(some), at.ShownAfter, at.ShownTo, at.ReadAfter)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leftover returns a condition on the rows s of a table that are of no generation that is shown ($1, $2) or read ($3).
func leftover(table *tables.Table) string {
	if table.OfRecords() {
		return "s.seq <= $1 OR s.seq > $2 AND s.seq <= $3"
	}
	return "s.generation NOT IN ($1, $3) AND $2::bigint IS NOT NULL"
}
