package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// AppendTransactions stores records that follow the position in the service's order (docs/interface.md, endpoint 6):
// their rows, what is derived from them, the checkpoint and the new position, in one transaction.
//
// It is safe for concurrent use: records may be written while those before them are, behind those in order, and at the
// position that they will return. order may be nil if no others are being written.
//
// Errors: ErrNotLeader, ErrPositionMoved, or the database's; a *ledger.Problem where it would refuse the same again.
// After any error the outcome is unknown: read TransactionsPosition again.
func (l *TransactionsWriter) AppendTransactions(ctx context.Context, at ledger.TransactionsPosition, order CommitOrder,
	records []ledger.Record) (_ ledger.TransactionsPosition, err error) {
	if len(records) == 0 {
		return at, nil
	}
	defer session.WrapRefused(&err, "write %d records of the transaction history after seq %d, from event id %s on",
		len(records), at.LastSeq, records[0].EventID)
	wanted := rows.RecordNames(records)
	if err := l.term.Resolve(ctx, wanted); err != nil {
		return at, err
	}
	next, list := at.After(records), rows.NewRecords()
	list.AddAll(wanted, l.term.Redacted, at.LastSeq, records)
	write := inOrder(order, func(ctx context.Context, tx pgx.Tx) error { return holdPosition(ctx, tx, at) },
		func(ctx context.Context, tx pgx.Tx) error { return l.writeRecords(ctx, tx, &list) })
	err = l.term.WriteInOrder(ctx, order, func(ctx context.Context, tx pgx.Tx) error {
		if err := write(ctx, tx); err != nil {
			return err
		}
		if err := l.addToBalances(ctx, tx, &list, at); err != nil {
			return err
		}
		return writing.PutPosition(ctx, tx, next, nil)
	})
	if err != nil {
		return at, err
	}
	for _, table := range list.Tables() {
		if table.Count() > 0 {
			l.store.db.Config.Wrote(table.Name, table.Count())
		}
	}
	list.Release()
	return next, nil
}

// writeRecords writes the rows of records, and what is derived from these rows alone.
func (l *TransactionsWriter) writeRecords(ctx context.Context, tx pgx.Tx, list *rows.Records) error {
	started := time.Now()
	derived := rows.TableOf("party_transfers", list.PartyTransfers())
	if err := writing.CopyTables(ctx, tx, append(list.Tables(), derived)); err != nil {
		return err
	}
	l.store.db.Config.Observe(ctx, "copy", time.Since(started))
	return nil
}

// addToBalances adds the balance changes of records to the running totals, and notes the rounds for which balances are
// known. What comes after it in the transaction is planned as look-ups by index, too.
func (l *TransactionsWriter) addToBalances(ctx context.Context, tx pgx.Tx, list *rows.Records,
	at ledger.TransactionsPosition) error {
	started := time.Now()
	if len(list.BalanceChanges) > 0 {
		if err := queries.PlanByIndexOnly(ctx, tx); err != nil {
			return fmt.Errorf("set how statements are planned: %w", err)
		}
		to := at.LastSeq + int64(len(list.Transactions))
		err := queries.BalanceTotalsAdd(ctx, tx, dbsqlc.BalanceTotalsAddParams{FromExclusive: at.LastSeq, ToInclusive: to})
		if err != nil {
			return fmt.Errorf("add the balance changes of records after %d up to %d to the totals: %w", at.LastSeq, to, err)
		}
	}
	newest, firstIncomplete := list.Rounds()
	if newest != nil || firstIncomplete != nil {
		err := queries.BalanceRoundsNote(ctx, tx, dbsqlc.BalanceRoundsNoteParams{Newest: newest,
			FirstIncomplete: firstIncomplete})
		if err != nil {
			return fmt.Errorf("note the rounds of %d records: %w", len(list.Transactions), err)
		}
	}
	l.store.db.Config.Observe(ctx, "project", time.Since(started))
	return nil
}
