package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// tableComparison compares the rows of one table. PostgreSQL makes rows of what writing would send, and finds those
// that are on one side only, by their text (table_compare.go); what comes back is put in pairs by key, and values that
// are alike are no difference.
type tableComparison struct {
	table recordedTable
	key   []int // which of the columns identify rows
	pair  []int // which of these put rows in pairs
	names *dictionaries
	found Found

	// Lists of parties are compared as sets, and of a creation's stored witnesses those that are stakeholders.
	stakeholders bool
	ignored      []string // columns that are not compared
}

func newTableComparison(table recordedTable, names *dictionaries, found Found) *tableComparison {
	c := &tableComparison{table: table, names: names, found: found}
	for _, name := range table.Key {
		c.key = append(c.key, columnNamed(table.columns, name))
	}
	if c.pair = c.key; c.ofViews() {
		c.pair = c.key[:2] // all views of an event: their ordinals change when others come and go
	}
	return c
}

// rowPair is the rows with the same key that are on one side only: one at most on each side, except in a table that
// has no primary key, and of interface views.
type rowPair struct {
	key            string
	ledger, stored [][]*string
}

func (p *rowPair) empty() bool { return len(p.ledger)+len(p.stored) == 0 }

// report reports how the rows of one key differ.
func (c *tableComparison) report(p *rowPair) {
	if c.ofViews() {
		c.reportViews(p.ledger, p.stored)
		return
	}
	both := min(len(p.ledger), len(p.stored))
	for i := range both {
		c.reportAltered(p.ledger[i], p.stored[i])
	}
	for _, row := range p.ledger[both:] {
		c.found(c.difference(Missing, row))
	}
	for _, row := range p.stored[both:] {
		c.found(c.difference(Extra, row))
	}
}

// reportAltered reports the columns of a row whose values are not alike.
func (c *tableComparison) reportAltered(wanted, stored []*string) {
	of := c.difference(Altered, stored)
	var names []string
	var left, right []*string
	for i, column := range c.table.columns {
		if !alike(column, wanted[i], stored[i]) {
			names, left, right = append(names, column.name), append(left, wanted[i]), append(right, stored[i])
		}
	}
	if len(names) > 0 {
		c.names.reportRows(of, names, left, right, c.found)
	}
}

// difference names a row.
func (c *tableComparison) difference(kind Disagreement, row []*string) Difference {
	d := c.names.difference(&c.table.Table, c.table.columns, c.table.Key, row)
	d.Kind, d.Element = kind, c.table.Element
	if i := columnNamed(c.table.columns, "node_id"); i >= 0 && row[i] != nil {
		d.NodeID = new(int32(numberIn(c.table.columns, "node_id", row)))
	}
	return d
}

// difference names a row of a table, among those of its offset or record, by the values in some columns.
func (d *dictionaries) difference(table *tables.Table, columns []column, by []string, row []*string) Difference {
	of := Difference{Relation: table.Name}
	if place := table.Place; place != "" && table.OfRecords() {
		of.Seq = numberIn(columns, place, row)
	} else if place != "" {
		of.Offset = ledger.Offset(numberIn(columns, place, row))
	}
	var parts []string
	for _, name := range by {
		value := d.name(name, row[columnNamed(columns, name)])
		switch kind, isRef := tables.References[name]; {
		case value == nil || name == table.Place || name == "only_row":
			continue
		case kind == tables.PartyList:
			name = strings.TrimSuffix(name, "_ref")
		case isRef:
			name = strings.TrimSuffix(name, "_ref") + "_id"
		}
		parts = append(parts, name+" "+*value)
	}
	of.Row = strings.Join(parts, ", ")
	return of
}

// renderedColumns are what a participant computes of an interface view when it is asked, by the package that it prefers
// then: no facts. Of a view all other columns are, and its value where the same package computed it.
var renderedColumns = []string{
	"view_value", "status_code", "status_message", "status_details", PackageColumn, "interface_id", "ordinal",
	"extra", exactColumn,
}

func (c *tableComparison) ofViews() bool { return c.table.Name == "interface_views" }

