package verify

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/scan"
	"ledgerindexer/store"
)

// servedHistory is a simulated service, and a database that has read its history.
type servedHistory struct {
	t      *testing.T
	ledger *sandbox.Ledger
	scan   *sandbox.Scan
	client *scan.Client
	store  *store.Store
	leader *store.TransactionsWriter
	conn   *pgx.Conn
	at     ledger.HistoryPosition
}

func migrateStore(ctx context.Context, url string) error {
	s, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Migrate(ctx)
	return err
}

func newServedHistory(t *testing.T, updates int, opts sandbox.ScanOptions) *servedHistory {
	t.Helper()
	h := &servedHistory{t: t, ledger: sandbox.NewLedger(sandbox.Options{Seed: 77})}
	h.ledger.Grow(updates)
	opts.BalanceChanges, opts.ExtraKinds, opts.OddShapes = true, true, true
	h.scan = sandbox.NewScan(h.ledger, opts)
	server := httptest.NewServer(h.scan)
	t.Cleanup(server.Close)
	url := throwaway.Migrated(t, migrateStore)
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

// follow stores what the service shows behind the last record, in its order, some records at a time.
func (h *servedHistory) follow(from, to int) {
	h.t.Helper()
	for _, page := range h.pages()[from:to] {
		h.append(page)
	}
}

func (h *servedHistory) append(records []ledger.Transaction) {
	h.t.Helper()
	at, err := h.leader.AppendTransactions(h.t.Context(), h.at, records)
	require.NoError(h.t, err)
	h.at = at
}

// pages are all records that are served, by thirty.
func (h *servedHistory) pages() [][]ledger.Transaction {
	h.t.Helper()
	return slices.Collect(slices.Chunk(h.all(), 30))
}

func (h *servedHistory) all() []ledger.Transaction {
	h.t.Helper()
	p := pager{source: h.client}
	var all []ledger.Transaction
	for {
		page, err := p.next(h.t.Context())
		require.NoError(h.t, err)
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
	}
	require.Len(h.t, all, len(h.scan.EventIDs()))
	return all
}

func (h *servedHistory) followAll() {
	h.t.Helper()
	h.follow(0, len(h.pages()))
}

// verify compares, and repairs if that is wanted.
func (h *servedHistory) verify(repair bool) ([]ledger.Difference, HistoryResult) {
	h.t.Helper()
	var list []ledger.Difference
	v := History{
		Source: h.client, Database: h.store, Logger: slog.New(slog.DiscardHandler), Progress: func(Progress) {},
		Found: func(d ledger.Difference) error { list = append(list, d); return nil },
	}
	if repair {
		r, ok, err := h.store.Repairer(h.t.Context())
		require.NoError(h.t, err)
		require.True(h.t, ok)
		defer r.Close()
		v.Repairer = r
	}
	result, err := v.Run(h.t.Context())
	require.NoError(h.t, err)
	return list, result
}

func (h *servedHistory) exec(sql string, args ...any) int64 {
	h.t.Helper()
	tag, err := h.conn.Exec(h.t.Context(), sql, args...)
	require.NoError(h.t, err, sql)
	return tag.RowsAffected()
}

// rows is all that is stored of the history, but for what repairs may change.
func (h *servedHistory) rows() []string {
	h.t.Helper()
	var parts []string
	for _, relation := range historyTables {
		parts = append(parts, fmt.Sprintf("SELECT '%s ' || (to_jsonb(x) - 'revision' - 'updated_at' - 'recorded_at')::text AS row FROM indexer.%[1]s x", relation))
	}
	rows, err := h.conn.Query(h.t.Context(), strings.Join(parts, " UNION ALL ")+" ORDER BY 1")
	require.NoError(h.t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(h.t, err)
	return list
}

// requireRows compares rows with what is stored, and shows only what differs.
func (h *servedHistory) requireRows(wanted []string, message string) {
	h.t.Helper()
	stored := h.rows()
	one := slices.DeleteFunc(slices.Clone(wanted), func(row string) bool { return slices.Contains(stored, row) })
	other := slices.DeleteFunc(slices.Clone(stored), func(row string) bool { return slices.Contains(wanted, row) })
	require.Equal(h.t, one, other, message)
	require.Len(h.t, stored, len(wanted), message)
}

var historyTables = []string{
	"transactions", "transfers", "transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions",
	"unknown_transactions", "record_exact_payloads", "party_transfers", "balance_totals", "latest_totals", "balance_rounds",
	"history_position", "history_gone", "history_sightings", "checkpoints", "network",
}

// altered is, by type, what is made of a value, which may be NULL.
var altered = map[string]string{
	"int8": "coalesce(%s, 0) + 100000", "int4": "coalesce(%s, 0) + 100000", "text": "coalesce(%s, '') || '?'", "bool": "NOT coalesce(%s, false)",
	"timestamptz": "coalesce(%s, now()) + interval '1 microsecond'", "jsonb": "jsonb_build_array(%s)", "bytea": `coalesce(%s, '') || '\x00'`,
	"numeric": "coalesce(%s, 0) + 1", "_int8": "%s[2:]",
}

func names(list []ledger.Difference) []string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].String()
	}
	return texts
}

