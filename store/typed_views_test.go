package store

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
)

// What fits has its value, and what does not is NULL, whatever a session has set.
func TestCastsNeverFail(t *testing.T) {
	t.Parallel()
	brief.Once(t)
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
			"10000000000000000000000000000": null, "1.00000000001": null, ".5": null, "NaN": null, "Infinity": null, "": null, "1.5\n": null,
			"1e5": "100000", "5.000E-7": "0.0000005000", "0E-10": "0.0000000000", "-1.5E-3": "-0.0015", "1E-11": null, "1E+28": null, "0E+28": "0", "1E999999999": null, "1e5\n": null, "1e": null,
			"123456789012345678901234567890123456789": null,
		},
		"as_numeric($1, 0)":  {"1": "1", "1.": "1", "1.0": null, "1E+3": "1000", "9999.": "9999", "99999999999999999999999999999999999999": "99999999999999999999999999999999999999"},
		"as_numeric($1, 37)": {"9.9999999999999999999999999999999999999": "9.9999999999999999999999999999999999999", "10": null},
		// Others, and every text of both, are tried in TestCastsOfAnyText.
		"as_date($1)": {"2024-02-29": "2024-02-29", "2023-02-29": null}, "as_timestamptz($1)": {"9999-12-31T23:59:59.999999Z": "9999-12-31 23:59:59.999999+00", "now": null},
	} {
		for text, want := range tests {
			require.Equal(t, want, d.Row("SELECT (ledger."+call+")::text", text), "%s of %q", call, text)
		}
		require.Equal(t, null, d.Row("SELECT (ledger."+call+")::text", nil), call)
	}
	// They are a part of the query that calls them.
	plan := d.Rows("EXPLAIN (VERBOSE, COSTS OFF) SELECT ledger.as_boolean(x), ledger.as_bigint(x), ledger.as_numeric(x, 10), ledger.as_date(x), ledger.as_timestamptz(x) FROM unnest('{}'::text[]) x")
	for _, line := range plan {
		require.NotContains(t, line, "ledger.as_")
	}
}

// Casts of any text are what Go says that they are, whatever a session has set.
func TestCastsOfAnyText(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	const asked = `SELECT coalesce(ledger.as_boolean(x)::text, '-'), coalesce(ledger.as_bigint(x)::text, '-'),
		coalesce(ledger.as_numeric(x, 0)::numeric(38,0)::text, '-'), coalesce(ledger.as_numeric(x, 10)::numeric(38,10)::text, '-'), coalesce(ledger.as_numeric(x, 37)::numeric(38,37)::text, '-'),
		coalesce(to_char(ledger.as_date(x), 'YYYY-MM-DD'), '-'), coalesce(to_char(ledger.as_timestamptz(x) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '-')
		FROM unnest($1::text[]) WITH ORDINALITY l (x, n) ORDER BY n`
	texts := rapid.SliceOfN(hostileText(), 1, 50)
	rapid.Check(t, func(r *rapid.T) {
		for name, values := range map[string][]string{
			"TimeZone": {"UTC", "Asia/Kathmandu", "America/St_Johns"}, "DateStyle": {"ISO, MDY", "SQL, DMY", "German", "Postgres, YMD"},
			"IntervalStyle": {"postgres", "iso_8601", "sql_standard"}, "extra_float_digits": {"-15", "3"}, "standard_conforming_strings": {"on", "off"},
		} {
			d.Exec("SELECT set_config($1, $2, false)", name, rapid.SampledFrom(values).Draw(r, name))
		}
		list := texts.Draw(r, "texts")
		got := d.Rows(asked, list)
		for i, text := range list {
			want := strings.Join([]string{asBoolean(text), asBigint(text), asNumeric(text, 0), asNumeric(text, 10), asNumeric(text, 37), asDate(text), asTime(text)}, " ")
			if got[i] != want {
				r.Fatalf("%q is %s, and should be %s", text, got[i], want)
			}
		}
	})
}

