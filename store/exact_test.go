package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	d := newDatabase(t)
	d.exec(`CREATE FUNCTION takes(value text) RETURNS boolean LANGUAGE plpgsql AS
		$$ BEGIN PERFORM length(value::jsonb::text); RETURN true; EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN RETURN false; END $$`)
	var values []string
	for _, c := range jsonbCases {
		values = append(values, c.value)
	}
	fixed := len(values)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		values = append(values, randomJSON(r, 3))
	}
	rows := d.rows("SELECT takes(v) FROM unnest($1::text[]) WITH ORDINALITY AS x (v, n) ORDER BY n", values)
	taken := 0
	for i, value := range values {
		require.True(t, json.Valid([]byte(value)), value)
		if jsonbRefuses([]byte(value)) == "" {
			taken++
			require.Equal(t, "true", rows[i], value)
		} else if i >= fixed {
			require.Equal(t, "false", rows[i], value)
		}
	}
	require.Greater(t, taken, 500)
	require.Greater(t, len(values)-taken, 500)
}

// What jsonb refuses is stored byte for byte, and marked where it would have stood.
func TestExactValuesAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	u := newUpdate(1, "sync::1")
	for i, c := range jsonbCases {
		e := creation(int32(i), fmt.Sprint("contract-", i))
		e.Argument = ledger.JSON(c.value)
		u.Created = append(u.Created, e)
	}
	require.NoError(t, l.Append(t.Context(), testScope, []ledger.Page{{From: 0, To: 1, Updates: []ledger.Update{u}}}))
	for i, c := range jsonbCases {
		var marked bool
		var exact []byte
		err := d.conn.QueryRow(t.Context(), `SELECT c.payload ? '$exact', x.exact FROM ledger.created_events c
			LEFT JOIN ledger.exact_payloads x USING (ledger_offset, node_id) WHERE c.node_id = $1`, i).Scan(&marked, &exact)
		require.NoError(t, err, c.name)
		require.Equal(t, c.refused, marked, c.name)
		if c.refused {
			require.True(t, c.value == string(exact), c.name)
		} else {
			require.Nil(t, exact, c.name)
			require.Equal(t, "true", d.row("SELECT payload = $2::text::jsonb FROM ledger.created_events WHERE node_id = $1", i, c.value), c.name)
		}
	}
}

// Each value has its own field, and names the row it belongs to.
func TestExactFields(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	bad := func(n string) ledger.JSON { return ledger.JSON(`{"` + n + `": "\u0000"}`) }
	u := newUpdate(1, "sync::1")
	u.Extra = bad("1")
	u.RecordTime, u.EffectiveAt = testTime("2025-01-02T03:04:05.123456789Z"), testTime("2025-01-02T03:04:05.1234561+02:00")
	c := creation(0, "contract")
	c.Argument, c.ContractKey, c.Extra, c.CreatedAt = bad("2"), bad("3"), bad("4"), testTime("2025-01-02T03:04:05.000000001Z")
	c.InterfaceViews = []ledger.InterfaceView{{InterfaceID: "i:I:I", Value: bad("5"), StatusDetails: bad("6"), Extra: bad("7")}}
	u.Created = []ledger.CreatedEvent{c}
	u.Exercised = []ledger.ExercisedEvent{{NodeID: 1, ContractID: "x", TemplateID: testTemplate, Argument: bad("8"), Result: bad("9"), Extra: bad("10")}}
	u.Archived = []ledger.ArchivedEvent{{NodeID: 2, ContractID: "x", TemplateID: testTemplate, Extra: bad("11")}}
	v := newUpdate(2, "sync::1")
	assign(&v, 0, "contract", "sync::2", "sync::1", 1)
	v.Assigned[0].Extra = bad("12")
	unassign(&v, 1, "contract", "sync::1", "sync::2", 2)
	v.Unassigned[0].Extra, v.Unassigned[0].AssignmentExclusivity = bad("13"), testTime("2025-01-02T03:04:05.9999999Z")
	w := newUpdate(3, "sync::1")
	w.Topology = []ledger.TopologyEvent{{Kind: ledger.TopologyUnknown, Extra: bad("14")}}
	w.Unknown = []ledger.UnknownElement{{Kind: "New", NodeID: ptr(int32(4)), Raw: bad("15")}}
	require.NoError(t, l.Append(t.Context(), testScope, []ledger.Page{{From: 0, To: 3, Updates: []ledger.Update{u, v, w}}}))
	require.Equal(t, sorted([]string{
		`1 <nil> extra {"1": "\u0000"}`, `1 <nil> recordTime "2025-01-02T03:04:05.123456789Z"`, `1 <nil> effectiveAt "2025-01-02T03:04:05.1234561+02:00"`,
		`1 0 payload {"2": "\u0000"}`, `1 0 contract_key {"3": "\u0000"}`, `1 0 extra {"4": "\u0000"}`, `1 0 createdAt "2025-01-02T03:04:05.000000001Z"`,
		`1 0 view_value {"5": "\u0000"}`, `1 0 status_details {"6": "\u0000"}`, `1 0 extra {"7": "\u0000"}`,
		`1 1 choice_argument {"8": "\u0000"}`, `1 1 exercise_result {"9": "\u0000"}`, `1 1 extra {"10": "\u0000"}`, `1 2 extra {"11": "\u0000"}`,
		`2 0 assignment_extra {"12": "\u0000"}`, `2 1 extra {"13": "\u0000"}`, `2 1 assignmentExclusivity "2025-01-02T03:04:05.9999999Z"`,
		`3 0 extra {"14": "\u0000"}`, `3 4 raw {"15": "\u0000"}`,
	}), sorted(d.rows("SELECT ledger_offset, node_id, field, convert_from(exact, 'UTF8') FROM ledger.exact_payloads")))
	require.Equal(t, "2025-01-02 03:04:05.123456+00 2025-01-02 01:04:05.123456+00",
		d.row("SELECT record_time::text, effective_at::text FROM ledger.updates WHERE ledger_offset = 1"), "the microsecond before")
}
