package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/held"
)

// deriveAgain has the records of the transaction history that follow from updates derived again, before updates are
// removed, because others may be read in their place.
func (l *UpdatesWriter) deriveAgain(ctx context.Context, tx pgx.Tx) error {
	derived, err := l.store.db.Queries.RecordsAreDerived(ctx, tx)
	if err != nil {
		return fmt.Errorf("look whether records follow from updates: %w", err)
	}
	if !derived {
		return nil
	}
	// Who derives them may be another process; then the position does not move any more.
	if err := l.term.Exclude(ctx, tx, RoleTransactions); err != nil {
		return err
	}
	at, err := held.TransactionsPosition(ctx, l.store.db, tx)
	if err != nil {
		return err
	}
	_, err = (&TransactionsWriter{Leader: l.Leader}).beginGeneration(ctx, tx, at)
	return err
}
