package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/writing"
)

// Scope returns the scope in force; ok is false where nothing was indexed yet. A scope that this
// version does not understand fully is a *ledger.Problem.
func (s *Store) Scope(ctx context.Context) (scope ledger.Scope, ok bool, err error) {
	scope, ok, err = s.scopeInForce(ctx, s.db.Pool)
	return scope, ok, s.db.Unusable(err)
}

func (s *Store) scopeInForce(ctx context.Context, db dbsqlc.DBTX) (scope ledger.Scope, ok bool, err error) {
	rows, err := s.db.Queries.ScopesInUse(ctx, db, StreamUpdates)
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

// settleScope ends at the watermark what the scope in force does not show, and opens what it shows again.
func (l *UpdatesWriter) settleScope(ctx context.Context, tx pgx.Tx, watermark int64) error {
	if _, err := writing.ReturnToScope(ctx, tx, l.term.Partitions, watermark); err != nil {
		return err
	}
	return writing.LeaveScope(ctx, tx, l.term.Partitions, watermark)
}

// refuseSnapshotOnly refuses to take something away from a snapshot at an offset after which nothing is stored: there
// is no earlier offset at which it was active.
func (s *Store) refuseSnapshotOnly(ctx context.Context, tx pgx.Tx, extent *Extent, at ledger.Offset,
	scope ledger.Scope) error {
	carried, stored, err := s.carriedScope(ctx, tx)
	if err != nil || carried == nil || at > extent.HistoryFloor || len(scope.Lacks(stored)) == 0 {
		return err
	}
	read, asked := stored.Differences(scope)
	return &ledger.Problem{
		What: fmt.Sprintf("database %s would hold nothing but the snapshot at offset %d, which was read with %s, and a "+
			"scope with %s lacks something of that",
			s.Address(), carried.At, read, asked),
		Do: "let `indexer run` read on with the flags of that scope first, and take something away then; or seed a new " +
			"database in the smaller scope with `backfill`",
	}
}

// refuseSnapshotOnlyNow is refuseSnapshotOnly for the scope in force.
func (s *Store) refuseSnapshotOnlyNow(ctx context.Context, tx pgx.Tx, extent *Extent, at ledger.Offset) error {
	if extent.ChangedTo == "" {
		return nil
	}
	now, _, err := s.scopeInForce(ctx, tx)
	if err != nil {
		return err
	}
	return s.refuseSnapshotOnly(ctx, tx, extent, at, now)
}

// carriedScope returns the snapshot whose rows are carried, with the scope in which it was read; nil: there is none.
func (s *Store) carriedScope(ctx context.Context, db dbsqlc.DBTX) (*ledger.SnapshotProgress, ledger.Scope, error) {
	row, err := s.db.Queries.SnapshotFinished(ctx, db)
	progress, err := held.Snapshot(row.Snapshots, err)
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
