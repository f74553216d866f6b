package audit

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/scan"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

// servedTransactions is a simulated service, and a database that has read its history.
type servedTransactions struct {
	t      *testing.T
	ledger *sandbox.Ledger
	scan   *sandbox.Scan
	client *scan.Client
	store  *store.Store
	leader *store.TransactionsWriter
	conn   *pgx.Conn
	at     ledger.TransactionsPosition
}

func newServedTransactions(t *testing.T, updates int, opts sandbox.ScanOptions) *servedTransactions {
	t.Helper()
	h := &servedTransactions{t: t, ledger: sandbox.NewLedger(sandbox.Options{Seed: 77})}
	h.ledger.Grow(updates)
	opts.BalanceChanges, opts.ExtraKinds, opts.OddShapes = true, true, true
	h.scan = sandbox.NewScan(h.ledger, opts)
	server := httptest.NewServer(h.scan)
	t.Cleanup(server.Close)
	url := throwaway.Migrated(t, migrate)
	var err error
	h.client, err = scan.New(scan.Config{URL: server.URL})
	require.NoError(t, err)
	t.Cleanup(h.client.Close)
	h.store, err = store.Open(store.Config{URL: url, Holder: "test"})
	require.NoError(t, err)
	t.Cleanup(h.store.Close)
	h.conn, err = pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.conn.Close(context.Background()) })
	var ok bool
	h.leader, ok, err = h.store.LeadTransactions(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	t.Cleanup(h.leader.Close)
	service, err := h.client.Describe(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.leader.RecordNetwork(t.Context(), service.NetworkID))
	return h
}

// follow stores what the service shows after the last record, in its order, some records at a time.
func (h *servedTransactions) follow(from, to int) {
	h.t.Helper()
	for _, page := range h.pages()[from:to] {
		h.append(page)
	}
}

func (h *servedTransactions) append(records []ledger.Record) {
	h.t.Helper()
	at, err := h.leader.AppendTransactions(h.t.Context(), h.at, nil, records)
	require.NoError(h.t, err)
	h.at = at
}

// pages are all records that are served, by thirty.
func (h *servedTransactions) pages() [][]ledger.Record {
	h.t.Helper()
	return slices.Collect(slices.Chunk(h.all(), 30))
}

func (h *servedTransactions) all() []ledger.Record {
	h.t.Helper()
	pages := ingest.NewTransactionsPages(h.client, nil, true)
	var all []ledger.Record
	for {
		page, err := pages.Next(h.t.Context())
		require.NoError(h.t, err)
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
	}
	require.Len(h.t, all, len(h.scan.EventIDs()))
	return all
}

// verify compares, and repairs if that is wanted.
func (h *servedTransactions) verify(repair bool) (list []Difference, is *Transactions, err error) {
	h.t.Helper()
	v := Transactions{Source: h.client, Verification: verificationOf(New(h.store), nil, &list)}
	if repair {
		r, ok, err := LeadRepair(h.t.Context(), h.store)
		require.NoError(h.t, err)
		require.True(h.t, ok)
		defer r.Close()
		v.Repairer = r
	}
	_, err = v.Run(h.t.Context())
	return list, &v, err
}

func (h *servedTransactions) exec(sql string) {
	h.t.Helper()
	_, err := h.conn.Exec(h.t.Context(), sql)
	require.NoError(h.t, err)
}

