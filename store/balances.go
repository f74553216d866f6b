package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
)

// What is derived from transfers is brought up to date with the records of a range of seqs, once per range, in the
// transaction that wrote the records' rows and after them. The order of the ranges and their borders make no difference.

// linkTransfers notes who took part in which transfer.
func (l *TransactionsWriter) linkTransfers(ctx context.Context, tx pgx.Tx, rows *rows.Records) error {
	return copyRows(ctx, tx, "party_transfers", rows.PartyTransfers())
}

// addToBalances adds the balance changes of records to the running totals, and notes the rounds that balances can be told
// of. What comes behind it in the transaction is planned as look-ups by index, too.
func (l *TransactionsWriter) addToBalances(ctx context.Context, tx pgx.Tx, rows *rows.Records, fromExclusive, toInclusive int64) error {
	started := time.Now()
	if err := l.store.queries.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("set how statements are planned: %w", err)
	}
	ok, err := l.addBehind(ctx, tx, rows.BalanceChanges)
	if err == nil && !ok {
		err = l.addAnywhere(ctx, tx, fromExclusive, toInclusive)
	}
	if err == nil {
		err = l.noteRounds(ctx, tx, rows)
	}
	l.store.cfg.Observe("project", time.Since(started))
	return err
}

// addAnywhere adds the balance changes of records to the running totals, whichever rounds they are for.
func (l *TransactionsWriter) addAnywhere(ctx context.Context, tx pgx.Tx, fromExclusive, toInclusive int64) error {
	err := l.store.queries.BalanceTotalsAdd(ctx, tx, dbsqlc.BalanceTotalsAddParams{FromExclusive: fromExclusive, ToInclusive: toInclusive})
	if err != nil {
		return fmt.Errorf("add the balance changes of records after %d up to %d to the totals: %w", fromExclusive, toInclusive, err)
	}
	return nil
}

// noteRounds notes of which rounds records tell, and from which round on they make totals incomplete.
func (l *TransactionsWriter) noteRounds(ctx context.Context, tx pgx.Tx, rows *rows.Records) error {
	newest, firstIncomplete := rows.Rounds()
	if newest == nil && firstIncomplete == nil {
		return nil
	}
	err := l.store.queries.BalanceRoundsNote(ctx, tx, dbsqlc.BalanceRoundsNoteParams{Newest: newest, FirstIncomplete: firstIncomplete})
	if err != nil {
		return fmt.Errorf("note the rounds of %d records: %w", len(rows.Transactions), err)
	}
	return nil
}
