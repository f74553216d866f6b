package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// beside are the columns that the truth leaves out: what the server sends and this simulator knows nothing of, and
// copies of what other columns say. All others of a relation are compared, but for besideAll.
var beside = map[string][]string{
	"updates": {"transaction_hash"}, "interface_views": {"ordinal"},
	"transactions": {"transaction_type", "unit_word"}, "transfers": {"receivers", "balance_changes", "sender_extra"},
	"holdings": {"source"}, "token_events": {"choice_argument", "exercise_result", "transfer"},
}

// besideAll are what no relation's truth has: members of a server's JSON that nobody knows, and the number that a
// database gives a template.
var besideAll = []string{"extra", "template_number"}

// Relations returns the names of the relations that the truth of a ledger's updates has rows of.
func Relations() []string { return slices.Clone(relations) }

// mostDifferences limits the differences that are described for one relation.
const mostDifferences = 5

// Diff compares rows with the truth in any order, column by column, and describes what differs; it returns "" if
// nothing does. It ignores relations that want does not have. A column that only one of both has is a difference.
func Diff(want, got map[string][]Row) string {
	var out strings.Builder
	for _, relation := range slices.Sorted(maps.Keys(want)) {
		diffRelation(&out, relation, want[relation], got[relation])
	}
	return out.String()
}

// identify returns the identity of a row, to find its counterpart. A record of the transaction history without its seq
// has no other than all its columns.
func identify(relation string, r Row) string {
	switch {
	case slices.Contains(historyRelations, relation) && r["seq"] == nil:
		return mustJSON(r)
	case relation == "token_events":
		return mustJSON([]any{r["ledger_offset"], r["node_id"], r["party"], r["instrument"], r["instrument_admin"],
			r["admin_signed"]})
	case relation == "holding_totals":
		return mustJSON([]any{r["owner"], r["instrument"], r["instrument_admin"], r["admin_signed"]})
	}
	key := []byte{'['}
	for i, column := range identity {
		if i > 0 {
			key = append(key, ',')
		}
		switch v := r[column].(type) { // without encoding/json, which would take a third of a comparison
		case nil:
			key = append(key, "null"...)
		case json.Number:
			key = append(key, v...)
		case string:
			key = strconv.AppendQuote(key, v)
		default:
			key = append(key, mustJSON(v)...)
		}
	}
	return string(append(key, ']'))
}

// identity are the columns that tell the rows of a relation apart, as far as it has them.
var identity = []string{
	"seq", "ordinal", "ledger_offset", "activated_offset", "node_id", "activated_node_id", "kind", "contract_id",
	"interface_id", "synchronizer_id", "origin",
}

// same reports whether two values are the same JSON: text, number as it is written, boolean or nil, or an array or
// object of such. Values of other types may still be equal JSON.
func same(a, b any) bool {
	switch a := a.(type) {
	case nil, string, json.Number, bool:
		return a == b
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	}
	return false
}

// differing lists the columns that only one of two rows has, or that have other values.
func differing(a, b Row) (columns []string) {
	common := 0
	for column, value := range a {
		other, both := b[column]
		if both {
			common++
		}
		if !both || !same(value, other) {
			columns = append(columns, column)
		}
	}
	if len(b) > common {
		for column := range b {
			if _, both := a[column]; !both {
				columns = append(columns, column)
			}
		}
	}
	slices.Sort(columns)
	return columns
}

func diffRelation(out *strings.Builder, relation string, want, got []Row) {
	left := map[string][]Row{}
	for _, r := range got {
		key := identify(relation, r)
		left[key] = append(left[key], r)
	}
	shown := 0
	say := func(format string, args ...any) {
		if shown++; shown <= mostDifferences {
			fmt.Fprintf(out, relation+": "+format+"\n", args...)
		}
	}
	for _, w := range want {
		key := identify(relation, w)
		candidates := left[key]
		if len(candidates) == 0 {
			say("missing: %s", mustJSON(w))
			continue
		}
		g := candidates[0]
		left[key] = candidates[1:]
		for _, column := range differing(w, g) {
			a, here := w[column]
			b, there := g[column]
			switch a, b := mustJSON(a), mustJSON(b); {
			case !here:
				say("row %s: column %s is not in the truth", key, column)
			case !there:
				say("row %s: column %s is missing", key, column)
			case a != b:
				say("row %s: column %s: want %s, got %s", key, column, a, b)
			}
		}
	}
	for key, rows := range left {
		if len(rows) > 0 {
			say("%d unexpected: %s", len(rows), key)
		}
	}
	if shown > mostDifferences {
		fmt.Fprintf(out, "%s: and %d more differences (%d rows wanted, %d there)\n", relation, shown-mostDifferences,
			len(want), len(got))
	}
}
