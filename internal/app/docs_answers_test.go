package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"ledgerindexer/sandbox"
)

// answer is what the model of the ledger says to a question of the cookbook, as rows in any order. Empty: no rows is
// right.
type answer struct {
	of    func(d *documented) [][]any
	empty bool
}

// What follows counts and adds up rows of the model.

func text(v any) string {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case string:
		return v
	}
	return fmt.Sprint(v)
}

func whole(v any) int64 { return rational(v).Num().Int64() }

// rational is an exact number, 0 for NULL.
func rational(v any) *big.Rat {
	written := text(v)
	if n, err := strconv.ParseInt(written, 10, 64); err == nil { // as most are
		return new(big.Rat).SetInt64(n)
	}
	n, ok := new(big.Rat).SetString(written)
	if !ok {
		return new(big.Rat)
	}
	return n
}

func instantOf(v any) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text(v))
	if err != nil {
		panic(err) // a column of the model that is no time
	}
	return at
}

func is(column string, value any) func(sandbox.Row) bool {
	return func(r sandbox.Row) bool { return r[column] == value }
}

func only(rows []sandbox.Row, fits func(sandbox.Row) bool) (found []sandbox.Row) {
	for _, r := range rows {
		if fits(r) {
			found = append(found, r)
		}
	}
	return found
}

func columnsOf(r sandbox.Row, columns ...string) []any {
	row := make([]any, len(columns))
	for i, c := range columns {
		row[i] = r[c]
	}
	return row
}

func project(rows []sandbox.Row, columns ...string) (out [][]any) {
	for _, r := range rows {
		out = append(out, columnsOf(r, columns...))
	}
	return out
}

type grouped struct {
	key  []any
	rows []sandbox.Row
}

func groups(rows []sandbox.Row, key func(sandbox.Row) []any) (list []grouped) {
	place := map[string]int{}
	for _, r := range rows {
		k := key(r)
		at, seen := place[plainRow(k)]
		if !seen {
			at = len(list)
			place[plainRow(k)] = at
			list = append(list, grouped{key: k})
		}
		list[at].rows = append(list[at].rows, r)
	}
	return list
}

func by(columns ...string) func(sandbox.Row) []any {
	return func(r sandbox.Row) []any { return columnsOf(r, columns...) }
}

// tally is one row per group: its key, and what is said of its rows.
func tally(rows []sandbox.Row, key func(sandbox.Row) []any, says ...func([]sandbox.Row) any) (out [][]any) {
	for _, g := range groups(rows, key) {
		row := slices.Clone(g.key)
		for _, say := range says {
			row = append(row, say(g.rows))
		}
		out = append(out, row)
	}
	return out
}

func number(rows []sandbox.Row) any { return len(rows) }

func numberWhere(fits func(sandbox.Row) bool) func([]sandbox.Row) any {
	return func(rows []sandbox.Row) any { return len(only(rows, fits)) }
}

func distinct(column string) func([]sandbox.Row) any {
	return func(rows []sandbox.Row) any { return len(groups(rows, by(column))) }
}

// total is the sum of what is not NULL, NULL where everything is.
func total(value func(sandbox.Row) any) func([]sandbox.Row) any {
	return func(rows []sandbox.Row) any {
		sum, known := new(big.Rat), false
		for _, r := range rows {
			if v := value(r); v != nil {
				sum.Add(sum, rational(v))
				known = true
			}
		}
		if !known {
			return nil
		}
		return sum
	}
}

func column(name string) func(sandbox.Row) any { return func(r sandbox.Row) any { return r[name] } }

// within goes into a JSON value.
func within(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

func inside(name string, path ...string) func(sandbox.Row) any {
	return func(r sandbox.Row) any { return within(r[name], path...) }
}

func both(fits ...func(sandbox.Row) bool) func(sandbox.Row) bool {
	return func(r sandbox.Row) bool {
		return !slices.ContainsFunc(fits, func(f func(sandbox.Row) bool) bool { return !f(r) })
	}
}

func listing(name, party string) func(sandbox.Row) bool {
	return func(r sandbox.Row) bool { list, _ := r[name].([]any); return slices.Contains(list, any(party)) }
}

// unnested has a row for each party of a list.
func unnested(rows []sandbox.Row, list string) (out []sandbox.Row) {
	for _, r := range rows {
		parties, _ := r[list].([]any)
		for _, p := range parties {
			out = append(out, sandbox.Row{"party": p})
		}
	}
	return out
}

// sorted is rows by columns, the last first where descending.
func sorted(rows []sandbox.Row, descending bool, columns ...string) []sandbox.Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b sandbox.Row) int {
		order := 0
		for _, c := range columns {
			order = cmp.Or(order, rational(a[c]).Cmp(rational(b[c])))
		}
		if descending {
			return -order
		}
		return order
	})
	return rows
}

func top(rows []sandbox.Row, n int) []sandbox.Row { return rows[:min(n, len(rows))] }

// mean is the mean of numbers of seconds, rounded to thousandths as numeric is: half away from zero.
func mean(seconds []*big.Rat) any {
	sum := new(big.Rat)
	for _, s := range seconds {
		sum.Add(sum, s)
	}
	rounded, _ := new(big.Rat).SetString(sum.Quo(sum, big.NewRat(int64(len(seconds)), 1)).FloatString(3))
	return rounded
}

func between(from, to any) *big.Rat {
	return big.NewRat(instantOf(to).Sub(instantOf(from)).Microseconds(), 1_000_000)
}

// at is what the relations held when the ledger was at an offset.
func (d *documented) at(offset int64) map[string][]sandbox.Row {
	if rows, known := d.past[offset]; known {
		return rows
	}
	rows := d.ledger.Truth(d.scope, offset)
	d.past[offset] = rows
	for relation, held := range d.ledger.Holdings(d.scope, offset) {
		rows[relation] = held
	}
	return rows
}

// offsetAt is the last offset up to which no update is later.
func (d *documented) offsetAt(at string) int64 {
	for _, u := range d.rows["updates"] {
		if instantOf(u["record_time"]).After(instantOf(at)) {
			return whole(u["ledger_offset"]) - 1
		}
	}
	return d.ledger.End()
}

func (d *documented) amulets(rows []sandbox.Row) []sandbox.Row {
	return only(rows, both(is("instrument", "Amulet"), is("instrument_admin", d.ledger.DSO()), is("admin_signed", true)))
}

// periods are the ends of the periods of the cookbook.
var periods = []string{"2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z", "2026-01-01T00:15:00Z", "2026-01-01T00:20:00Z", "2026-01-01T00:25:00Z"}
