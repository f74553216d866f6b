package audit

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
)

// pairTest is a pair of schemas in a database that has two.
type pairTest struct {
	store.Schemas
	store        *opened
	updates      *updatesWriter
	transactions *transactionsWriter
}

// definitions are what schemas hold, as a session sees it that looks nowhere, with the names of the default pair.
func (p *pairTest) definitions(d *testDB) []string {
	d.T.Helper()
	conn, err := pgx.Connect(d.T.Context(), d.URL)
	require.NoError(d.T, err)
	defer func() { require.NoError(d.T, conn.Close(context.WithoutCancel(d.T.Context()))) }()
	bare := &testDB{&storetest.DB{T: d.T, URL: d.URL, Conn: conn}}
	bare.Exec("SET search_path = ''")
	list := bare.Rows(`
		SELECT n.nspname::text, obj_description(n.oid, 'pg_namespace') FROM pg_namespace n WHERE n.nspname IN ($1, $2)
		UNION ALL
		SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid) || obj_description(p.oid, 'pg_proc')
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ($1, $2)
		UNION ALL
		SELECT c.oid::regclass || ' ' || c.relkind::text || ' ' || coalesce(c.reloptions::text, ''),
			CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid) WHEN 'i' THEN pg_get_indexdef(c.oid) WHEN 'I' THEN pg_get_indexdef(c.oid) END
			|| obj_description(c.oid, 'pg_class')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ($1, $2) AND c.relname NOT LIKE 'schema_version%'
		UNION ALL
		SELECT c.oid::regclass || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod), coalesce(pg_get_expr(f.adbin, f.adrelid), '')
			|| col_description(c.oid, a.attnum)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
		WHERE n.nspname IN ($1, $2) AND a.attnum > 0 AND NOT a.attisdropped AND c.relname NOT LIKE 'schema_version%'
		UNION ALL
		SELECT t.tgrelid::regclass || ' ' || t.tgname, pg_get_triggerdef(t.oid)
		FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ($1, $2)
		UNION ALL
		SELECT k.conrelid::regclass || ' ' || k.conname, pg_get_constraintdef(k.oid)
		FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace WHERE n.nspname IN ($1, $2) AND k.conname NOT LIKE 'schema_version%'`,
		p.Tables, p.Views)
	for i, line := range list {
		list[i] = strings.NewReplacer(p.Tables, "indexer", p.Views, "ledger").Replace(line)
	}
	return storetest.Sorted(list)
}

// contents is every row of the pair's tables.
func (p *pairTest) contents(d *testDB) (list []string) {
	d.T.Helper()
	for _, table := range d.Rows("SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')", p.Tables) {
		for _, row := range d.Rows("SELECT r::text FROM " + pgx.Identifier{p.Tables, table}.Sanitize() + " r") {
			list = append(list, table+" "+row)
		}
	}
	return storetest.Sorted(list)
}

// differences is what a pair finds with itself, and with what it should hold.
func (p *pairTest) differences(t *testing.T, pages []ledger.Page) (list []Difference) {
	t.Helper()
	for _, page := range pages {
		require.NoError(t, p.store.Compare(t.Context(), page, storetest.Collect(&list)))
	}
	_, err := p.store.CompareCoverage(t.Context(), nil, storetest.Collect(&list))
	require.NoError(t, err)
	require.NoError(t, p.store.CompareDerived(t.Context(), nil, storetest.Collect(&list)))
	require.NoError(t, p.store.ComparePosition(t.Context(), func(string) {}, storetest.Collect(&list)))
	require.NoError(t, p.store.CompareBalances(t.Context(), func(string) {}, storetest.Collect(&list)))
	return list
}

func (p *pairTest) status(t *testing.T) store.Status {
	t.Helper()
	status, err := p.store.Status(t.Context())
	require.NoError(t, err)
	return status
}

