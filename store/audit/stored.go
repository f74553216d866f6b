package audit

import (
	"context"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/session"
)

// Stored is a store that compares what its database holds. It is safe for concurrent use.
type Stored struct {
	*store.Store
	db        *session.Database
	comparing func(ledger.Page) // for tests: called with each page of updates that is compared
}

// New compares what a store's database holds.
func New(s *store.Store) *Stored { return &Stored{Store: s, db: s.Database()} }

// Led reports whether a process leads now that moves the watermark.
func (s *Stored) Led(ctx context.Context) (bool, error) {
	leads, err := s.Leadership(ctx, store.RoleUpdates)
	return leads.Leads, err
}

// writer writes what it has compared, in the term of a leader.
type writer struct {
	stored *Stored
	term   *leadership.Term
}

func newWriter(s *store.Store, leader *store.Leader) writer { return writer{New(s), leader.Term()} }
