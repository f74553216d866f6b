package app

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// noPackages is a participant that has none.
func noPackages(r *http.Request) *sandbox.Fault {
	if strings.HasPrefix(r.URL.Path, "/v2/packages/") {
		return &sandbox.Fault{Status: 404, ContentType: "application/json", Body: `{"code":"PACKAGE_NOT_FOUND"}`}
	}
	return nil
}

const noTypeKnown = "EXISTS (SELECT FROM ledger.packages WHERE types = 'missing')"

// valueColumns are the columns of a typed view that come from the value, with their types.
func valueColumns(t *testing.T, database, view string) []string {
	t.Helper()
	return texts(t, database, `SELECT format('%s %s', c ->> 'name', c ->> 'type') FROM indexer.typed_views, jsonb_array_elements(columns) WITH ORDINALITY x (c, n)
		WHERE view_schema || '.' || view_name = $1 AND (c -> 'path' ->> 0) NOT LIKE '@%' ORDER BY n`, view)
}

// Types are inferred where no package can be had, from what round-trips; what is published stays when the packages
// come.
func TestTypesAreInferredFromValues(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "infers the types of all templates")
	l := sandbox.NewLedger(sandbox.Options{Seed: 68})
	l.Grow(500)
	unseen := func(e sandbox.Element) []byte { // of one template no creation is seen, nor an assignment, which has it
		if bytes.Contains(e.Raw, []byte(":Registry.Entry:Entry")) && bytes.Contains(bytes.ToLower(e.Raw), []byte(`"createdevent"`)) {
			return nil
		}
		return e.Raw
	}
	database, _ := withTypes(t, l, sandbox.ServerOptions{Fault: noPackages, Rewrite: unseen}, effects(), noTypeKnown)
	var problem *ledger.Problem
	_, err := CreateViews(t.Context(), viewsOf(database, "Account"), testLogger(t))
	require.ErrorAs(t, err, &problem, "not without being asked to")

	cfg := viewsOf(database)
	cfg.Infer = true
	reports, err := CreateViews(t.Context(), cfg, testLogger(t))
	require.NoError(t, err)
	require.Greater(t, len(reports), 20)
	var failed []string
	for _, r := range reports {
		if r.Failure != "" {
			require.Contains(t, r.Failure, "no value of it is stored")
			failed = append(failed, r.Of)
			continue
		}
		rows := "typed." + r.Name
		if strings.HasPrefix(r.Of, "interface ") {
			rows += " WHERE view_value IS NOT NULL" // some can't be computed
		}
		require.EqualValues(t, count(t, database, rows), r.Inferred, r.Name)
	}
	require.Equal(t, []string{"template registry:Registry.Entry:Entry"}, failed)
	ofInterfaces := texts(t, database, `SELECT DISTINCT format('choice %s of bank-api:%s:%s', choice, split_part(interface_id, ':', 2), split_part(interface_id, ':', 3))
		FROM ledger.exercised_events e JOIN ledger.packages p ON p.package_id = split_part(e.interface_id, ':', 1) WHERE p.package_name = 'bank-api' AND choice <> 'Archive'`)
	require.NotEmpty(t, ofInterfaces)
	var of []string
	for _, r := range reports {
		of = append(of, r.Of)
	}
	require.Subset(t, of, ofInterfaces)
	requireTypedViewsToldOf(t, database)
	listed, err := ListViews(t.Context(), cfg.ViewsSchema, testLogger(t))
	require.NoError(t, err)
	for _, v := range listed {
		require.Positive(t, v.Inferred)
	}
	require.Equal(t, []string{
		"limit numeric(38,10)", "mandates jsonb", "meta_values jsonb", "nickname text", "number bigint", "opened date", "owner text", "status text",
	}, slices.DeleteFunc(valueColumns(t, database, "typed.bank_account"), func(c string) bool { return strings.HasPrefix(c, "closes_at ") }))
	require.Subset(t, valueColumns(t, database, "typed.trade_agreement"), []string{"notional numeric(38,10)", "settles_at timestamp with time zone", "terms_tag text"})
	require.Contains(t, texts(t, database, "SELECT obj_description('typed.bank_account'::regclass)")[0], "Its types are inferred from ")

	// Every text is the one of the value.
	compared := map[string]int{}
	for _, v := range listed {
		for _, c := range valueColumns(t, database, "typed."+v.Name) {
			_, kind, _ := strings.Cut(c, " ")
			compared[kind]++
		}
	}
	for _, kind := range []string{"boolean", "bigint", "numeric(38,10)", "date", "timestamp with time zone", "text", "jsonb"} {
		require.Positive(t, compared[kind], kind)
	}
	compareWithValues(t, database, listed)

	before := map[string][]string{}
	for _, v := range listed {
		before[v.Name] = valueColumns(t, database, "typed."+v.Name)
	}
	again, err := RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	require.Len(t, again, len(listed))
	for _, r := range again {
		require.Empty(t, r.Failure)
		require.Empty(t, r.Changes, "nothing came since")
	}

	execute(t, database, "UPDATE indexer.package_tries SET next_at = now()")
	daemonCfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), effects())
	daemonCfg.PackagesInterval = often
	daemon := startIndexer(t, daemonCfg)
	waitUntil(t, database, everyTypeKnown)
	require.NoError(t, daemon.finish())
	again, err = RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	for _, r := range again {
		require.Empty(t, r.Failure)
		require.Zero(t, r.Inferred)
		now := valueColumns(t, database, "typed."+r.Name)
		require.Equal(t, before[r.Name], now[:len(before[r.Name])], "what was published stays")
	}
	require.Subset(t, valueColumns(t, database, "typed.bank_account"), []string{"closes_at timestamp with time zone"})
	listed, err = ListViews(t.Context(), cfg.ViewsSchema, testLogger(t))
	require.NoError(t, err)
	for _, v := range listed {
		require.Zero(t, v.Inferred)
	}
	require.NotContains(t, texts(t, database, "SELECT obj_description('typed.bank_account'::regclass)")[0], "inferred")
}

