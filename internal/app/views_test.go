package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// viewsOf are views in schema typed.
func viewsOf(database string, templates ...string) Views {
	return Views{ViewsSchema: ViewsSchema{Database: config.Database{DatabaseURL: database}, Schema: "typed"}, Templates: templates, All: len(templates) == 0}
}

// Every value of the ledger is in its column, of its type.
func TestTypedViewsShowEveryValue(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "reads all packages of a ledger, and compares every value")
	database, _, _ := typedWorld.indexed(t)
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	require.Greater(t, len(reports), 25)
	for _, r := range reports {
		require.Empty(t, r.Failure)
		require.True(t, r.New)
	}

	for _, relation := range []struct{ views, rows string }{
		{"typed.bank_account", "ledger.created_events WHERE package_name = 'bank' AND entity_name = 'Account'"},
		{"typed.trade_agreement", "ledger.created_events WHERE package_name = 'trade' AND entity_name = 'Agreement'"},
		{"typed.splice_api_token_holding_v1_holding", "ledger.interface_views WHERE package_name = 'splice-api-token-holding-v1'"},
		{"typed.trade_offer_quote", "ledger.exercised_events WHERE choice = 'Offer_Quote'"},
		{"typed.bank_api_holding_transfer", "ledger.exercised_events WHERE choice = 'Holding_Transfer'"},
	} {
		rows := count(t, database, relation.rows)
		require.Positive(t, rows, relation.rows)
		require.Equal(t, rows, count(t, database, relation.views), relation.views)
	}
	require.Equal(t, texts(t, database, "SELECT DISTINCT contract_id FROM ledger.active_contracts WHERE entity_name = 'Account' ORDER BY 1"),
		texts(t, database, "SELECT DISTINCT contract_id FROM typed.bank_account WHERE active ORDER BY 1"))

	analyst := reader(t, database)
	examples := statements(section(t, "../../docs/types.md", "says what each view and each column is of", "A view of a template has a row"))
	require.Len(t, examples, 4)
	for _, query := range examples {
		tag, err := analyst.Exec(t.Context(), query)
		require.NoError(t, err, query)
		require.Positive(t, tag.RowsAffected(), query)
	}

	requireTypedViewsToldOf(t, database)
	require.Positive(t, count(t, database, "typed.splice_api_token_holding_v1_holding v WHERE v.template_id = (SELECT c.template_id FROM ledger.created_events c WHERE c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id)"))
	require.Zero(t, count(t, database, "typed.splice_api_token_holding_v1_holding v WHERE v.template_id IS NULL"))
	compared := compareWithValues(t, database, reports)
	for _, kind := range []string{"boolean", "bigint", "numeric(38,10)", "date", "timestamp with time zone", "text", "jsonb", "@key", "@result"} {
		require.Greater(t, compared[kind], 20, kind)
	}
	require.Equal(t, []string{"numeric"}, texts(t, database, "SELECT DISTINCT pg_typeof(notional)::text FROM typed.trade_agreement"))
	require.Equal(t, []string{"rate: Optional of Numeric 10"}, texts(t, database,
		"SELECT col_description('typed.trade_agreement'::regclass, attnum) FROM pg_attribute WHERE attrelid = 'typed.trade_agreement'::regclass AND attname = 'rate'"))
}