// Two pairs of schemas are two databases in one: neither sees the other.
func TestPairsOfSchemas(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "migrates a pair of schemas, and does most things in it")
	d := &testDB{storetest.New(t, throwaway.Database(t))}
	ctx := t.Context()
	open := func(pair store.Schemas) *opened { return d.open(d.URL, func(cfg *store.Config) { cfg.Schemas = pair }) }
	lead := func(p *pairTest) { p.updates, p.transactions = d.leadUpdates(p.store), d.leadTransactions(p.store) }
	first, second := &pairTest{Schemas: session.DefaultSchemas}, &pairTest{Schemas: store.Schemas{Tables: "second_tables", Views: "second_views"}}
	files, err := filepath.Glob("../../migrations/*.sql")
	require.NoError(t, err)
	for _, p := range []*pairTest{second, first} { // the one of the longer name first: no default is needed
		p.store = open(p.Schemas)
		require.ErrorIs(t, p.store.CheckSchema(ctx), store.ErrSchemaOlder)
		applied, err := p.store.Migrate(ctx)
		require.NoError(t, err)
		require.Len(t, applied, len(files))
		require.NoError(t, p.store.CheckSchema(ctx))
	}
	require.Greater(t, len(first.definitions(d)), 500)
	require.Equal(t, first.definitions(d), second.definitions(d))

	// Both are led at the same time, and written.
	lead(first)
	lead(second)
	for _, p := range []*pairTest{first, second} {
		_, ok, err := open(p.Schemas).LeadUpdates(ctx)
		require.NoError(t, err)
		require.False(t, ok, "another process leads the pair")
	}
	firstPages, secondPages := storetest.EveryKind(0), storetest.OneCreation(0, 3_000_000)
	require.NoError(t, first.updates.Start(ctx, "participant::1", storetest.Scope, 0, true))
	require.Zero(t, second.status(t).Watermark)
	require.NoError(t, second.updates.Start(ctx, "participant::2", storetest.Scope, 0, true))
	require.NoError(t, first.updates.Append(ctx, storetest.Scope, firstPages))
	untouched := first.contents(d)
	require.NoError(t, second.updates.Append(ctx, storetest.Scope, secondPages))
	_, err = second.transactions.AppendTransactions(ctx, ledger.TransactionsPosition{}, nil, storetest.EveryTransaction(t))
	require.NoError(t, err)
	require.Equal(t, untouched, first.contents(d))

	for p, want := range map[*pairTest]struct {
		participant string
		watermark   ledger.Offset
		own, others []ledger.Page
	}{first: {"participant::1", 4, firstPages, secondPages}, second: {"participant::2", 3_000_000, secondPages, firstPages}} {
		at, _, err := p.store.Watermark(ctx)
		require.NoError(t, err)
		require.Equal(t, want.watermark, at)
		require.NoError(t, p.store.CheckIdentity(ctx, want.participant, storetest.Scope))
		storetest.RequireProblem(t, p.store.CheckIdentity(ctx, "another", storetest.Scope), want.participant)
		require.Empty(t, p.differences(t, want.own))
		require.NotEmpty(t, p.differences(t, want.others))
	}
	require.Equal(t, "4 3000000", d.Row("SELECT ledger.latest_offset(), second_views.latest_offset()"))
	require.Equal(t, "1", d.Row("SELECT count(*) FROM second_views.created_events"))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger.transactions"))
	for _, contract := range []string{"contract-0", "contract-3000000"} {
		history, err := first.store.ContractHistory(ctx, contract)
		require.NoError(t, err)
		others, err := second.store.ContractHistory(ctx, contract)
		require.NoError(t, err)
		require.NotEqual(t, len(history.Events), len(others.Events), contract)
	}

	// What is sealed in one, and repaired, is nothing to the other, which writes meanwhile.
	untouched = second.contents(d)
	_, err = first.updates.SealUpdates(ctx, firstPages[0])
	require.NoError(t, err)
	require.Equal(t, "4 0", d.Row("SELECT ledger.verified_offset(), second_views.verified_offset()"))
	verified, err := second.store.Verified(ctx)
	require.NoError(t, err)
	require.Zero(t, verified.Windows)
	d.Exec("DELETE FROM indexer.active_contracts")
	require.NotEmpty(t, first.differences(t, firstPages))
	require.Empty(t, second.differences(t, secondPages))
	repairer, ok, err := LeadRepair(ctx, first.store.Store)
	require.NoError(t, err)
	require.True(t, ok)
	t.Cleanup(repairer.Close)
	require.NoError(t, repairer.RepairDerived(ctx, nil))
	require.Empty(t, first.differences(t, firstPages))
	require.Equal(t, untouched, second.contents(d))
	require.NoError(t, repairer.repair(ctx, leasesThatRemember, func(ctx context.Context, _ pgx.Tx) error {
		return second.updates.Append(ctx, storetest.Scope, storetest.OneCreation(3_000_000, 3_000_001))
	}), "a writer waits for the repair of another pair")

	// The next leader of one ends sessions of its own pair only.
	repairer.Close()
	sessions := func(p *pairTest) []string {
		return d.Rows("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1) ORDER BY 1", p.SessionPrefix(store.LeaseUpdates))
	}
	kept := sessions(second)
	require.NotEmpty(t, kept)
	d.EndLock(store.LeaseUpdates)
	<-first.updates.Lost()
	next := d.leadUpdates(open(store.Schemas{}))
	require.Equal(t, kept, sessions(second))
	require.NoError(t, second.updates.Err())
	require.NoError(t, second.updates.Append(ctx, storetest.Scope, storetest.OneCreation(3_000_001, 3_000_002)))
	untouched = second.contents(d)
	_, err = next.Reset(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, untouched, second.contents(d))
	require.Equal(t, "2 3000002", d.Row("SELECT ledger.latest_offset(), second_views.latest_offset()"))
}
