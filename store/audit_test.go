package store_test

import (
	"context"
	"slices"
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/audit"
)

func TestMain(m *testing.M) {
	store.Audit.Stored = func(s *store.Store) store.Auditor { return auditor{s, audit.New(s)} }
	store.Audit.LeadRepair = func(ctx context.Context, s *store.Store) (store.Repairer, bool, error) {
		return audit.LeadRepair(ctx, s)
	}
	goleak.VerifyTestMain(throwaway.Tests(m))
}

// auditor implements store.Auditor.
type auditor struct {
	store  *store.Store
	stored *audit.Stored
}

// collected returns what a comparison finds.
func collected(compare func(found audit.Found) error) (list []store.Difference, err error) {
	err = compare(func(d audit.Difference) {
		list = append(list, store.Difference{Text: d.String(), Offset: d.Offset, Row: d.Row, Element: d.Element, Derived: d.Derived})
	})
	return list, err
}

func (a auditor) Compare(ctx context.Context, page ledger.Page) ([]store.Difference, error) {
	return collected(func(found audit.Found) error { return a.stored.Compare(ctx, page, found) })
}

func (a auditor) CompareBalances(ctx context.Context) ([]store.Difference, error) {
	return collected(func(found audit.Found) error { return a.stored.CompareBalances(ctx, func(string) {}, found) })
}

func (a auditor) CompareHeld(ctx context.Context) ([]store.Difference, error) {
	return collected(func(found audit.Found) error { return a.stored.CompareHeld(ctx, found) })
}

func (a auditor) CompareCoverage(ctx context.Context) ([]store.Difference, error) {
	return collected(func(found audit.Found) error {
		_, err := a.stored.CompareCoverage(ctx, nil, found)
		return err
	})
}

func (a auditor) CompareDerived(ctx context.Context) ([]store.Difference, error) {
	return collected(func(found audit.Found) error { return a.stored.CompareDerived(ctx, nil, found) })
}

func (a auditor) ComparePackage(ctx context.Context, p *ledger.Package) ([]store.Difference, error) {
	return collected(func(found audit.Found) error { return a.stored.ComparePackage(ctx, p, found) })
}

func (a auditor) CompareCarried(ctx context.Context, at ledger.Offset, entries []ledger.ContractEntry) ([]store.Difference, error) {
	return collected(func(found audit.Found) error {
		keys, err := a.stored.CompareCarried(ctx, at, 0, entries, found)
		if err != nil {
			return err
		}
		return a.stored.CarriedAt(ctx, at, func(key audit.EntryKey, extra audit.Difference) {
			if !slices.Contains(keys, key) {
				found(extra)
			}
		})
	})
}

func (a auditor) SealSnapshot(ctx context.Context, leader *store.Leader, at ledger.Offset, change func()) (bool, error) {
	digest, err := a.stored.SnapshotRows(ctx, at)
	if err != nil {
		return false, err
	}
	change()
	return audit.NewSealer(a.store, leader).SealSnapshot(ctx, at, digest, audit.Comparison{})
}

func (a auditor) SealUpdates(ctx context.Context, leader *store.Leader, page ledger.Page) error {
	_, err := audit.NewSealer(a.store, leader).SealUpdates(ctx, page)
	return err
}

func (a auditor) SealRecords(ctx context.Context, leader *store.Leader, after int64, records []ledger.Record) error {
	_, err := audit.NewSealer(a.store, leader).SealRecords(ctx, after, records)
	return err
}