// requireTypedViewsToldOf compares ledger.typed_views with the catalog, and with the fields of packages.
func requireTypedViewsToldOf(t *testing.T, database string) {
	t.Helper()
	require.Equal(t, texts(t, database, `SELECT format('%s.%s %s %s', v.view_schema, v.view_name, v.ordinal, v.column_name) || ' ' || v.type FROM ledger.typed_views v
		ORDER BY v.view_schema, v.view_name COLLATE "C", v.ordinal`),
		texts(t, database, `SELECT format('%s.%s %s %s', n.nspname, c.relname, a.attnum, a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'typed' AND c.relkind = 'v' AND a.attnum > 0 ORDER BY n.nspname, c.relname COLLATE "C", a.attnum`))
	require.Equal(t, []string{"argument", "key", "payload", "result", "view"}, texts(t, database, "SELECT DISTINCT part FROM ledger.typed_views WHERE part IS NOT NULL ORDER BY 1"))
	require.Empty(t, texts(t, database, `SELECT DISTINCT format('%s %s %s', v.view_name, v.part, v.path) FROM ledger.typed_views v
		WHERE v.part IS NOT NULL AND EXISTS (SELECT FROM ledger.fields) AND NOT EXISTS (
			SELECT FROM ledger.fields f
			WHERE (f.package_name, f.module_name, f.entity_name, f.part, f.path) = (v.package_name, v.module_name, v.entity_name, v.part, v.path)
				AND f.choice IS NOT DISTINCT FROM v.choice)`), "a path leads to a field")
	require.Equal(t, []string{"choice", "interface", "template"}, texts(t, database, "SELECT DISTINCT kind FROM ledger.typed_views ORDER BY 1"))
}

// What is vetted has views before anything happens with it.
func TestTypedViewsBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 70})
	l.Grow(1)
	database, _ := withTypes(t, l, sandbox.ServerOptions{}, effects(),
		"EXISTS (SELECT FROM ledger.packages WHERE package_name = 'trade' AND types = 'known') AND NOT EXISTS (SELECT FROM ledger.packages WHERE types = 'missing')")
	require.Zero(t, count(t, database, "ledger.events WHERE template_id IN (SELECT template_id FROM ledger.templates WHERE package_name = 'trade')"))
	reports, err := CreateViews(t.Context(), viewsOf(database, "trade:Agreement"), testLogger(t))
	require.NoError(t, err)
	require.Equal(t, "trade_agreement", reports[0].Name)
	require.Zero(t, count(t, database, "typed.trade_agreement"))
}

