package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

func migrate(ctx context.Context, url string) error {
	s, err := Open(Config{URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Migrate(ctx)
	return err
}

// testDB is a migrated database of one test, and a connection beside the store's to look into it.
type testDB struct{ *storetest.DB }

func newDatabase(t testing.TB) *testDB {
	t.Helper()
	return &testDB{storetest.New(t, throwaway.Migrated(t, migrate))}
}

// open opens a store on the database, or on another way to it.
func (d *testDB) open(url string, change func(*Config)) *Store {
	d.T.Helper()
	cfg := Config{URL: url, Holder: "test"}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(cfg)
	require.NoError(d.T, err)
	d.T.Cleanup(s.Close)
	return s
}

func (d *testDB) store() *Store { return d.open(d.URL, nil) }

// lead takes a role that has to be free.
func (d *testDB) lead(s *Store, role Role) *Leader {
	d.T.Helper()
	return leads(d, func(ctx context.Context) (*Leader, bool, error) { return s.lead(ctx, role) })
}

func (d *testDB) leadUpdates(s *Store) *UpdatesWriter { d.T.Helper(); return leads(d, s.LeadUpdates) }

func (d *testDB) leadTransactions(s *Store) *TransactionsWriter {
	d.T.Helper()
	return leads(d, s.LeadTransactions)
}

func (d *testDB) leadPruning(s *Store) *PruningWriter {
	d.T.Helper()
	return leads(d, s.LeadPruning)
}

func leads[W interface{ Close() }](d *testDB, take func(context.Context) (W, bool, error)) W {
	d.T.Helper()
	l, ok, err := take(d.T.Context())
	require.NoError(d.T, err)
	require.True(d.T, ok)
	d.T.Cleanup(l.Close)
	return l
}

// started is a leader of the updates stream, which has begun at genesis.
func (d *testDB) started() *UpdatesWriter {
	d.T.Helper()
	l := d.leadUpdates(d.store())
	require.NoError(d.T, l.Start(d.T.Context(), "participant::1", storetest.Scope, 0, true))
	return l
}

// Audit is what package audit does with a store. It imports this package, so that these tests can't import it:
// TestMain, in package store_test, sets this.
var Audit struct {
	Stored     func(*Store) Auditor
	Sealer     func(*Store, *Leader) Sealer
	LeadRepair func(context.Context, *Store) (Repairer, bool, error)
}

// Auditor is what these tests need of audit.Stored.
type Auditor interface {
	Compare(ctx context.Context, page ledger.Page, found func(findings.Difference) error) error
	CompareBalances(ctx context.Context, step func(what string), found func(findings.Difference) error) error
	CompareHeld(ctx context.Context, found func(findings.Difference) error) error
	CompareCoverage(ctx context.Context, end *ledger.Offset, found func(findings.Difference) error) ([]ledger.Range, error)
	CompareDerived(ctx context.Context, step func(what string), found func(findings.Difference) error) error
	CompareSeals(ctx context.Context, step func(done, of int64), found func(findings.Difference) error) error
	ComparePackage(ctx context.Context, p *ledger.Package, found func(findings.Difference) error) error
	CompareCarried(
		ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry, met func(key string), found func(findings.Difference) error,
	) error
	CarriedAt(ctx context.Context, at ledger.Offset, each func(key string, extra findings.Difference) error) error
	FinishedSnapshot(ctx context.Context) (*ledger.SnapshotProgress, error)
	NextWindow(ctx context.Context, stream string, size, again, known int64) (*findings.Window, error)
	SnapshotRows(ctx context.Context, at ledger.Offset) (findings.RowsDigest, error)
}

// Sealer is what these tests need of audit.Sealer.
type Sealer interface {
	SealUpdates(ctx context.Context, page ledger.Page) (findings.Comparison, error)
	SealRecords(ctx context.Context, after int64, records []ledger.Transaction) (findings.Comparison, error)
	SealSnapshot(ctx context.Context, at ledger.Offset, digest findings.RowsDigest, c findings.Comparison) (ok bool, err error)
}

// Repairer is what these tests need of audit.Repairer.
type Repairer interface {
	RepairBalances(ctx context.Context, step func(what string)) error
	RepairCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry) error
	RepairCoverage(ctx context.Context, end *ledger.Offset) error
	RepairDerived(ctx context.Context, step func(what string)) error
	RepairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) error
	DropCarried(ctx context.Context, at ledger.Offset, keys []string) error
	Close()
}

// differences is everything that the database finds with itself.
func (d *testDB) differences(s *Store) (list []findings.Difference) {
	d.T.Helper()
	stored := Audit.Stored(s)
	require.NoError(d.T, stored.CompareHeld(d.T.Context(), storetest.Collect(&list)))
	if len(list) > 0 {
		return list // what else is compared relies on it
	}
	_, err := stored.CompareCoverage(d.T.Context(), nil, storetest.Collect(&list))
	require.NoError(d.T, err)
	require.NoError(d.T, stored.CompareDerived(d.T.Context(), nil, storetest.Collect(&list)))
	for _, difference := range list {
		require.True(d.T, difference.Derived, difference)
	}
	return list
}