// hostileText generates texts that nearly have a type, or have one.
func hostileText() *rapid.Generator[string] {
	whole := rapid.OneOf(
		rapid.StringMatching(`-?[0-9]{0,40}(\.[0-9]{0,40})?([Ee][-+]?[0-9]{0,3})?`), rapid.StringMatching(`-?(0|[1-9])(\.[0-9]{1,12})?E[-+][0-9]{1,2}`), rapid.StringMatching(`-?[0-9]{1,28}\.[0-9]{1,10}`), rapid.Custom(func(r *rapid.T) string { return fmt.Sprint(rapid.Int64().Draw(r, "n")) }),
		rapid.StringMatching(`[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]`), rapid.StringMatching(`[0-9]{4}-02-(28|29|30)`),
		rapid.StringMatching(`[0-9]{4}-(0[0-9]|1[0-3])-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,7})?Z`), rapid.StringMatching(`2024-02-29T23:59:59\.[0-9]{1,6}Z`),
		rapid.SampledFrom([]string{"", "true", "false", "t", "NaN", "Infinity", "-infinity", "epoch", "now", "today", "allballs", "1e10", "0x1F", "1_000", "1,000", "9223372036854775808", "-9223372036854775808",
			"0000-01-01", "0001-01-01 BC", "294277-01-01", "9999-12-31T23:59:59.999999Z", "2024-02-29T24:00:00Z", "2024-02-29T23:59:60Z", "2024-02-29T00:00:00+00:00", strings.Repeat("9", 200_000)}),
		rapid.String(),
	)
	odd := rapid.SampledFrom([]string{" ", "\n", "\t", "+", "-", ".", "e", "E5", "٣", "１", "\u00a0", "\u200b", "\u202e", "\\", "'", "$1", "Z", "z", "T", ":", "0", "00000000000000000000", "\U0001f600", "e\u0301"})
	return rapid.Custom(func(r *rapid.T) string {
		text := whole.Draw(r, "text")
		for range rapid.IntRange(0, 2).Draw(r, "changes") {
			at := rapid.IntRange(0, len(text)).Draw(r, "at")
			text = text[:at] + odd.Draw(r, "odd") + text[at:]
		}
		return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?") // which no text in the database can have
	})
}

const asNull = "-"

func asBoolean(text string) string {
	if text == "true" || text == "false" {
		return text
	}
	return asNull
}

func asBigint(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && regexp.MustCompile(`^-?[0-9]{1,19}$`).MatchString(text) {
		return fmt.Sprint(n)
	}
	return asNull
}

func asNumeric(text string, scale int) string {
	d, err := ledger.ParseDecimal(text)
	if err != nil || len(text) > 700 {
		return asNull
	}
	whole, fraction, _ := strings.Cut(string(d.Plain()), ".")
	if written, _, _ := strings.Cut(text, "."); len(fraction) > scale || len(strings.TrimLeft(whole, "-0")) > 38-scale ||
		!strings.ContainsAny(text, "eE") && len(strings.TrimPrefix(written, "-")) > 38-scale { // leading zeros count as digits
		return asNull
	}
	number := strings.TrimSuffix(whole+"."+fraction+strings.Repeat("0", scale-len(fraction)), ".")
	if strings.Trim(number, "-0.") == "" {
		return strings.TrimPrefix(number, "-")
	}
	return number
}

func asDate(text string) string {
	if date, err := time.Parse(time.DateOnly, text); err == nil && date.Year() > 0 && len(text) == 10 {
		return text
	}
	return asNull
}

func asTime(text string) string {
	if !regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$`).MatchString(text) {
		return asNull
	}
	if moment, err := time.Parse(time.RFC3339Nano, text); err == nil && moment.Year() > 0 {
		return moment.Format("2006-01-02T15:04:05.000000")
	}
	return asNull
}

func TestTypedViewsAreMadeAllOrNone(t *testing.T) {
	t.Parallel()
	brief.Once(t)
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