// inferred is the view of template Entry, where what is stored of its creations has these payloads, again and again.
func inferred(t *testing.T, payloads ...string) (columns []string, report ViewReport, database string) {
	t.Helper()
	database = throwaway.Prepared(t, migrate, "without packages", func(ctx context.Context, database string) error {
		server := httptest.NewServer(sandbox.NewServer((&world{options: sandbox.Options{Seed: 69}, updates: 80}).ledger(), sandbox.ServerOptions{Fault: noPackages}))
		defer server.Close()
		return RunIndexer(ctx, indexerFor(database, server.URL, effects()), slog.New(slog.DiscardHandler))
	})
	require.Greater(t, len(texts(t, database, `
		UPDATE indexer.created c SET payload = ($1::text[])[1 + e.n % cardinality($1::text[])]::jsonb
		FROM (SELECT ledger_offset, node_id, row_number() OVER () AS n FROM ledger.created_events WHERE entity_name = 'Entry') e
		WHERE (c.ledger_offset, c.node_id) = (e.ledger_offset, e.node_id) RETURNING c.contract_id`, payloads)), len(payloads))
	cfg := viewsOf(database, "registry:Registry.Entry:Entry")
	cfg.Infer = true
	reports, err := CreateViews(t.Context(), cfg, testLogger(t))
	require.NoError(t, err)
	compareWithValues(t, database, reports)
	return valueColumns(t, database, "typed.registry_entry"), reports[0], database
}

