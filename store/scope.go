package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/held"
)

// Held reports whether anything is stored, or claimed to be, of the updates and of the transaction history. A snapshot that was
// begun and not finished is nothing yet.
func (s *Store) Held(ctx context.Context) (updates, history bool, err error) {
	held, err := s.db.Queries.AnythingHeld(ctx, s.db.Pool)
	if err != nil {
		return false, false, fmt.Errorf("look for what is stored: %w", err)
	}
	return held.Updates, held.History, nil
}

// Scope is the scope in force; ok is false where nothing was indexed yet. A scope that this
// version does not understand fully is a *ledger.Problem.
func (s *Store) Scope(ctx context.Context) (scope ledger.Scope, ok bool, err error) {
	rows, err := s.db.Queries.ScopesInUse(ctx, s.db.Pool, StreamUpdates)
	if err != nil {
		return ledger.Scope{}, false, fmt.Errorf("read the stored scope: %w", err)
	}
	if len(rows) == 0 {
		return ledger.Scope{}, false, nil
	}
	if len(rows) > 1 {
		return ledger.Scope{}, false, fmt.Errorf("database %s holds %d scopes, and there should be one", s.Address(), len(rows))
	}
	if err := s.decodeScope(rows[0].Scope, rows[0].Definition, &scope); err != nil {
		return ledger.Scope{}, false, err
	}
	return scope, true, nil
}

// Bounds are what the database claims to hold of the updates; started is false where nothing was indexed.
func (s *Store) Bounds(ctx context.Context) (bounds ledger.Bounds, started bool, err error) {
	err = s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		extent, err := held.Read(ctx, s.db, tx)
		bounds = ledger.Bounds{
			Floor: extent.HistoryFloor, Watermark: extent.Watermark,
			StateFloor: extent.StateFloor, PrunedTo: extent.PrunedTo,
		}
		started = extent.Started
		return err
	})
	return bounds, started, err
}