// reportViews reports the interface views of an event that differ: what is a fact as usual, the rest as rendered
// otherwise, once for each view. Views of the same interface are pairs.
func (c *tableComparison) reportViews(fromLedger, inDatabase [][]*string) {
	id := columnNamed(c.table.columns, "interface_id")
	var wanted, stored [][]*string // in pairs, at first
	rest := slices.Clone(inDatabase)
	var more [][]*string
	for _, row := range fromLedger {
		i := slices.IndexFunc(rest, func(other []*string) bool { return *other[id] == *row[id] })
		if i < 0 {
			more = append(more, row)
			continue
		}
		wanted, stored = append(wanted, row), append(stored, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	moved := len(more) != len(rest) // others came or went
	wanted, stored = append(wanted, more...), append(stored, rest...)
	for i := range max(len(wanted), len(stored)) {
		switch {
		case i >= len(stored):
			c.found(c.rendering(Missing, wanted[i], nil))
		case i >= len(wanted):
			c.found(c.rendering(Extra, nil, stored[i]))
		default:
			c.reportView(wanted[i], stored[i], moved)
		}
	}
}

func (c *tableComparison) reportView(wanted, stored []*string, moved bool) {
	facts := slices.Clone(wanted)
	var rendered *Difference
	byTheSame := c.bySamePackage(wanted, stored)
	for _, name := range renderedColumns {
		i := columnNamed(c.table.columns, name)
		if i < 0 || name == "view_value" && byTheSame {
			continue
		}
		facts[i] = stored[i]
		if rendered == nil && !alike(c.table.columns[i], wanted[i], stored[i]) && !(moved && name == "ordinal") {
			d := c.rendering(Altered, wanted, stored)
			d.Column, d.Wanted, d.Stored = name, wanted[i], stored[i]
			rendered = &d
		}
	}
	if c.reportAltered(facts, stored); rendered != nil {
		c.found(*rendered)
	}
}

// bySamePackage reports whether the same package computed a view on both sides, without a failure: its value follows
// from the contract then.
func (c *tableComparison) bySamePackage(wanted, stored []*string) bool {
	for _, name := range []string{PackageColumn, "status_code"} {
		i := columnNamed(c.table.columns, name)
		if i < 0 || wanted[i] == nil || stored[i] == nil || *wanted[i] != *stored[i] {
			return false
		}
	}
	return true
}

// rendering names a view that is rendered otherwise; one of the rows may be nil.
func (c *tableComparison) rendering(kind Disagreement, wanted, stored []*string) Difference {
	row := stored
	if row == nil {
		row = wanted
	}
	d := c.difference(kind, row)
	d.Rendering = &Rendering{}
	if i := columnNamed(c.table.columns, PackageColumn); i >= 0 {
		if wanted != nil {
			d.Rendering.Ledger = wanted[i]
		}
		if stored != nil {
			d.Rendering.Stored = stored[i]
		}
	}
	return d
}

// alike reports whether two values of a column, as text, say the same: JSON and numbers as ledger.AlikeJSON says.
func alike(c column, a, b *string) bool {
	switch {
	case a == nil && b == nil:
		return true
	case c.name == "extra":
		return ledger.AlikeExtra(jsonOf(a), jsonOf(b))
	case a == nil || b == nil:
		return false
	case *a == *b:
		return true
	case c.name == exactColumn:
		return alikeExact(*a, *b)
	case c.typeName == "jsonb" || c.typeName == "numeric":
		return ledger.AlikeJSON(jsonOf(a), jsonOf(b))
	}
	return false
}

// alikeExact reports whether two rows' exact values say the same, each of which is the JSON of a field.
func alikeExact(a, b string) bool {
	var left, right map[string]string
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil &&
		maps.EqualFunc(left, right, func(x, y string) bool { return ledger.AlikeJSON(ledger.JSON(x), ledger.JSON(y)) })
}

func jsonOf(text *string) ledger.JSON {
	if text == nil {
		return nil
	}
	return ledger.JSON(*text)
}
