package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// hostile are arguments that functions must refuse, or answer, without failing, by type.
var hostile = map[string][]string{
	"text": {"''", "' '", `'\x00'`, "'''; DROP VIEW ledger.updates; --'", "repeat('ä', 100000)", "repeat('9', 100000)", "E'\\n\\t'", "'$exact'", "'%_'", "'NaN'", "'-0'", "'1e5'",
		"'99999999999999999999'", "'2026-02-31'", "'2026-02-30T25:61:61Z'", "'2026-01-01T00:00:00.1234567Z'"},
	"bigint":                   {"0", "-1", "9223372036854775807", "-9223372036854775808"},
	"integer":                  {"0", "10", "37", "38", "39", "-1", "2147483647", "-2147483648"},
	"timestamp with time zone": {"'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'", "now()"},
	"jsonb":                    {"'null'", "'{}'", "'[]'", `'{"_1": 1e300, "_2": "\u00e4"}'`, "(repeat('[', 1000) || repeat(']', 1000))::jsonb", "to_jsonb(repeat('x', 100000))"},
	"interval":                 {"'0'", "'-1 day'", "'178000000 years'", "'1 microsecond'"},
}

// ofNull is what functions do when every argument is NULL: an error code, or "NULL", "false", "none" (no rows).
var ofNull = map[string]string{
	"balance_at": "22004", "balance_at_offset": "22004", "party_statement": "none", "token_events_of": "none",
	"active_at": "22004", "holdings_at": "22004", "holding_totals_at": "22004", "offset_at": "22004", "state_offset": "22004", "time_at": "22004", "wait_for_offset": "22004",
	"as_bigint": "NULL", "as_boolean": "NULL", "as_date": "NULL", "as_numeric": "NULL", "as_timestamptz": "NULL",
	"reported_balance_at": "NULL", "reported_balances_at": "unknown", "contract_history": "none", "created_with_key": "none", "is_complete": "false",
}

// function is a function of schema ledger as the catalog has it.
type function struct {
	name      string
	arguments []string
	set       bool
}

func (d *documented) functions(t *testing.T) (list []function) {
	t.Helper()
	rows, err := d.conn.Query(t.Context(), `SELECT p.proname, ARRAY(SELECT format_type(a, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY x (a, n) ORDER BY n), p.proretset
		FROM pg_proc p WHERE p.pronamespace = 'ledger'::regnamespace ORDER BY 1`)
	require.NoError(t, err)
	var f function
	_, err = pgx.ForEachRow(rows, []any{&f.name, &f.arguments, &f.set}, func() error {
		list = append(list, function{f.name, slices.Clone(f.arguments), f.set})
		return nil
	})
	require.NoError(t, err)
	return list
}

// call returns what a call says: the number of rows and the first as text, or the code of its error.
func (d *documented) call(t *testing.T, f function, arguments []string) (rows int64, first, code string) {
	t.Helper()
	call := fmt.Sprintf("SELECT count(*), min(x::text) FROM ledger.%s(%s) x", f.name, strings.Join(arguments, ", "))
	var text *string
	err := d.conn.QueryRow(t.Context(), call).Scan(&rows, &text)
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		require.NotContains(t, []string{"XX", "57", "53"}, refusal.Code[:2], "%s: %v", call, err)
		return 0, "", refusal.Code
	}
	require.NoError(t, err, call)
	first = "NULL"
	if text != nil {
		first = *text
	}
	return rows, first, ""
}

// testFunctions calls every function of schema ledger with NULLs and with what nobody should give it.
func (d *documented) testFunctions(t *testing.T) {
	// The casts and look-ups answer; the others refuse what is out of range. Nothing else is an error's code here.
	refusals := []string{
		"", "22004", // not NULL
		"22023",          // an offset that is not known, a synchronizer that is not
		"2201B",          // as_numeric: a scale beyond 0 to 37
		"22000",          // is_complete: a range that ends before it begins
		"22003", "22008", // beyond what the type holds
	}
	called := map[string]bool{}
	for _, f := range d.functions(t) {
		require.False(t, called[f.name], "%s has two forms: a call by names of arguments is ambiguous", f.name)
		called[f.name] = true
		if len(f.arguments) == 0 {
			_, answer, code := d.call(t, f, nil)
			require.Empty(t, code, f.name)
			require.NotEqual(t, "NULL", answer, f.name)
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			nulls := make([]string, len(f.arguments))
			for i, kind := range f.arguments {
				require.NotEmpty(t, hostile[kind], "nothing hostile is known of type %s", kind)
				nulls[i] = "NULL::" + kind
			}
			rows, answer, code := d.call(t, f, nulls)
			switch want := ofNull[f.name]; want {
			case "none":
				require.Zero(t, rows)
			case "unknown": // a row for each party, or at least one
				require.Positive(t, rows)
			case "NULL", "false":
				require.Equal(t, want, answer)
			default:
				require.Equal(t, want, code, "what NULL gives is not said in this test")
			}
			for i, kind := range f.arguments {
				for _, value := range append(slices.Clone(hostile[kind]), "NULL") {
					plain := slices.Clone(nulls)
					for j, other := range f.arguments {
						plain[j] = hostile[other][0] + "::" + other
					}
					calls := [][]string{slices.Clone(nulls), plain}
					for _, arguments := range calls[:min(len(nulls), 2)] { // with one argument both are the same
						arguments[i] = value + "::" + kind
						_, _, code := d.call(t, f, arguments)
						require.Contains(t, refusals, code, "%s(%s)", f.name, strings.Join(arguments, ", "))
					}
				}
			}
		})
	}
	require.Len(t, ofNull, len(slices.DeleteFunc(d.functions(t), func(f function) bool { return len(f.arguments) == 0 })))
}

// testRefusals holds that a wrong offset or name is refused with what could be meant.
func (d *documented) testRefusals(t *testing.T) {
	for call, want := range map[string][2]string{
		"active_at(-1)": {"not known at offset -1, but from offset 0 on", "between ledger.state_floor() and ledger.latest_offset()"},
		fmt.Sprintf("holdings_at(%d)", d.ledger.End()+1): {"has not been indexed yet: the latest is", "between ledger.state_floor() and ledger.latest_offset()"},
		"party_statement('x', -1, 1)":                    {"not known at offset -1, but from offset 0 on", "between ledger.state_floor() and ledger.latest_offset()"},
		"party_statement('x', NULL, 1)":                  {"an offset is needed, not NULL", ""},
		"party_statement('x', 1, NULL)":                  {"an offset is needed, not NULL", ""},
		fmt.Sprintf("time_at(%d)", d.ledger.End()+1):     {"is not between 0 and", "between ledger.oldest_offset() and ledger.latest_offset()"},
		"offset_at(now(), 'global')":                     {"no update names the synchronizer global", d.ledger.Synchronizers()[0]},
	} {
		_, err := d.conn.Exec(t.Context(), "SELECT * FROM ledger."+call)
		var refusal *pgconn.PgError
		require.ErrorAs(t, err, &refusal, call)
		require.Contains(t, refusal.Message, want[0], call)
		require.Contains(t, refusal.Hint, want[1], call)
	}
}
