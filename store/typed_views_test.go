package store

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

// What fits has its value, and what does not is NULL, whatever a session has set.
func TestCastsNeverFail(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	const null = "<nil>"
	for call, tests := range map[string]map[string]string{
		"as_boolean($1)": {"true": "true", "false": "false", "": null, "t": null, "TRUE": null, "1": null},
		"as_bigint($1)": {
			"0": "0", "-1": "-1", "9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808", "0000000000000000001": "1",
			"9223372036854775808": null, "-9223372036854775809": null, "99999999999999999999": null, "": null, "-": null, "1.0": null, " 1": null, "1\n": null, "+1": null, "1e3": null, "٣": null,
		},
		"as_numeric($1, 10)": {
			"1.0000000000": "1.0000000000", "-0.5": "-0.5", "1.": "1", "9999999999999999999999999999.9999999999": "9999999999999999999999999999.9999999999",
			"10000000000000000000000000000": null, "1.00000000001": null, ".5": null, "NaN": null, "Infinity": null, "1e5": null, "": null, "1.5\n": null,
			"123456789012345678901234567890123456789": null,
		},
		"as_numeric($1, 0)":  {"1": "1", "1.": "1", "1.0": null, "99999999999999999999999999999999999999": "99999999999999999999999999999999999999"},
		"as_numeric($1, 37)": {"9.9999999999999999999999999999999999999": "9.9999999999999999999999999999999999999", "10": null},
		"as_date($1)": {
			"2025-06-18": "2025-06-18", "0001-01-01": "0001-01-01", "9999-12-31": "9999-12-31", "2024-02-29": "2024-02-29", "2000-02-29": "2000-02-29",
			"2023-02-29": null, "1900-02-29": null, "2025-04-31": null, "0000-01-01": null, "2025-13-01": null, "2025-00-01": null, "2025-01-00": null, "2025-1-1": null, "infinity": null, "today": null, "": null,
			"2025-06-18\n": null,
		},
		"as_timestamptz($1)": {
			"2025-06-18T00:00:00Z": "2025-06-18 00:00:00+00", "2025-06-18T23:59:59.000001Z": "2025-06-18 23:59:59.000001+00", "2025-06-18T23:59:59.999999Z": "2025-06-18 23:59:59.999999+00",
			"9999-12-31T23:59:59.999999Z": "9999-12-31 23:59:59.999999+00", "0001-01-01T00:00:00.1Z": "0001-01-01 00:00:00.1+00",
			"2025-02-30T00:00:00Z": null, "2025-06-18T24:00:00Z": null, "2025-06-18T23:60:00Z": null, "2025-06-18T23:59:60Z": null, "2025-06-18T00:00:00.1234567Z": null,
			"2025-06-18T00:00:00": null, "2025-06-18T00:00:00+01:00": null, "2025-06-18 00:00:00Z": null, "now": null, "": null,
		},
	} {
		for text, want := range tests {
			require.Equal(t, want, d.Row("SELECT (ledger."+call+")::text", text), "%s of %q", call, text)
		}
		require.Equal(t, null, d.Row("SELECT (ledger."+call+")::text", nil), call)
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`-?[0-9]{0,40}(\.[0-9]{0,40})?`), rapid.StringMatching(`[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,9})?Z)?`)).Draw(r, "text")
		d.Row(`SELECT concat(ledger.as_boolean($1), ledger.as_bigint($1), ledger.as_numeric($1, 10), ledger.as_numeric($1, 37)::numeric(38,37), ledger.as_date($1), ledger.as_timestamptz($1))`, text)
	})

	// They are a part of the query that calls them.
	plan := d.Rows("EXPLAIN (VERBOSE, COSTS OFF) SELECT ledger.as_boolean(x), ledger.as_bigint(x), ledger.as_numeric(x, 10), ledger.as_date(x), ledger.as_timestamptz(x) FROM unnest('{}'::text[]) x")
	for _, line := range plan {
		require.NotContains(t, line, "ledger.as_")
	}
}

func TestTypedViewsAreMadeAllOrNone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.store()
	view := TypedView{Schema: "typed", Name: "v", Kind: "template", Package: "p", Module: "M", Entity: "T", Columns: []byte(`[]`)}
	change := func(f func(*TypedViewsChange) error) error {
		return s.ChangeTypedViews(t.Context(), TypedView{Schema: "typed"}, f)
	}
	require.Error(t, change(func(c *TypedViewsChange) error {
		return c.Make(t.Context(), view, []string{"CREATE VIEW typed.v AS SELECT 1 AS a", "no statement"})
	}))
	require.Equal(t, "<nil>", d.Row("SELECT to_regnamespace('typed')::text"))
	require.NoError(t, change(func(c *TypedViewsChange) error {
		require.Empty(t, c.Registered)
		return c.Make(t.Context(), view, []string{"CREATE VIEW typed.v AS SELECT 1 AS a"})
	}))
	require.NoError(t, change(func(c *TypedViewsChange) error {
		require.Len(t, c.Registered, 1)
		for name, want := range map[string]bool{"v": true, "w": false, `a"b`: false} {
			taken, err := c.Taken(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, want, taken, name)
		}
		return nil
	}))
	err := change(func(c *TypedViewsChange) error {
		return c.Make(t.Context(), view, []string{"CREATE OR REPLACE VIEW typed.v AS SELECT 1 AS b"})
	})
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "somebody replaced it: drop typed.v, and make it again", problem.Do)
	require.NoError(t, change(func(c *TypedViewsChange) error { return c.Drop(t.Context(), view) }))
	list, err := s.TypedViews(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, list)
}
