package app

import (
	"context"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

type audited struct {
	*store.Store
	*audit.Stored
}

func newAudited(s *store.Store) audited { return audited{s, audit.New(s)} }

// Led implements verify.UpdateDatabase.
func (a audited) Led(ctx context.Context) (bool, error) {
	leads, err := a.Store.Leadership(ctx, store.RoleUpdates)
	return leads.Leads, err
}
