package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// TransactionsPosition returns how far the transaction history has been read, with its last records, the oldest first.
func (s *Store) TransactionsPosition(
	ctx context.Context) (position ledger.TransactionsPosition, tail []ledger.TransactionsMark, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
		if position, err = bounds.TransactionsPosition(ctx, tx); err != nil {
			return err
		}
		tail, err = s.transactionsMarks(ctx, tx, position.LastSeq)
		return err
	})
	return position, tail, err
}

// TransactionsPosition is as Store has it.
func (l *TransactionsWriter) TransactionsPosition(
	ctx context.Context) (ledger.TransactionsPosition, []ledger.TransactionsMark, error) {
	return l.store.TransactionsPosition(ctx)
}

// transactionsMarks reads what recognises the last records up to a seq.
func (s *Store) transactionsMarks(ctx context.Context, db dbsqlc.DBTX, to int64) ([]ledger.TransactionsMark, error) {
	from := max(to-ledger.TransactionsTail, 0)
	rows, err := queries.TransactionsMarks(ctx, db, dbsqlc.TransactionsMarksParams{FromExclusive: from, ToInclusive: to})
	if err != nil {
		return nil, fmt.Errorf("read the records of the transaction history after seq %d: %w", from, err)
	}
	if int64(len(rows)) != max(0, to-from) {
		return nil, &ledger.Problem{
			What: fmt.Sprintf("the transaction history has %d records after seq %d up to %d, where its position claims all",
				len(rows), from, to),
			Do: "run `indexer verify --repair` with --scan-url: it reads the history again",
		}
	}
	marks := make([]ledger.TransactionsMark, len(rows))
	for i, row := range rows {
		marks[i] = ledger.TransactionsMark{EventID: row.EventID, Fingerprint: row.Fingerprint, Unique: row.Alone}
	}
	return marks, nil
}

// TransactionsMarks returns the last records up to a seq, the oldest first: enough to read on after them.
func (s *Store) TransactionsMarks(ctx context.Context, upTo int64) (marks []ledger.TransactionsMark, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		marks, err = s.transactionsMarks(ctx, tx, upTo)
		return err
	})
	return marks, err
}

// StoredTransactions reports whether each of the event ids is that of a stored record.
func (l *TransactionsWriter) StoredTransactions(ctx context.Context, eventIDs []string) (stored bool, err error) {
	defer pg.Wrap(&err, "look for %d event ids", len(eventIDs))
	return queries.TransactionsStored(ctx, l.term.Pool, eventIDs)
}

// ClearTransactions removes all records and what follows from them, in one transaction, because they do not fit what
// the service shows; they are read again from the beginning. What was verified of them is forgotten.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) ClearTransactions(ctx context.Context,
	at ledger.TransactionsPosition) (_ ledger.TransactionsPosition, err error) {
	defer session.WrapRefused(&err, "clear the transaction history, to read it again")
	next := writing.Cleared(at)
	err = l.term.WriteWithin(ctx, leadership.LongTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := holdPosition(ctx, tx, at); err != nil {
			return err
		}
		return writing.RemoveRecords(ctx, tx, at, next, nil, writing.ReadAgain)
	})
	if err != nil {
		return at, err
	}
	return next, nil
}

// CompleteTransactions notes that the end of the history was reached since it was cleared.
//
// Errors: as AppendTransactions.
func (l *TransactionsWriter) CompleteTransactions(ctx context.Context,
	at ledger.TransactionsPosition) (_ ledger.TransactionsPosition, err error) {
	defer session.WrapRefused(&err, "note that the transaction history was read again to its end")
	next := at
	next.Revision, next.Rereading = at.Revision+1, false
	err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := holdPosition(ctx, tx, at); err != nil {
			return err
		}
		return queries.TransactionsPositionPut(ctx, tx, dbsqlc.TransactionsPositionPutParams(next))
	})
	return next, err
}

// holdPosition keeps the position until the transaction ends. Where an earlier transaction that wrote the same records
// may still be committed, it waits for its end, and fails if that was a commit.
func holdPosition(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition) error {
	held, err := queries.TransactionsPositionHold(ctx, tx, at.Revision)
	if err != nil {
		return fmt.Errorf("hold the position in the transaction history: %w", err)
	}
	if len(held) == 0 {
		return ErrPositionMoved
	}
	return nil
}
