package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
)

// transactionsWindow is how many of the last records recognise where the history was read to.
const transactionsWindow = 1000

// TransactionsPosition returns how far the transaction history has been read, with the last records of the generation
// that is read, the oldest first.
func (s *Store) TransactionsPosition(
	ctx context.Context) (position ledger.TransactionsPosition, window []ledger.TransactionsMark, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) (err error) {
		if position, err = held.TransactionsPosition(ctx, s.db, tx); err != nil {
			return err
		}
		from := max(position.LastSeq-transactionsWindow, position.ReadAfter)
		window, err = s.transactionsMarks(ctx, tx, position, from, position.LastSeq)
		return err
	})
	return position, window, err
}

// TransactionsPosition is as Store has it.
func (l *TransactionsWriter) TransactionsPosition(
	ctx context.Context) (ledger.TransactionsPosition, []ledger.TransactionsMark, error) {
	return l.store.TransactionsPosition(ctx)
}

// transactionsMarks reads what recognises the records after one seq up to another, of the generation that is read.
func (s *Store) transactionsMarks(ctx context.Context, db dbsqlc.DBTX, at ledger.TransactionsPosition, from,
	to int64) ([]ledger.TransactionsMark, error) {
	rows, err := s.db.Queries.TransactionsMarks(ctx, db, dbsqlc.TransactionsMarksParams{Generation: at.ReadAfter,
		FromExclusive: from, ToInclusive: to})
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
		marks[i] = ledger.TransactionsMark{Cursor: ledger.TransactionsCursor(row.EventID), Fingerprint: row.Fingerprint,
			Unique: row.Alone}
	}
	return marks, nil
}

// TransactionsMarks returns the last records up to a seq of the generation that is shown, the oldest first: enough to
// read on after them.
func (s *Store) TransactionsMarks(ctx context.Context, upTo int64) (marks []ledger.TransactionsMark, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		at, err := held.TransactionsPosition(ctx, s.db, tx)
		if err != nil {
			return err
		}
		at.ReadAfter = at.ShownAfter
		marks, err = s.transactionsMarks(ctx, tx, at, max(upTo-transactionsWindow, at.ShownAfter), upTo)
		return err
	})
	return marks, err
}

// StoredTransactions returns which of the event ids stand on a record of the generation that is read.
func (l *TransactionsWriter) StoredTransactions(ctx context.Context, at ledger.TransactionsPosition,
	eventIDs []string) (map[string]bool, error) {
	list, err := l.store.storedIDs(ctx, l.term.Pool, at, eventIDs)
	stored := make(map[string]bool, len(list))
	for _, id := range list {
		stored[id] = true
	}
	return stored, err
}

func (s *Store) storedIDs(ctx context.Context, db dbsqlc.DBTX, at ledger.TransactionsPosition,
	eventIDs []string) ([]string, error) {
	if len(eventIDs) == 0 {
		return nil, nil
	}
	list, err := s.db.Queries.TransactionsIDsStored(ctx, db, dbsqlc.TransactionsIDsStoredParams{
		EventIds: eventIDs, FromExclusive: at.ReadAfter, ToInclusive: at.LastSeq,
	})
	if err != nil {
		return nil, fmt.Errorf("look for %d event ids: %w", len(eventIDs), err)
	}
	return list, nil
}

// holdPosition keeps the position until the transaction ends. A writer whose twin is in doubt waits here, and is
// refused if the twin committed.
func (l *TransactionsWriter) holdPosition(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition) error {
	held, err := l.store.db.Queries.TransactionsPositionHold(ctx, tx, at.Revision)
	if err != nil {
		return fmt.Errorf("hold the position in the transaction history: %w", err)
	}
	if len(held) == 0 {
		return ErrPositionMoved
	}
	return nil
}
