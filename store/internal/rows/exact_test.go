package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
)

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// Values on both sides of what jsonb holds.
var jsonbCases = []struct {
	name    string
	value   string
	refused bool
}{
	{"NUL", `"a\u0000b"`, true},
	{"NUL in a name", `{"\u0000": 1}`, true},
	{"NUL behind an escaped backslash", `"\\\u0000"`, true},
	{"escaped backslash before u0000", `"\\u0000"`, false},
	{"lone high surrogate", `"\ud83d"`, true},
	{"lone low surrogate", `"\ude00"`, true},
	{"high surrogate before a character", `"\ud83dx"`, true},
	{"high surrogate before another escape", `"\ud83d\n123456"`, true},
	{"high surrogate before another high one", `"\ud83d\ud83d\ude00"`, true},
	{"high surrogate in upper case at the end", `["\uD83D"]`, true},
	{"surrogates in the wrong order", `"\ude00\ud83d"`, true},
	{"surrogate pair", `"\ud83d\ude00 \uD83D\uDE00"`, false},
	{"escaped backslash before a surrogate", `"\\ud83d"`, false},
	{"other escapes", `"\"\\\/\b\f\n\r\t\u0001\uffff\u00e9"`, false},
	{"not a character, but text", "\"\uffff\U0010ffff\"", false},
	{"131,072 digits", strings.Repeat("9", 131_072), false},
	{"131,073 digits", strings.Repeat("9", 131_073), true},
	{"1e131071", `1e131071`, false},
	{"1e131072", `1e131072`, true},
	{"1E+0131071", `1E+0131071`, false},
	{"1e400000", `1e400000`, true},
	{"-1e400000", `{"a": [-1e400000]}`, true},
	{"1e-16383", `1e-16383`, false},
	{"1e-16384", `1e-16384`, true},
	{"1e-20000", `1e-20000`, true},
	{"1e-0020000", `1e-0020000`, true},
	{"1e-000000000001", `1e-000000000001`, false},
	{"0.1 and 16,383 places", `0.` + strings.Repeat("1", 16_383), false},
	{"0.1 and 16,384 places", `0.` + strings.Repeat("1", 16_384), true},
	{"1.5e-16383", `1.5e-16383`, true},
	{"many places, made few", `0.` + strings.Repeat("1", 20_000) + `e10000`, false},
	{"many digits, made few", strings.Repeat("9", 140_000) + `e-10000`, false},
	{"exponent beyond all", `1e99999999999999999999`, true},
	{"nested 1,000 deep", nested(1000), false},
	{"nested 1,001 deep", nested(1001), true},
	{"nested 5,000 deep", nested(5000), true},
	{"nested wide", `[` + strings.Repeat(`[],`, 5000) + `[]]`, false},
	{"too large", `"` + strings.Repeat("x", maxBytes) + `"`, true},
	{"brackets in a text", `"` + strings.Repeat("[{", 3000) + `"`, false},
	{"long text of digits", `"` + strings.Repeat("9", 140_000) + `"`, false},
	{"plain", `{"a": [1, -0.5, 1e3, true, false, null, {}], "b": "c"}`, false},
}

func TestExactJSONBRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range jsonbCases {
		require.True(t, json.Valid([]byte(c.value)), c.name)
		require.Equal(t, c.refused, jsonbRefuses([]byte(c.value)) != "", c.name)
	}
}

// FuzzJSONBRefuses looks for JSON that the scan does not survive, or on which it disagrees with a plain one.
func FuzzJSONBRefuses(f *testing.F) {
	for _, c := range jsonbCases {
		if len(c.value) < 1000 {
			f.Add([]byte(c.value))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			return
		}
		reason := jsonbRefuses(value)
		if reason == "" && holdsNUL(value) {
			t.Errorf("taken: %q", value)
		}
		wrapped := fmt.Appendf(nil, `{"a": [%s, "\\u0000"]}`, value)
		if reason == "" && jsonbRefuses(wrapped) != "" && len(value) < maxNesting {
			t.Errorf("taken alone, refused within: %q", value)
		}
		if reason != "" && jsonbRefuses(wrapped) == "" {
			t.Errorf("refused alone, taken within: %q", value)
		}
	})
}

// holdsNUL decodes value and looks for a NUL in any text of it.
func holdsNUL(value []byte) bool {
	decoder := json.NewDecoder(strings.NewReader(string(value)))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if text, ok := token.(string); ok && strings.Contains(text, "\x00") {
			return true
		}
	}
}

// randomJSON makes values of what is near the limits, and in between.
func randomJSON(r *rand.Rand, depth int) string {
	if depth > 0 && r.IntN(3) > 0 {
		list := make([]string, r.IntN(4))
		for i := range list {
			list[i] = randomJSON(r, depth-1)
			if r.IntN(2) == 0 {
				list[i] = `{"k` + randomText(r) + `": ` + list[i] + `}`
			}
		}
		return `[` + strings.Join(list, ",") + `]`
	}
	if r.IntN(2) == 0 {
		return `"` + randomText(r) + `"`
	}
	number := ""
	if r.IntN(2) == 0 {
		number = "-"
	}
	number += fmt.Sprint(1 + r.IntN(999))
	if r.IntN(2) == 0 {
		number += "." + strings.Repeat("3", 1+r.IntN(20))
	}
	exponents := []string{"", "", "e5", "E-5", "e131068", "e131071", "e131072", "e-16370", "e-16383", "e-0016390", "e+0131080", "e999999999", "e-2147483648"}
	return number + exponents[r.IntN(len(exponents))]
}