func TestHistoryIsEqual(t *testing.T) {
	t.Parallel()
	h := newServedHistory(t, 500, sandbox.ScanOptions{PageLimit: 100})
	list, result := h.verify(false)
	require.Empty(t, names(list), "nothing was read yet")
	require.Zero(t, result.Records)
	h.followAll()
	require.Greater(t, h.at.LastSeq, int64(100))
	list, result = h.verify(false)
	require.Empty(t, names(list))
	require.Equal(t, h.at.LastSeq, result.Records)
	require.Empty(t, result.Notes)
	before := h.rows()
	list, result = h.verify(true)
	require.Empty(t, names(list))
	require.Zero(t, result.Repaired)
	h.requireRows(before, "")
	// What is beyond the position is for the daemon to read.
	h.ledger.Grow(400)
	list, _ = h.verify(false)
	require.Empty(t, names(list))
}

// Whichever column of whichever row of the history is altered: it is named, and repaired.
func TestHistoryColumnsAreRepaired(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("alters columns and rows one after the other, and compares each time")
	}
	h := newServedHistory(t, 300, sandbox.ScanOptions{})
	h.followAll()
	truth := h.rows()
	rows, err := h.conn.Query(t.Context(), `SELECT relname || '.' || attname || ' ' || typname FROM pg_attribute a
		JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid
		WHERE relnamespace = 'indexer'::regnamespace AND relname = ANY ($1) AND attnum > 0 AND NOT attisdropped ORDER BY 1`, historyTables)
	require.NoError(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	for _, field := range columns {
		column, typeName, _ := strings.Cut(field, " ")
		relation, name, _ := strings.Cut(column, ".")
		if notCompared[column] {
			continue
		}
		where := "true"
		if relation == "checkpoints" {
			where = "stream = 'transactions'"
		}
		rows, err := h.conn.Query(t.Context(), fmt.Sprintf("SELECT ctid::text FROM indexer.%s WHERE %s ORDER BY 1", relation, where))
		require.NoError(t, err)
		places, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		if len(places) == 0 {
			continue
		}
		value := fmt.Sprintf(altered[typeName], name)
		h.exec(fmt.Sprintf("UPDATE indexer.%s SET %s = %s WHERE ctid = '%s'", relation, name, value, places[random.IntN(len(places))]))
		list, result := h.verify(true)
		require.True(t, slices.ContainsFunc(list, func(d ledger.Difference) bool {
			return d.Relation == relation && (d.Kind != ledger.Altered || d.Column == name)
		}), "%s: %s", column, names(list))
		require.Zero(t, result.Remaining, column)
		h.requireRows(truth, column)
	}
	list, _ := h.verify(false)
	require.Empty(t, names(list))
}

// notCompared are columns that no source tells, or that may have another value.
var notCompared = map[string]bool{
	"checkpoints.updated_at": true, "network.recorded_at": true, "history_position.revision": true, "history_position.ordered_from": true,
	"history_position.only_row": true, "network.only_row": true, "balance_rounds.only_row": true,
}
