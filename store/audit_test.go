package store_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

func TestMain(m *testing.M) {
	store.Audit.Stored = func(s *store.Store) store.Auditor { return audit.New(s) }
	store.Audit.Sealer = func(s *store.Store, leader *store.Leader) store.Sealer { return audit.NewSealer(s, leader) }
	store.Audit.LeadRepair = func(ctx context.Context, s *store.Store) (store.Repairer, bool, error) {
		return audit.LeadRepair(ctx, s)
	}
	goleak.VerifyTestMain(throwaway.Tests(m))
}