// compareWithValues holds every column of views against its value, computed from the JSON by the rules for the column's
// path, and returns how many values of each type there were.
func compareWithValues(t *testing.T, database string, reports []ViewReport) map[string]int {
	t.Helper()
	conn := open(t, database)
	compared := map[string]int{}
	for _, r := range reports {
		columns, err := conn.Query(t.Context(), "SELECT c.name, c.path, c.type FROM indexer.typed_views v, jsonb_to_recordset(v.columns) c (name text, path jsonb, type text) WHERE v.view_name = $1", r.Name)
		require.NoError(t, err)
		type column struct {
			Name string
			Path []string
			Type string
		}
		list, err := pgx.CollectRows(columns, pgx.RowToStructByPos[column])
		require.NoError(t, err)
		require.Empty(t, texts(t, database, `SELECT format('%s is %s, not %s', c ->> 'name', format_type(a.atttypid, a.atttypmod), c ->> 'type')
			FROM indexer.typed_views v, jsonb_array_elements(v.columns) c
			LEFT JOIN pg_attribute a ON a.attrelid = ('typed.' || quote_ident($1))::regclass AND a.attname = c ->> 'name'
			WHERE v.view_name = $1 AND format_type(a.atttypid, a.atttypmod) IS DISTINCT FROM c ->> 'type'`, r.Name), r.Name)
		value := list[len(list)-1].Name
		for _, c := range list {
			switch c.Path[0] {
			case "@payload", "@view_value", "@choice_argument":
				value = c.Name
			}
		}
		rows, err := conn.Query(t.Context(), fmt.Sprintf("SELECT coalesce(%s, 'null')::text, to_jsonb(v)::text FROM typed.%s v", value, r.Name))
		require.NoError(t, err)
		var wholeText, rowText string
		_, err = pgx.ForEachRow(rows, []any{&wholeText, &rowText}, func() error {
			whole, row := exactly(t, wholeText), exactly(t, rowText)
			for _, c := range list {
				from, path := whole, c.Path
				switch path[0] {
				case "@key":
					from, path = row.(map[string]any)["contract_key"], path[1:]
				case "@result":
					from, path = row.(map[string]any)["exercise_result"], path[1:]
				}
				if len(path) > 0 && strings.HasPrefix(path[0], "@") {
					continue
				}
				want, got := valueAt(from, path), row.(map[string]any)[c.Name]
				if want == nil || got == nil {
					require.Equal(t, want, got, "%s.%s", r.Name, c.Name)
					continue
				}
				compared[c.Type]++
				if len(path) < len(c.Path) {
					compared[c.Path[0]]++
				}
				require.Equal(t, asText(c.Type, want), asText(c.Type, got), "%s.%s", r.Name, c.Name)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return compared
}

// valueAt goes to a column's value by its path.
func valueAt(value any, path []string) any {
	for _, step := range path {
		o, _ := value.(map[string]any)
		switch {
		case step == "#tag":
			value = o["tag"]
		case strings.HasPrefix(step, "="):
			if value = nil; o["tag"] == step[1:] {
				value = o["value"]
			}
		default:
			value = o[step]
		}
	}
	return value
}

// exactly decodes JSON without loss of digits.
func exactly(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// asText is a value as text, whether it came from the ledger or from a column.
func asText(kind string, v any) string {
	text := fmt.Sprint(v)
	switch {
	case kind == "jsonb":
		b, _ := json.Marshal(v)
		return string(b)
	case strings.HasPrefix(kind, "numeric"):
		if number, err := ledger.ParseDecimal(text); err == nil {
			return string(number.Plain())
		}
	case kind == "timestamp with time zone":
		text = strings.TrimSuffix(strings.TrimSuffix(text, "Z"), "+00:00")
		if whole, fraction, ok := strings.Cut(text, "."); ok {
			text = strings.TrimSuffix(whole+"."+strings.TrimRight(fraction, "0"), ".")
		}
	}
	return text
}

// Whatever is stored, no query of a view fails: what does not fit is NULL.
func TestTypedViewsNeverFail(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 64})
	l.Grow(400)
	odd := []string{`""`, `"x"`, `null`, `1`, `1e400`, `"1e5"`, `{"a":1}`, `[[]]`, `"99999999999999999999"`, `"9223372036854775808"`, `"-9223372036854775809"`, `"NaN"`, `"1.00000000001"`,
		`"12345678901234567890123456789012345678901"`, `"2025-02-30"`, `"0000-01-01"`, `"2025-13-01"`, `"2025-06-18T25:00:00Z"`, `"2025-02-30T00:00:00Z"`, `"2025-06-18T00:00:00.1234567Z"`,
		`"9999-12-31T23:59:59.999999Z"`, `"infinity"`, `true`, `"-"`, `"."`, `" 1"`, `{"tag":"Received"}`, `{"tag":"Nothing","value":{"x":[]}}`, `"1\n"`}
	n := 0
	var replace func(v any) any
	replace = func(v any) any { // every third value within is another
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				v[key] = replace(inner)
			}
		case string:
			if n++; n%3 == 0 {
				return json.RawMessage(odd[n/3%len(odd)])
			}
		}
		return v
	}
	options := sandbox.ServerOptions{Rewrite: func(e sandbox.Element) []byte {
		var whole map[string]any
		if json.Unmarshal(e.Raw, &whole) != nil {
			return e.Raw
		}
		walkEvents(whole, func(event map[string]any) {
			for _, key := range []string{"createArgument", "choiceArgument"} {
				if event[key] != nil {
					event[key] = replace(event[key])
				}
			}
		})
		raw, err := json.Marshal(whole)
		if err != nil {
			return e.Raw
		}
		return raw
	}}
	database, _ := withTypes(t, l, options, effects(), everyTypeKnown)
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	conn := open(t, database)
	nulls := 0
	for _, r := range reports {
		tag, err := conn.Exec(t.Context(), "SELECT * FROM typed."+r.Name)
		require.NoError(t, err, r.Name)
		nulls += int(tag.RowsAffected())
	}
	require.Greater(t, nulls, 300)
	require.NotEmpty(t, texts(t, database, "SELECT DISTINCT payload ->> 'notional' FROM typed.trade_agreement WHERE notional IS NULL AND payload ->> 'notional' IS NOT NULL"))
}

// walkEvents calls f with every event in a JSON value.
func walkEvents(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			walkEvents(inner, f)
		}
	case map[string]any:
		for key, inner := range v {
			if o, ok := inner.(map[string]any); ok && strings.HasSuffix(key, "Event") {
				f(o)
			} else {
				walkEvents(inner, f)
			}
		}
	}
}

