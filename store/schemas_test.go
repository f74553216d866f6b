package store

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func TestSchemasThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, pair := range []Schemas{
		{}, {Tables: "second"}, {Views: "second"}, {Tables: "_a1", Views: "_a2"}, {Tables: strings.Repeat("a", 24)}, {Tables: "ledger", Views: "indexer"},
	} {
		require.NoError(t, pair.Validate(), pair)
	}
	for _, pair := range []Schemas{
		{Tables: "Second"}, {Tables: "1st"}, {Views: "a b"}, {Views: `a"b`}, {Views: "a.b"}, {Tables: "é"}, {Tables: "a,b"}, {Tables: strings.Repeat("a", 25)},
		{Tables: "pg_temp"}, {Views: "pg_catalog"}, {Tables: "public"}, {Views: "information_schema"},
		{Tables: "same", Views: "same"}, {Tables: "ledger"}, {Views: "indexer"},
	} {
		require.ErrorContains(t, pair.Validate(), "schema", pair)
		_, err := Open(Config{URL: "postgres://nowhere", Schemas: pair})
		require.ErrorContains(t, err, "schema", pair)
	}
}

// PostgreSQL cuts the names of sessions. What tells a role's leaders from others' has to be left.
func TestSessionsAreTold(t *testing.T) {
	t.Parallel()
	prefixes := map[string]bool{}
	numbers := map[int32]bool{}
	pairs := []Schemas{defaultSchemas, {Tables: "second"}, {Tables: strings.Repeat("a", 24)}, {Tables: strings.Repeat("a", 23) + "b"}}
	for _, pair := range pairs {
		for role := range roleNumbers {
			prefix := pair.sessionPrefix(role)
			require.LessOrEqual(t, len(prefix), 60)
			prefixes[prefix] = true
			require.Positive(t, pair.roleNumber(role))
			numbers[pair.roleNumber(role)] = true
		}
	}
	require.Len(t, prefixes, len(pairs)*len(roleNumbers))
	require.Len(t, numbers, len(pairs)*len(roleNumbers))
}

// Whoever calls a function has a search path of their own.
func TestFunctionsLookNamesUpWhereTheyWereMade(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	require.Empty(t, d.rows(`SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace IN ('indexer'::regnamespace, 'ledger'::regnamespace)
		AND prosqlbody IS NULL AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=%')`))
}

// pairTest is a pair of schemas in a database that has two.
type pairTest struct {
	Schemas
	store        *Store
	updates      *UpdatesWriter
	transactions *TransactionsWriter
}

// definitions are what schemas hold, as a session sees it that looks nowhere, with the names of the default pair.
func (p *pairTest) definitions(d *testDB) []string {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.url)
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, conn.Close(context.WithoutCancel(d.t.Context()))) }()
	bare := &testDB{t: d.t, url: d.url, conn: conn}
	bare.exec("SET search_path = ''")
	list := bare.rows(`
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
		SELECT k.conrelid::regclass || ' ' || k.conname, pg_get_constraintdef(k.oid)
		FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace WHERE n.nspname IN ($1, $2) AND k.conname NOT LIKE 'schema_version%'`,
		p.Tables, p.Views)
	for i, line := range list {
		list[i] = strings.NewReplacer(p.Tables, "indexer", p.Views, "ledger").Replace(line)
	}
	return sorted(list)
}

// contents is every row of the pair's tables.
func (p *pairTest) contents(d *testDB) (list []string) {
	d.t.Helper()
	for _, table := range d.rows("SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')", p.Tables) {
		for _, row := range d.rows("SELECT r::text FROM " + pgx.Identifier{p.Tables, table}.Sanitize() + " r") {
			list = append(list, table+" "+row)
		}
	}
	return sorted(list)
}

// differences is what a pair finds with itself, and with what it should hold.
func (p *pairTest) differences(t *testing.T, pages []ledger.Page) (list []ledger.Difference) {
	t.Helper()
	for _, page := range pages {
		require.NoError(t, p.store.Compare(t.Context(), page, collect(&list)))
	}
	_, err := p.store.CompareCoverage(t.Context(), nil, collect(&list))
	require.NoError(t, err)
	require.NoError(t, p.store.CompareDerived(t.Context(), nil, collect(&list)))
	require.NoError(t, p.store.ComparePosition(t.Context(), func(string) {}, collect(&list)))
	require.NoError(t, p.store.CompareBalances(t.Context(), func(string) {}, collect(&list)))
	return list
}

func (p *pairTest) status(t *testing.T) Status {
	t.Helper()
	status, err := p.store.Status(t.Context())
	require.NoError(t, err)
	return status
}

