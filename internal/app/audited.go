package app

import (
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

// audited is a store, with what compares its database.
type audited struct {
	*store.Store
	*audit.Stored
}

func newAudited(s *store.Store) audited { return audited{s, audit.New(s)} }

// updatesSink implements ingest.UpdateSink.
type updatesSink struct {
	*store.UpdatesWriter
	*audit.Stored
}

// fillSink implements ingest.FillSink.
type fillSink struct {
	*store.BackfillWriter
	*audit.Stored
}
