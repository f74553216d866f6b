package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/tables"
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

// Begun reports whether updates, a snapshot of them included that is not finished, and a transaction history have begun to be stored. A
// database without the schemas holds neither.
func (s *Store) Begun(ctx context.Context) (updates, history bool, err error) {
	var exists bool
	err = s.db.Pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.db.Config.Schemas.VersionTable()).Scan(&exists)
	if err != nil {
		return false, false, s.db.Unusable(fmt.Errorf("database %s: %w", s.Address(), err))
	}
	if !exists {
		return false, false, nil
	}
	if updates, history, err = s.Held(ctx); err != nil || updates {
		return updates, history, err
	}
	unfinished, err := s.UnfinishedSnapshot(ctx)
	return unfinished != nil, history, err
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

func (s *Store) decodeScope(hash string, definition []byte, scope *ledger.Scope) error {
	err := json.Unmarshal(definition, scope)
	if err == nil && scope.Hash() == hash {
		return nil
	}
	return &ledger.Problem{
		What: fmt.Sprintf("database %s holds a scope that this version does not understand: %s", s.Address(), definition),
		Do:   "use the release that wrote it; if the text is empty, run `indexer verify --repair`",
		Err:  err,
	}
}

// EarlierScope returns the ranges that are covered in an earlier scope than the one in force, in order. `backfill history` makes them
// complete from the last one downwards.
func (s *Store) EarlierScope(ctx context.Context) ([]ledger.Range, error) {
	return s.earlierScope(ctx, s.db.Pool)
}

func (s *Store) earlierScope(ctx context.Context, db dbsqlc.DBTX) (ranges []ledger.Range, err error) {
	rows, err := s.db.Queries.CoverageEarlier(ctx, db, tables.StreamUpdates)
	if err != nil {
		return nil, s.db.Unusable(fmt.Errorf("read what is covered in an earlier scope: %w", err))
	}
	for _, row := range rows {
		ranges = append(ranges, ledger.Range{From: ledger.Offset(row.FromExclusive), To: ledger.Offset(row.ToInclusive)})
	}
	return ranges, nil
}
