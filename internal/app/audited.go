package app

import (
	"context"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

type audited struct {
	*store.Store
	*audit.Stored
}

func newAudited(s *store.Store) audited { return audited{s, audit.New(s)} }

// fillSink implements ingest.FillSink.
type fillSink struct {
	*store.BackfillWriter
	*audit.Stored
	*audit.Refiller
	db *store.Store
}

func newFillSink(db *store.Store, leader *store.BackfillWriter) fillSink {
	return fillSink{leader, audit.New(db), audit.NewRefiller(db, leader), db}
}

func (s fillSink) EarlierScope(ctx context.Context) ([]ledger.EarlierRange, error) {
	return s.db.EarlierScope(ctx)
}
