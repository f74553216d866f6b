package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// leftoverBlocks is how many blocks of a table, of 8 KiB by default, are cleared in one transaction: some 100,000 rows.
const leftoverBlocks = 1_000

// BeginGeneration begins to read the transaction history from its beginning, because the service's order is not the
// stored one. What is shown stays shown. A generation that was begun before and is not shown is given up.
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
	err = l.store.db.Queries.BalanceRoundsCompute(ctx, tx, dbsqlc.BalanceRoundsComputeParams{
		FromExclusive: next.ReadAfter, ToInclusive: next.LastSeq})
	if err != nil {
		return at, fmt.Errorf("note that the rounds of the records are not known: %w", err)
	}
	return next, writing.PutPosition(ctx, tx, next, "", nil)
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
