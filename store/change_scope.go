package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/tables"
)

// CheckChange is CheckIdentity for a run that may change the scope: another scope is refused only if a
// resync would refuse it.
func (s *Store) CheckChange(ctx context.Context, participantID string, scope ledger.Scope) error {
	in, ok, err := s.Scope(ctx)
	if err != nil {
		return err
	}
	if !ok || in.Hash() == scope.Hash() {
		return s.CheckIdentity(ctx, participantID, scope)
	}
	if err := s.CheckIdentity(ctx, participantID, in); err != nil {
		return err
	}
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.refuseChange(ctx, tx, scope) })
}

// refuseChange refuses a scope of another form than what is covered, and any where nothing follows a snapshot: no
// earlier offset would be in the scope before.
func (s *Store) refuseChange(ctx context.Context, tx pgx.Tx, scope ledger.Scope) error {
	covered, err := queries.ScopesCovered(ctx, tx, StreamUpdates)
	if err != nil {
		return fmt.Errorf("read which scopes are covered: %w", err)
	}
	for _, row := range covered {
		stored, err := s.decodeScope(row.Scope, []byte(row.Definition))
		if err != nil {
			return err
		}
		if other := scope.OtherForm(stored); len(other) > 0 {
			asked, holds := scope.Differences(stored)
			return &ledger.Problem{
				What: fmt.Sprintf("the scope can't be changed to %s: in %s it has another form than what database %s holds, "+
					"which is %s",
					asked, strings.Join(other, ", "), s.Address(), holds),
				Do: "leave these settings as they were: parties, templates and interfaces can be added and taken away, and " +
					"nothing else; for another form index into a new database or pair of schemas (--tables-schema, --views-schema)",
			}
		}
	}
	extent, err := bounds.Read(ctx, tx)
	if err != nil || !extent.Started {
		return err
	}
	carried, err := bounds.CarriedSnapshot(ctx, tx)
	if err != nil || carried == nil || extent.Watermark > extent.HistoryFloor {
		return err
	}
	return &ledger.Problem{
		What: fmt.Sprintf("the scope can't be changed yet: database %s holds nothing but the snapshot at offset %d",
			s.Address(), carried.At),
		Do: "let `indexer run` read on with the flags as they were first; or seed a new database in the new scope with " +
			"`backfill`",
	}
}

// ScopeAt returns the scope in which what follows an offset is covered, and the offset up to which that holds. inForce
// is true for the scope in force, and where nothing is covered: then scope says nothing.
func (s *Store) ScopeAt(ctx context.Context,
	after ledger.Offset) (scope ledger.Scope, inForce bool, upTo ledger.Offset, err error) {
	row, err := queries.ScopeAt(ctx, s.db.Pool, dbsqlc.ScopeAtParams{Stream: tables.StreamUpdates, After: int64(after)})
	if err != nil {
		return scope, false, 0, s.db.Unusable(fmt.Errorf("read in which scope offsets after %d are covered: %w", after, err))
	}
	if row.InForce {
		return scope, true, ledger.Offset(row.UpTo), nil
	}
	scope, err = s.decodeScope(row.Scope, []byte(row.Definition))
	return scope, false, ledger.Offset(row.UpTo), err
}
