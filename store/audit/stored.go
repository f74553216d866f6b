package audit

import (
	"context"
	"errors"
	"fmt"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
)

var queries = dbsqlc.New()

// Stored is a store that compares what its database holds. It is safe for concurrent use.
type Stored struct {
	*store.Store
	db *session.Database
}

// New compares what a store's database holds.
func New(s *store.Store) *Stored { return &Stored{s, s.Database()} }

// writer writes what it has compared, in the term of a leader.
type writer struct {
	stored *Stored
	term   *leadership.Term
}

func newWriter(s *store.Store, leader *store.Leader) writer { return writer{New(s), leader.Term()} }

// FinishedSnapshot returns the snapshot whose entries are stored: the one that indexing began with, or the one that
// pruning made; nil: there is none.
func (s *Stored) FinishedSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error) {
	return bounds.CarriedSnapshot(ctx, s.db.Pool)
}

// errScopeChanged is the error for a scope that was changed during a verification, which compares what is active in the
// scope that was in force when it began.
var errScopeChanged = errors.New("the scope was changed while it was verified, and what is active is stored in " +
	"another one than was read: verify again")

// refuseChangedScope returns errScopeChanged where another scope is in force than the one in which something was read.
func (s *Stored) refuseChangedScope(ctx context.Context, db dbsqlc.DBTX, scope ledger.Scope) error {
	list, err := queries.ScopesInUse(ctx, db, tables.StreamUpdates)
	if err != nil {
		return fmt.Errorf("read which scope is in force: %w", err)
	}
	for _, row := range list {
		if row.Scope != scope.Hash() {
			return errScopeChanged
		}
	}
	return nil
}
