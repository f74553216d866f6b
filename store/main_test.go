package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

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

// lead takes a lease that has to be free.
func (d *testDB) lead(s *Store, lease Lease) *Leader {
	d.T.Helper()
	return leads(d, func(ctx context.Context) (*Leader, bool, error) { return s.lead(ctx, lease) })
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
	LeadRepair func(context.Context, *Store) (Repairer, bool, error)
}

// Difference is what these tests need of audit.Difference.
type Difference struct {
	Text    string
	Offset  ledger.Offset
	Row     string
	Element bool
	Derived bool
}

// Auditor is what these tests need of audit.Stored. Each method returns all differences.
type Auditor interface {
	Compare(ctx context.Context, page ledger.Page) ([]Difference, error)
	CompareBalances(ctx context.Context) ([]Difference, error)
	CompareHeld(ctx context.Context) ([]Difference, error)
	CompareCoverage(ctx context.Context) ([]Difference, error)
	CompareDerived(ctx context.Context) ([]Difference, error)
	ComparePackage(ctx context.Context, p *ledger.Package) ([]Difference, error)
	// CompareCarried compares the carried rows with all entries of the snapshot that they are of.
	CompareCarried(ctx context.Context, at ledger.Offset, entries []ledger.ContractEntry) ([]Difference, error)
	// SealSnapshot digests the carried snapshot, and seals it after change.
	SealSnapshot(ctx context.Context, leader *Leader, at ledger.Offset, change func()) (sealed bool, err error)
	SealUpdates(ctx context.Context, leader *Leader, page ledger.Page) error
	SealRecords(ctx context.Context, leader *Leader, after int64, records []ledger.Record) error
}

// Repairer is what these tests need of audit.Repairer.
type Repairer interface {
	RepairBalances(ctx context.Context, step func(what string)) error
	RepairCarried(ctx context.Context, at ledger.Offset, before int64, entries []ledger.ContractEntry) error
	RepairCoverage(ctx context.Context, end *ledger.Offset) error
	RepairDerived(ctx context.Context, step func(what string)) error
	RepairUpdates(ctx context.Context, scope ledger.Scope, page ledger.Page) error
	Close()
}

// differences is everything that the database finds with itself.
func (d *testDB) differences(s *Store) []Difference {
	d.T.Helper()
	stored := Audit.Stored(s)
	list, err := stored.CompareHeld(d.T.Context())
	require.NoError(d.T, err)
	if len(list) > 0 {
		return list // what else is compared relies on it
	}
	for _, compare := range []func(context.Context) ([]Difference, error){stored.CompareCoverage, stored.CompareDerived} {
		more, err := compare(d.T.Context())
		require.NoError(d.T, err)
		list = append(list, more...)
	}
	for _, difference := range list {
		require.True(d.T, difference.Derived, difference)
	}
	return list
}