// Two pairs of schemas are two databases in one: neither sees the other.
func TestPairsOfSchemas(t *testing.T) {
	t.Parallel()
	d := emptyDatabase(t)
	ctx := t.Context()
	open := func(pair Schemas) *Store { return d.open(d.url, func(cfg *Config) { cfg.Schemas = pair }) }
	lead := func(p *pairTest) { p.updates, p.transactions = d.leadUpdates(p.store), d.leadTransactions(p.store) }
	first, second := &pairTest{Schemas: defaultSchemas}, &pairTest{Schemas: Schemas{Tables: "second_tables", Views: "second_views"}}
	newest, err := SchemaVersion()
	require.NoError(t, err)
	for _, p := range []*pairTest{second, first} { // the one of the longer name first: no default is needed
		p.store = open(p.Schemas)
		require.ErrorIs(t, p.store.CheckSchema(ctx), ErrSchemaOlder)
		applied, err := p.store.Migrate(ctx)
		require.NoError(t, err)
		require.Len(t, applied, int(newest))
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
	firstPages, secondPages := everyKind(0), oneCreation(0, 3_000_000)
	require.NoError(t, first.updates.Start(ctx, "participant::1", testScope, 0, true))
	require.Zero(t, second.status(t).Watermark)
	require.NoError(t, second.updates.Start(ctx, "participant::2", testScope, 0, true))
	require.NoError(t, first.updates.Append(ctx, testScope, firstPages))
	untouched := first.contents(d)
	require.NoError(t, second.updates.Append(ctx, testScope, secondPages))
	_, err = second.transactions.AppendTransactions(ctx, ledger.HistoryPosition{}, nil, batchOf(everyTransaction(t)))
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
		require.NoError(t, p.store.CheckIdentity(ctx, want.participant, testScope))
		requireProblem(t, p.store.CheckIdentity(ctx, "another", testScope), want.participant)
		require.Empty(t, p.differences(t, want.own))
		require.NotEmpty(t, p.differences(t, want.others))
	}
	require.Equal(t, "4 3000000", d.row("SELECT ledger.latest_offset(), second_views.latest_offset()"))
	require.Equal(t, "1", d.row("SELECT count(*) FROM second_views.created_events"))
	require.Equal(t, "0", d.row("SELECT count(*) FROM ledger.transactions"))
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
	require.Equal(t, "4 0", d.row("SELECT ledger.verified_offset(), second_views.verified_offset()"))
	verified, err := second.store.Verified(ctx)
	require.NoError(t, err)
	require.Zero(t, verified.Windows)
	d.exec("DELETE FROM indexer.active_contracts")
	require.NotEmpty(t, first.differences(t, firstPages))
	require.Empty(t, second.differences(t, secondPages))
	repairer, ok, err := first.store.Repairer(ctx)
	require.NoError(t, err)
	require.True(t, ok)
	t.Cleanup(repairer.Close)
	require.NoError(t, repairer.RepairDerived(ctx, nil))
	require.Empty(t, first.differences(t, firstPages))
	require.Equal(t, untouched, second.contents(d))
	require.NoError(t, repairer.repair(ctx, rolesThatRemember, func(ctx context.Context, _ pgx.Tx) error {
		return second.updates.Append(ctx, testScope, oneCreation(3_000_000, 3_000_001))
	}), "a writer waits for the repair of another pair")

	// The next leader of one ends sessions of its own pair only.
	repairer.Close()
	sessions := func(p *pairTest) []string {
		return d.rows("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1) ORDER BY 1", p.sessionPrefix(RoleUpdates))
	}
	kept := sessions(second)
	require.NotEmpty(t, kept)
	d.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'ledgerindexer updates lock'")
	<-first.updates.Lost()
	next := d.leadUpdates(open(Schemas{}))
	require.Equal(t, kept, sessions(second))
	require.NoError(t, second.updates.Err())
	require.NoError(t, second.updates.Append(ctx, testScope, oneCreation(3_000_001, 3_000_002)))
	untouched = second.contents(d)
	_, err = next.Reset(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, untouched, second.contents(d))
	require.Equal(t, "2 3000002", d.row("SELECT ledger.latest_offset(), second_views.latest_offset()"))
}

// What was migrated as a pair is opened as one.
func TestSchemasOfAnotherPair(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	open := func(tables, views string) *Store {
		return d.open(d.url, func(cfg *Config) { cfg.Schemas = Schemas{Tables: tables, Views: views} })
	}
	_, err := open("second_tables", "second_views").Migrate(t.Context())
	require.NoError(t, err)
	for _, s := range []*Store{open("indexer", "second_views"), open("second_tables", "ledger"), open("", "elsewhere")} {
		requireProblem(t, s.CheckSchema(t.Context()), "are shown by views in schema", "--views-schema")
		_, err := s.Migrate(t.Context())
		requireProblem(t, err, "are shown by views in schema", "--views-schema")
	}
	_, err = open("third_tables", "ledger").Migrate(t.Context())
	requireProblem(t, err, "has a schema ledger already", "--views-schema")
	for _, pair := range [][2]string{{"user", "fourth"}, {"fourth", "select"}} {
		_, err = open(pair[0], pair[1]).Migrate(t.Context())
		requireProblem(t, err, "a word of SQL", "another name")
	}
	schemas := d.rows("SELECT nspname FROM pg_namespace WHERE NOT starts_with(nspname, 'pg_') ORDER BY 1")
	require.Equal(t, []string{"indexer", "information_schema", "ledger", "public", "second_tables", "second_views"}, schemas)
	require.False(t, slices.Contains(schemas, "third_tables"))
}

// No statement says in which schema what it names lies, or it would read and write another pair's.
func TestNoStatementNamesASchema(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("\\b(indexer|ledger)\\.[a-z_\"`%]")
	sources := 0
	for _, root := range []string{".", "../queries"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			sources++
			text, err := os.ReadFile(path)
			for number, line := range strings.Split(string(text), "\n") {
				code, _, _ := strings.Cut(line, "// ")
				code, _, _ = strings.Cut(code, "-- ")
				require.NotRegexp(t, named, code, "%s:%d", path, number+1)
			}
			return err
		}))
	}
	require.Greater(t, sources, 100)
}