// What does not round-trip is text, and what is no record is jsonb.
func TestInferenceDistrustsValues(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	for name, c := range map[string]struct {
		payloads, columns []string
	}{
		"numbers": {
			[]string{`{"a":"1","b":"1.50","c":"007","d":"-0","e":"9223372036854775807","f":"9223372036854775808","g":"1","h":"1.5","i":"1e3","j":1,"k":1.50,"l":"+1","m":" 1","n":"99999999999999999999999999999999999999","o":"123456789012345678901234567890123456789","p":"9999.","q":"5.000E-7","r":"5.0E-7"}`,
				`{"a":"-5","b":"-2.25","c":"1","d":"0","e":"1","f":"1","g":"1.0","h":"1.25","i":"1","j":"2","k":"2.25","l":"1","m":"1","n":"1","o":"1","p":"-0.","q":"0E-10","r":"0.001"}`,
				`{"q":"12.5000000000"}`},
			[]string{"a bigint", "b numeric(38,2)", "c text", "d text", "e bigint", "f numeric(38,0)", "g text", "h text", "i text", "j bigint", "k numeric(38,2)", "l text", "m text", "n numeric(38,0)", "o text", "p text", "q numeric(38,10)", "r text"},
		},
		"dates and times": {
			[]string{`{"a":"2025-06-18","b":"2025-06-18","c":"2025-06-18T00:00:00Z","d":"2025-06-18T00:00:00.000001Z","e":"2025-06-18T00:00:00Z","f":"infinity","g":"0001-01-01","h":"9999-12-31T23:59:59.999999Z"}`,
				`{"a":"2024-02-29","b":"2025-02-30","c":"2025-06-18T23:59:59.1Z","d":"2025-06-18T00:00:00.1234567Z","e":"2025-06-18 00:00:00Z","f":"2025-06-18","g":"9999-12-31","h":"0001-01-01T00:00:00Z"}`},
			[]string{"a date", "b text", "c timestamp with time zone", "d text", "e text", "f text", "g date", "h timestamp with time zone"},
		},
		"mixtures": {
			[]string{`{"a":true,"b":true,"c":true,"d":[],"e":{"x":"1"},"f":null,"g":"","h":"true","i":{"x":1},"j":[[]]}`, `{"a":false,"b":"true","c":{"x":1},"d":"x","e":null,"g":"1","h":"false","i":[]}`},
			[]string{"a boolean", "b text", "c jsonb", "d jsonb", "e_x bigint", "g text", "h text", "i jsonb", "j jsonb"},
		},
		"records and maps": {
			[]string{`{"a":{"x":"1","y":{"z":"2"}},"b":{"k1":"1"},"c":{"some/key":"1"},"d":{},"e":{"_1":"x","_2":null},"f":{}}`,
				`{"a":{"x":"2","y":{"z":"3"}},"b":{"k2":"1"},"c":{"some/key":"2"},"d":{"x":"1"},"e":{"_1":"y","_2":"1"},"f":{}}`},
			[]string{"a_x bigint", "a_y_z bigint", "b jsonb", "c jsonb", "d jsonb", "e_1 text", "e_2 bigint"},
		},
		"variants": {
			[]string{`{"a":{"tag":"A","value":{}},"b":{"tag":"X","value":{"y":"1"}},"c":{"tag":"X","value":"1"},"d":{"tag":1,"value":"1"},"e":{"tag":"A'B","value":"1"}}`,
				`{"a":{"tag":"B","value":"2025-06-18"},"b":{"tag":"Y","value":"z"},"c":{"tag":"X","value":"2","more":"1"},"d":{"tag":"x","value":"2"},"e":{"tag":"A","value":"1"}}`},
			[]string{"a_tag text", "a_b date", "b_tag text", "b_x_y bigint", "b_y text", "c_more bigint", "c_tag text", "c_value bigint", "d_tag text", "d_value bigint", "e jsonb"},
		},
		"names": {
			[]string{`{"fooBar":"a","foo_bar":"b","select":"c","contractId":"d","bad name":"e","'; DROP TABLE x; --":"f","ünï":"g","":"h","#tag":"i","=A":"j","@payload":"k","$x":"l"}`},
			[]string{"x text", "payload_contract_id text", "foo_bar text", "foo_bar_2 text", "select text"},
		},
		"what is no object":     {[]string{`"text"`, `["list"]`, `{"a":"1"}`, `12`, `true`}, []string{"a bigint"}},
		"what jsonb can't hold": {[]string{`{"a":"1"}`, `{"$exact":"a NUL"}`}, []string{"a bigint"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			columns, _, _ := inferred(t, c.payloads...)
			require.Equal(t, c.columns, columns)
		})
	}
}

