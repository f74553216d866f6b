package audit

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

func migrate(ctx context.Context, url string) error {
	s, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Migrate(ctx)
	return err
}

// opened is a store, with what compares its database.
type opened struct {
	*store.Store
	*Stored
}

// updatesWriter writes and seals in one term.
type updatesWriter struct {
	*store.UpdatesWriter
	*Sealer
	store *opened
}

// transactionsWriter writes and seals in one term.
type transactionsWriter struct {
	*store.TransactionsWriter
	*Sealer
	store *opened
}

// testDB is a migrated database of one test, and a connection beside the store's to look into it.
type testDB struct{ *storetest.DB }

func newDatabase(t testing.TB) *testDB {
	t.Helper()
	return &testDB{storetest.New(t, throwaway.Migrated(t, migrate))}
}

// open opens a store on the database, or on another way to it.
func (d *testDB) open(url string, change func(*store.Config)) *opened {
	d.T.Helper()
	cfg := store.Config{URL: url, Holder: "test"}
	if change != nil {
		change(&cfg)
	}
	s, err := store.Open(cfg)
	require.NoError(d.T, err)
	d.T.Cleanup(s.Close)
	return &opened{s, New(s)}
}

func (d *testDB) store() *opened { return d.open(d.URL, nil) }

func (d *testDB) leadUpdates(s *opened) *updatesWriter {
	d.T.Helper()
	l := leads(d, s.LeadUpdates)
	return &updatesWriter{l, NewSealer(s.Store, l.Leader), s}
}

func (d *testDB) leadTransactions(s *opened) *transactionsWriter {
	d.T.Helper()
	l := leads(d, s.LeadTransactions)
	return &transactionsWriter{l, NewSealer(s.Store, l.Leader), s}
}

func (d *testDB) leadPruning(s *opened) *store.PruningWriter {
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

// repairs takes the role of repairing, which has to be free.
func (d *testDB) repairs(s *opened) *Repairer {
	d.T.Helper()
	return leads(d, func(ctx context.Context) (*Repairer, bool, error) { return LeadRepair(ctx, s.Store) })
}

// started is a leader of the updates stream, which has begun at genesis.
func (d *testDB) started() *updatesWriter {
	d.T.Helper()
	l := d.leadUpdates(d.store())
	require.NoError(d.T, l.Start(d.T.Context(), "participant::1", storetest.Scope, 0, true))
	return l
}

// everythingSealed is a database that has rows in every table that is sealed.
func everythingSealed(t *testing.T) *testDB {
	t.Helper()
	d := newDatabase(t)
	d.Exec("CREATE PUBLICATION everything FOR ALL TABLES") // which refuses to remove rows of tables without a replica identity
	d.WriteEverything(d.leadUpdates(d.store()), d.leadTransactions(d.store()))
	return d
}

// verificationOf collects what differs.
func verificationOf(s *Stored, r *Repairer, list *[]Difference) *Verification {
	return &Verification{Database: s, Repairer: r, Differs: func(d Difference) { *list = append(*list, d) },
		Progress: func(Progress) {}, Logger: slog.New(slog.DiscardHandler)}
}

// testHistory writes the transaction history of a database.
type testHistory struct {
	*testDB
	l  *transactionsWriter
	at ledger.TransactionsPosition
}

func newHistory(t testing.TB) *testHistory {
	t.Helper()
	d := newDatabase(t)
	return &testHistory{testDB: d, l: d.leadTransactions(d.store())}
}

// append writes a page. The position that it returns must be the one that is stored.
func (h *testHistory) append(texts ...string) {
	h.T.Helper()
	at, err := h.l.AppendTransactions(h.T.Context(), h.at, nil, storetest.RecordsOf(texts))
	h.moved(at, err)
}

func (h *testHistory) moved(at ledger.TransactionsPosition, err error) {
	h.T.Helper()
	require.NoError(h.T, err)
	require.Equal(h.T, h.at.Revision+1, at.Revision)
	stored, _, err := h.l.TransactionsPosition(h.T.Context())
	require.NoError(h.T, err)
	require.Equal(h.T, stored, at)
	h.at = at
}