func randomText(r *rand.Rand) string {
	pieces := []string{`a`, `\\`, `\"`, `\n`, `u0000`, `\u0000`, `\ud83d`, `\ude00`, `\ud83d\ude00`, `\uD83D`, "é", "😀", `\u007f`, `\uffff`, `x`, `y`, `z`}
	text := ""
	for range r.IntN(4) {
		text += pieces[r.IntN(len(pieces))]
	}
	return text
}

// Whatever is not refused, PostgreSQL takes; and of the values near the limits it refuses what is refused.
func TestExactAgreesWithPostgreSQL(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), throwaway.Database(t))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `CREATE FUNCTION takes(value text) RETURNS boolean LANGUAGE plpgsql AS
		$$ BEGIN PERFORM length(value::jsonb::text); RETURN true; EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN RETURN false; END $$`)
	require.NoError(t, err)
	var values []string
	for _, c := range jsonbCases {
		values = append(values, c.value)
	}
	fixed := len(values)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		values = append(values, randomJSON(r, 3))
	}
	answer, err := conn.Query(t.Context(), "SELECT takes(v) FROM unnest($1::text[]) WITH ORDINALITY AS x (v, n) ORDER BY n", values)
	require.NoError(t, err)
	takes, err := pgx.CollectRows(answer, pgx.RowTo[bool])
	require.NoError(t, err)
	taken := 0
	for i, value := range values {
		require.True(t, json.Valid([]byte(value)), value)
		if jsonbRefuses([]byte(value)) == "" {
			taken++
			require.True(t, takes[i], value)
		} else if i >= fixed {
			require.False(t, takes[i], value)
		}
	}
	require.Greater(t, taken, 500)
	require.Greater(t, len(values)-taken, 500)
}

// withPayload is a list of an update of one creation, and a list of an entry of a snapshot with the same one.
func withPayload(payload []byte) (updates, entries []byte) {
	created := fmt.Sprintf(`{"offset":1,"nodeId":0,"contractId":"c","templateId":"p:M:E","createArgument":%[1]s,"witnessParties":[],"signatories":[],"new":%[1]s,`+
		`"createdAt":"2025-10-14T11:29:20Z","packageName":"p"}`, payload)
	return fmt.Appendf(nil, `[{"update":{"Transaction":{"value":{"updateId":"u","effectiveAt":"2025-10-14T11:29:20Z","events":[{"CreatedEvent":%s}],`+
			`"offset":1,"synchronizerId":"s","recordTime":"2025-10-14T11:29:20Z"}}}}]`, created),
		fmt.Appendf(nil, `[{"contractEntry":{"JsActiveContract":{"createdEvent":%s,"synchronizerId":"s","reassignmentCounter":0,"new":%s}}}]`, created, payload)
}

// FuzzPlain: jsonb takes all of an update, and of an entry of a snapshot, that is called plain.
func FuzzPlain(f *testing.F) {
	for _, c := range jsonbCases {
		if len(c.value) < 1000 {
			f.Add([]byte(c.value))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		updates, entries := withPayload(value)
		if list, err := ledger.DecodeUpdateList(updates, 0); err == nil && list.Updates[0].Plain {
			for _, c := range list.Updates[0].Created {
				require.Empty(t, jsonbRefuses(c.Argument))
				require.Empty(t, jsonbRefuses(c.Extra))
			}
		}
		if list, err := ledger.DecodeContractEntries(entries); err == nil && list[0].Plain {
			require.Empty(t, jsonbRefuses(list[0].Active.Created.Argument))
			require.Empty(t, jsonbRefuses(list[0].Active.Created.Extra))
			require.Empty(t, jsonbRefuses(entryExtra(&list[0])))
		}
	})
}

// What jsonb refuses makes its update, or its entry, not plain, and what is usual does not.
func TestPlain(t *testing.T) {
	t.Parallel()
	plain := func(value string) (update, entry bool) {
		updates, entries := withPayload([]byte(value))
		list, err := ledger.DecodeUpdateList(updates, 0)
		require.NoError(t, err)
		contracts, err := ledger.DecodeContractEntries(entries)
		require.NoError(t, err)
		return list.Updates[0].Plain, contracts[0].Plain
	}
	for _, c := range jsonbCases {
		if len(c.value) < maxBytes && jsonbRefuses([]byte(c.value)) != "" {
			update, entry := plain(c.value)
			require.False(t, update, "%.100s", c.value)
			require.False(t, entry, "%.100s", c.value)
		}
	}
	for _, value := range []string{`{"a":"b \"c\" \\ \n","n":[1,-2.5,123456789012345678901234567890]}`, `1e5`, `"é \u0009 \u00e9"`} {
		update, entry := plain(value)
		require.True(t, update, value)
		require.True(t, entry, value)
	}
}

// FuzzExactValue: what a row's own column takes is JSON, and it is the value itself unless that is kept.
func FuzzExactValue(f *testing.F) {
	for _, c := range jsonbCases {
		if len(c.value) < 1000 {
			f.Add([]byte(c.value))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) || !utf8.Valid(value) {
			return
		}
		var kept Exact
		column := kept.Value("payload", value)
		require.True(t, json.Valid(column))
		exact := kept.Column()
		require.Nil(t, kept.Column(), "the next row's")
		if exact == nil {
			require.Equal(t, value, column)
			return
		}
		var fields map[string]string
		require.NoError(t, json.Unmarshal(exact, &fields))
		require.Equal(t, map[string]string{"payload": string(value)}, fields)
		require.Empty(t, jsonbRefuses(exact))
		require.True(t, bytes.HasPrefix(column, []byte(`{"$exact": "`)))
		require.Empty(t, jsonbRefuses(column))
	})
}
