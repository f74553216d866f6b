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

func (s fillSink) EarlierScope(ctx context.Context) ([]ledger.EarlierRange, error) {
	return s.db.EarlierScope(ctx)
}
