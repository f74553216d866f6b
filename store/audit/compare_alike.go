package audit

import (
	"encoding/hex"
	"slices"
	"strings"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
)

// exactColumn holds the bytes of values that their own column can't.
const exactColumn = "exact"

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
	case c.typeName == "jsonb" || c.typeName == "numeric":
		return ledger.AlikeJSON(jsonOf(a), jsonOf(b))
	case c.name == exactColumn:
		left, err := hex.DecodeString(*a)
		right, wrong := hex.DecodeString(*b)
		return err == nil && wrong == nil && ledger.AlikeJSON(left, right) // else one is a digest
	}
	return false
}

// alikeFields reports whether two lists of exact values say the same, each of them with the name of its field.
func alikeFields(a, b *string) bool {
	if a == nil || b == nil {
		return false
	}
	return slices.EqualFunc(strings.Split(*a, ", "), strings.Split(*b, ", "), func(x, y string) bool {
		field, left, _ := strings.Cut(x, " ")
		other, right, _ := strings.Cut(y, " ")
		return field == other && alike(column{name: exactColumn}, &left, &right)
	})
}

func jsonOf(text *string) ledger.JSON {
	if text == nil {
		return nil
	}
	return ledger.JSON(*text)
}

// shownText returns a value that differs as it is shown: long binary ones by their digest.
func shownText(c column, value *string) *string {
	if c.name != exactColumn || value == nil {
		return value
	}
	bytes, err := hex.DecodeString(*value)
	if err != nil {
		return value
	}
	return digest(bytes, digestAbove)
}

// renderedColumns are what a participant computes of an interface view when it is asked, by the package that it prefers then: no facts. Of a view
// all other columns are.
var renderedColumns = []string{
	"view_value", "status_code", "status_message", "status_details", findings.PackageColumn, "interface_id", "ordinal", "extra",
}

func (c *tableComparison) ofViews() bool {
	return c.table.Name == "interface_views" || c.table.Name == "carried_interface_views"
}

// reportViews reports the interface views of an event that differ: what is a fact as usual, the rest as rendered otherwise, once for
// each view. Views of the same interface are pairs.
func (c *tableComparison) reportViews(p *rowPair) error {
	id := columnNamed(c.table.columns, "interface_id")
	var wanted, stored [][]*string // in pairs, at first
	rest := slices.Clone(p.stored)
	var more [][]*string
	for _, row := range p.ledger {
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
		var err error
		switch {
		case i >= len(stored):
			err = c.found(c.rendering(findings.Missing, wanted[i], nil))
		case i >= len(wanted):
			err = c.found(c.rendering(findings.Extra, nil, stored[i]))
		default:
			err = c.reportView(wanted[i], stored[i], moved)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *tableComparison) reportView(wanted, stored []*string, moved bool) error {
	facts := slices.Clone(wanted)
	var rendered *findings.Difference
	for _, name := range renderedColumns {
		i := columnNamed(c.table.columns, name)
		if i < 0 {
			continue
		}
		facts[i] = stored[i]
		if rendered == nil && !alike(c.table.columns[i], wanted[i], stored[i]) && !(moved && name == "ordinal") {
			d := c.rendering(findings.Altered, wanted, stored)
			d.Column, d.Wanted, d.Stored = name, wanted[i], stored[i]
			rendered = &d
		}
	}
	if err := c.reportAltered(facts, stored); err != nil || rendered == nil {
		return err
	}
	return c.found(*rendered)
}

// rendering names a view that is rendered otherwise; one of the rows may be nil.
func (c *tableComparison) rendering(kind findings.Disagreement, wanted, stored []*string) findings.Difference {
	row := stored
	if row == nil {
		row = wanted
	}
	d := c.difference(kind, row)
	d.Rendering = &findings.Rendering{}
	if i := columnNamed(c.table.columns, findings.PackageColumn); i >= 0 {
		if wanted != nil {
			d.Rendering.Ledger = wanted[i]
		}
		if stored != nil {
			d.Rendering.Stored = stored[i]
		}
	}
	return d
}
