package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// onlyTransactions is for repairs of the history that leave the dictionaries alone.
var onlyTransactions = []session.Role{session.RoleTransactions}

// History writes the transaction history in the role of repairing: a repair writes all of it again, as its writer does.
func (r *Repairer) History() *store.TransactionsWriter {
	return &store.TransactionsWriter{Leader: r.Leader}
}

// RestartTransactions clears the transaction history, whatever is stored of it, to be read again from the beginning.
func (r *Repairer) RestartTransactions(ctx context.Context) error {
	err := r.repair(ctx, onlyTransactions, func(ctx context.Context, tx pgx.Tx) error {
		at, err := bounds.TransactionsPosition(ctx, r.stored.db, tx)
		if err == nil {
			_, err = writing.ClearRecords(ctx, tx, at, writing.Repaired)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("clear the transaction history, to read it again: %w", session.Refused(err))
	}
	return nil
}