// A view is made before a later version is known, and refreshed after: columns come at its end, and what depends on it
// stays.
func TestTypedViewsAreRefreshed(t *testing.T) {
	t.Parallel()
	brief.Long(t, "reads packages twice")
	l := sandbox.NewLedger(sandbox.Options{Seed: 65})
	l.Grow(300)
	newer := ""
	for _, p := range l.Packages() {
		if p.Name == "bank" && p.Version == "1.10.0" {
			newer = p.ID
		}
	}
	database, _ := withTypes(t, l, sandbox.ServerOptions{Fault: func(r *http.Request) *sandbox.Fault {
		if r.URL.Path == "/v2/packages/"+newer {
			return &sandbox.Fault{Status: 404, ContentType: "application/json", Body: `{"code":"PACKAGE_NOT_FOUND"}`}
		}
		return nil
	}}, effects(), "EXISTS (SELECT FROM ledger.packages WHERE types = 'missing') AND EXISTS (SELECT FROM ledger.packages WHERE package_name = 'bank' AND types = 'known')")
	reports, err := CreateViews(t.Context(), viewsOf(database, "#bank:Bank.Account:Account"), testLogger(t))
	require.NoError(t, err)
	require.Len(t, reports, 3, "the template and two choices")
	columns := func() []string {
		return texts(t, database, "SELECT attname::text || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'typed.bank_account'::regclass AND attnum > 0 ORDER BY attnum")
	}
	before := columns()
	require.NotContains(t, before, "closes_at timestamp with time zone")
	conn := open(t, database)
	_, err = conn.Exec(t.Context(), "CREATE VIEW mine AS SELECT * FROM typed.bank_account; UPDATE indexer.package_tries SET next_at = now()")
	require.NoError(t, err)

	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), effects())
	cfg.PackagesInterval = often
	daemon := startIndexer(t, cfg)
	waitUntil(t, database, everyTypeKnown)
	require.NoError(t, daemon.finish())
	reports, err = RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	require.Len(t, reports, 3)
	require.Equal(t, []string{"column closes_at came"}, reports[0].Changes)
	require.Equal(t, append(before, "closes_at timestamp with time zone"), columns())
	again, err := RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	require.Empty(t, again[0].Changes)

	listed, err := ListViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	require.Len(t, listed, 3)
	require.Equal(t, "template bank:Bank.Account:Account", listed[0].Of)

	_, err = DropViews(t.Context(), viewsOf(database), testLogger(t))
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.Do, "mine depends on view typed.bank_account")
	_, err = conn.Exec(t.Context(), "DROP VIEW mine")
	require.NoError(t, err)
	dropped, err := DropViews(t.Context(), viewsOf(database, "Account"), testLogger(t))
	require.NoError(t, err)
	require.Len(t, dropped, 3)
	require.Zero(t, count(t, database, "indexer.typed_views"))

	for name, says := range map[string]string{
		"Holding": "is the name of several: bank-api:Bank.Api.HoldingV1:Holding, bank:Bank.Cash:Holding, splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding",
		"Acount":  "no template or interface", "account": "there are bank:Bank.Account:Account", `"; DROP SCHEMA ledger`: "no template or interface", "bank:Bank.Account:Accounts": "there are bank:Bank.Account:Account",
	} {
		_, err := CreateViews(t.Context(), viewsOf(database, name), testLogger(t))
		var usage *config.UsageError
		require.ErrorAs(t, err, &usage, name)
		require.ErrorContains(t, err, says)
	}
	for _, schema := range []string{"ledger", "indexer", "pg_x", "Typed", `a"b`, "information_schema"} {
		cfg := viewsOf(database)
		cfg.Schema = schema
		_, err := CreateViews(t.Context(), cfg, testLogger(t))
		require.ErrorContains(t, err, "schema")
	}
}