// ids are the event ids that readers see, in their order.
func (h *servedTransactions) ids() []string {
	h.t.Helper()
	rows, err := h.conn.Query(h.t.Context(), "SELECT event_id FROM ledger.transactions ORDER BY seq")
	require.NoError(h.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(h.t, err)
	return ids
}

// Damage to a record and to what follows from the records is named, and repaired by reading all of it again.
func TestTheHistoryIsVerifiedAndReadAgain(t *testing.T) {
	t.Parallel()
	h := newServedTransactions(t, 150, sandbox.ScanOptions{})
	h.follow(0, len(h.pages()))
	want := h.ids()
	list, is, err := h.verify(false)
	require.NoError(t, err)
	require.Empty(t, list)
	require.EqualValues(t, len(want), is.result.Records)
	for _, damage := range []struct{ sql, relation string }{
		{"UPDATE indexer.transactions SET round = round + 1 WHERE seq = 2", "transactions"},
		{"UPDATE indexer.transactions SET event_id = 'x' WHERE seq = 20", "transactions"},
		{"DELETE FROM indexer.transactions WHERE seq = 12", "transactions"},
		{"UPDATE indexer.taps SET seq = 1000000 WHERE seq = (SELECT max(seq) FROM indexer.taps)", "taps"},
		{"UPDATE indexer.balance_rounds SET newest = newest + 1", "balance_rounds"},
	} {
		h.exec(damage.sql)
		list, is, err = h.verify(true)
		require.NoError(t, err, damage.sql)
		require.True(t, slices.ContainsFunc(list, func(d Difference) bool { return d.Relation == damage.relation }), "%s: %v", damage.sql, list)
		require.EqualValues(t, 1, is.result.Repaired, damage.sql)
		require.Zero(t, is.Left, damage.sql)
		require.Equal(t, want, h.ids(), damage.sql)
		if damage.relation != "balance_rounds" { // which alone is written again
			_, err = h.leader.AppendTransactions(t.Context(), h.at, nil, h.all()[:1])
			require.ErrorIs(t, err, store.ErrPositionMoved, "who writes sees that it was read again")
		}
	}
}

// A service with another order is distinguished from damage: every record of its page differs. A repair reads it as it
// is.
func TestAnotherOrderIsVerified(t *testing.T) {
	t.Parallel()
	h := newServedTransactions(t, 100, sandbox.ScanOptions{})
	records := h.all()
	want := h.scan.EventIDs()
	slices.Reverse(records)
	h.append(records)
	list, is, err := h.verify(false)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	require.Contains(t, strings.Join(is.Notes, " "), "in another order")
	_, is, err = h.verify(true)
	require.NoError(t, err)
	require.Zero(t, is.Left)
	require.Equal(t, want, h.ids())
}

// A service that lacks records is not repaired from, and another network's is not compared with.
func TestWhoseHistoryIsNotReadAgain(t *testing.T) {
	t.Parallel()
	h := newServedTransactions(t, 100, sandbox.ScanOptions{})
	h.append(h.all())
	h.append([]ledger.Record{{EventID: "lost", Kind: ledger.RecordUnknown, Raw: ledger.JSON(`{}`)}})
	list, _, err := h.verify(false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	var problem *ledger.Problem
	_, _, err = h.verify(true)
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "has fewer records than are stored")
	h.exec("UPDATE indexer.network SET network_id = 'another'")
	_, _, err = h.verify(false)
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.Do, "--scan-url")
}

// listed is a service with a list of records, so many to a page.
type listed struct {
	records []ledger.Record
	page    int
	asked   func(*listed) // before it is said who it is
	service ledger.TransactionsService
}

func (l *listed) Describe(ctx context.Context) (ledger.TransactionsService, error) {
	if l.asked != nil {
		l.asked(l)
	}
	return l.service, ctx.Err()
}

func (l *listed) TransactionsAfter(_ context.Context, id string) ([]ledger.Record, error) {
	from := 0
	if id != "" {
		from = 1 + slices.IndexFunc(l.records, func(t ledger.Record) bool { return t.EventID == id })
	}
	return l.records[from:min(len(l.records), from+l.page)], nil
}

func (l *listed) NewestTransactions(context.Context, int) ([]ledger.Record, error) {
	return l.records[max(0, len(l.records)-1):], nil
}

// verifies verifies a history with a service.
func (h *testHistory) verifies(source ingest.TransactionsSource, r *Repairer) (list []Difference, is *Transactions) {
	return list, &Transactions{Source: source, Verification: verificationOf(h.l.store.Stored, r, &list)}
}

// Records that share an event id can't be read on after. A page of nothing else is not taken for the last one.
func TestAPageOfOneEventID(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	texts := []string{"a", "b/1", "b/2", "b/3", "c"}
	h.append(texts...)
	source := &listed{records: storetest.RecordsOf(texts), page: 3}
	list, v := h.verifies(source, nil)
	_, err := v.Run(t.Context())
	require.ErrorContains(t, err, "share an event id")
	require.Empty(t, list)
	source.page = 4
	_, err = v.Run(t.Context())
	require.NoError(t, err)
}

// What differs is repaired, whether or not it was reported before.
func TestWhatWasReportedBeforeIsRepaired(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	h.Exec("UPDATE indexer.transactions SET event_id = 'x' WHERE seq = 2")
	v := Transactions{Source: &listed{records: storetest.RecordsOf([]string{"a", "b"}), page: 10}}
	var list []Difference
	v.Verification = verificationOf(h.l.store.Stored, nil, &list)
	_, err := v.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	v.Repairer = h.repairs(h.l.store)
	is, err := v.Run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, is.Repaired)
	require.Len(t, list, 1)
	require.Equal(t, "b", h.Row("SELECT event_id FROM indexer.transactions WHERE seq = 2"))
}

// A repair does not wait for ever for a service that can't be read any more after the history was cleared.
func TestARepairThatWaitsForItsService(t *testing.T) {
	t.Parallel()
	for why, source := range map[string]*listed{
		"its history is empty": {page: 10},
		"backfilling": {page: 10, records: storetest.RecordsOf([]string{"a"}), asked: func(l *listed) {
			l.asked = func(l *listed) { l.service.Backfilling = true } // from the second time on
		}},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			h.Exec("INSERT INTO indexer.transactions (seq, event_id, kind, fingerprint) VALUES (7, 'stray', 'tap', 0)")
			_, v := h.verifies(source, h.repairs(h.l.store))
			v.most = 1
			_, err := v.Run(t.Context())
			var problem *ledger.Problem
			require.ErrorAs(t, err, &problem)
			require.ErrorContains(t, problem, why)
			require.Equal(t, "0", h.Row("SELECT count(*) FROM indexer.transactions"))
		})
	}
}