// A value that comes later and does not fit is NULL; so is one that the view was made without, until it is refreshed.
func TestInferredColumnsStay(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	columns, _, database := inferred(t, `{"a":"1","b":null,"c":{"x":"1"}}`)
	require.Equal(t, []string{"a bigint", "c_x bigint"}, columns)
	execute(t, database, `UPDATE indexer.created SET payload = '{"a":"one","b":"2025-06-18","c":"none"}' WHERE (ledger_offset, node_id) =
		(SELECT ledger_offset, node_id FROM typed.registry_entry WHERE ledger_offset IN (SELECT ledger_offset FROM indexer.created) ORDER BY 1, 2 LIMIT 1)`)
	const rows = "SELECT DISTINCT concat_ws(' ', a, c_x) FROM typed.registry_entry ORDER BY 1"
	require.Equal(t, []string{"", "1 1"}, texts(t, database, rows))
	reports, err := RefreshViews(t.Context(), viewsOf(database).ViewsSchema, testLogger(t))
	require.NoError(t, err)
	require.Equal(t, []string{
		"column a stays bigint, though it would be text now: what does not fit is NULL; drop the view and create it again", "column b came", "column c came", "column c_x stays, though no value has it",
	}, reports[0].Changes)
	require.Equal(t, []string{"a bigint", "c_x bigint", "b date", "c jsonb"}, valueColumns(t, database, "typed.registry_entry"))
	require.Equal(t, []string{" 2025-06-18 \"none\"", "1  {\"x\": \"1\"}"}, texts(t, database, "SELECT DISTINCT concat(a, ' ', b, ' ', c) FROM typed.registry_entry ORDER BY 1"))
}

// Large objects are maps or have their first members as columns; deep ones end as jsonb.
func TestInferenceHasLimits(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "infers from values with very many members")
	member := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf(`"m%d":"%d"`, i, i))
		}
		return list
	}
	object := func(n int) string { return "{" + strings.Join(member(n), ",") + "}" }
	columns, report, _ := inferred(t, object(1500))
	require.Len(t, columns, 1000)
	require.Contains(t, report.Notes[0], "more members than a view has columns")

	columns, _, _ = inferred(t, `{"map":`+object(201)+`,"record":`+object(200)+`}`)
	require.Len(t, columns, 201)
	require.Equal(t, "map jsonb", columns[0])

	deep := strings.Repeat(`{"x":`, 900) + `"1"` + strings.Repeat(`}`, 900)
	columns, _, _ = inferred(t, deep)
	require.Equal(t, []string{strings.TrimSuffix(strings.Repeat("x_", 12), "_") + " jsonb"}, columns)

	// Records that have no room together stay jsonb.
	var wide []string
	for i := range 10 {
		wide = append(wide, fmt.Sprintf(`"w%d":%s`, i, object(150)))
	}
	columns, _, _ = inferred(t, "{"+strings.Join(wide, ",")+"}")
	require.Len(t, columns, 10)
}

// Nothing is known of the packages of a network, not even what they are named: views of choices of interfaces are made
// for their ids.
func TestChoicesOfInterfacesOfANetworkAreInferred(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, scan := scanOfLedger(sandbox.Options{Seed: 70, Elsewhere: true}, 300, sandbox.ScanOptions{})
	database := networkDatabase(t)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, serveScan(t, scan)), testLogger(t)))
	exercised := texts(t, database, `SELECT format('choice %s of %s: %s', choice, interface_id, count(*)) FROM network.exercised_events
		WHERE interface_id IS NOT NULL AND choice <> 'Archive' GROUP BY choice, interface_id ORDER BY 1`)
	require.NotEmpty(t, exercised)
	cfg := viewsOf(database)
	cfg.Network, cfg.Infer = true, true
	reports, err := CreateViews(t.Context(), cfg, testLogger(t))
	require.NoError(t, err)
	var inferred []string
	for _, r := range reports {
		if strings.Contains(r.Of, ":Splice.Api.") && strings.HasPrefix(r.Of, "choice ") {
			require.Empty(t, r.Failure)
			inferred = append(inferred, fmt.Sprintf("%s: %d", r.Of, r.Inferred))
			require.Equal(t, r.Inferred, int64(count(t, database, "typed."+r.Name)), r.Of)
		}
	}
	require.ElementsMatch(t, exercised, inferred)
}
