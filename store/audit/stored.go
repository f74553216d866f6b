package audit

import (
	"ledgerindexer/store"
	"ledgerindexer/store/internal/leadership"
	"ledgerindexer/store/internal/session"
)

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
