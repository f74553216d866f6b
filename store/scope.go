package store

import (
	"context"
	"encoding/json"
	"fmt"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
)

// Scope returns the scope in force; ok is false where nothing was indexed yet. A scope that this
// version does not understand fully is a *ledger.Problem.
func (s *Store) Scope(ctx context.Context) (scope ledger.Scope, ok bool, err error) {
	scope, ok, err = s.scopeInForce(ctx, s.db.Pool)
	return scope, ok, s.db.Unusable(err)
}

func (s *Store) scopeInForce(ctx context.Context, db dbsqlc.DBTX) (scope ledger.Scope, ok bool, err error) {
	rows, err := queries.ScopesInUse(ctx, db, StreamUpdates)
	if err != nil {
		return ledger.Scope{}, false, fmt.Errorf("read the stored scope: %w", err)
	}
	if len(rows) == 0 {
		return ledger.Scope{}, false, nil
	}
	if len(rows) > 1 {
		return ledger.Scope{}, false, fmt.Errorf("database %s holds %d scopes, and there should be one", s.Address(),
			len(rows))
	}
	scope, err = s.decodeScope(rows[0].Scope, rows[0].Definition)
	return scope, err == nil, err
}

func (s *Store) decodeScope(hash string, definition []byte) (scope ledger.Scope, err error) {
	if err = json.Unmarshal(definition, &scope); err == nil && scope.Hash() == hash {
		return scope, nil
	}
	return ledger.Scope{}, &ledger.Problem{
		What: fmt.Sprintf("database %s holds a scope that this version does not understand: %s", s.Address(), definition),
		Do:   "use the release that wrote it; if the text is empty, run `indexer verify --repair`",
		Err:  err,
	}
}

// carriedScope returns the snapshot whose rows are carried, with the scope in which it was read; nil: there is none.
func (s *Store) carriedScope(ctx context.Context, db dbsqlc.DBTX) (*ledger.SnapshotProgress, ledger.Scope, error) {
	row, err := queries.SnapshotFinished(ctx, db)
	progress, err := bounds.Snapshot(row.Snapshots, err)
	if err != nil {
		return nil, ledger.Scope{}, s.db.Unusable(fmt.Errorf("read in which scope the carried snapshot was read: %w", err))
	}
	if progress == nil {
		return nil, ledger.Scope{}, nil
	}
	scope, err := s.decodeScope(row.Snapshots.Scope, []byte(row.Definition))
	return progress, scope, err
}

// CarriedScope returns the snapshot whose rows are carried, with the scope in which it was read; nil: there is none.
func (s *Store) CarriedScope(ctx context.Context) (*ledger.SnapshotProgress, ledger.Scope, error) {
	return s.carriedScope(ctx, s.db.Pool)
}
