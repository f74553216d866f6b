package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/session"
)

// alone calls change in a transaction. Nobody else migrates, or changes schemas or rights, until it ends.
func (s *Store) alone(ctx context.Context, change func(pgx.Tx) error) error {
	tx, _, err := s.db.Hold(ctx, session.LockSchema, 0)
	if err != nil {
		return s.db.Unusable(err)
	}
	defer pg.Rollback(ctx, tx)
	if err := change(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// changeSchemas is alone, with errors that name what could not be done. It returns a *ledger.Problem unchanged.
func (s *Store) changeSchemas(ctx context.Context, what string, change func(pgx.Tx) error) error {
	err := s.alone(ctx, change)
	if problem := (*ledger.Problem)(nil); err == nil || errors.As(err, &problem) {
		return err
	}
	return s.db.Unusable(fmt.Errorf("database %s: %s: %w", s.Address(), what, err))
}

// changeAccess is alone, tried again when a table can't be locked.
func (s *Store) changeAccess(ctx context.Context, change func(pgx.Tx) error) error {
	return patiently(ctx, lockPatience/2, func() error { return s.alone(ctx, change) })
}
