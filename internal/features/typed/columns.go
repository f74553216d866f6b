package typed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ledgerindexer/internal/features/damllf"
)

// Limits on the columns of a typed view.
const (
	// mostColumns limits the columns of a value. Parts of larger values are jsonb.
	mostColumns = 1000
	// viewColumns is the number of columns that PostgreSQL allows in a view. A view has those that were published before,
	// too.
	viewColumns = 1600
	// nameBytes is the length of the longest name in PostgreSQL.
	nameBytes = 63
)

// Column is a column of a view. It is stored as JSON.
type Column struct {
	Name string `json:"name"`
	// Path leads from the value to the column's: a field by its name, a variant's value by "=" and its constructor, and
	// its constructor itself by "#tag". "@" and a name first is no part of the value but a column of the event, or what
	// lies beside the value: see beside.
	Path []string `json:"path"`
	Type string   `json:"type"` // of SQL
}

// part is a column of one version, and its type in the language.
type part struct {
	path []string
	sql  string
	daml string
}

// parts returns the columns of a type's values. Records and variants nested deeper than depth are jsonb.
func parts(t *damllf.Type, path []string, depth int) []part {
	leaf := func(sql string) []part { return []part{{slices.Clone(path), sql, t.String()}} }
	switch t.Kind {
	case damllf.Unit:
		return nil
	case damllf.Bool:
		return leaf("boolean")
	case damllf.Int64:
		return leaf("bigint")
	case damllf.Numeric:
		return leaf(fmt.Sprintf("numeric(38,%d)", t.Scale))
	case damllf.Date:
		return leaf("date")
	case damllf.Timestamp:
		return leaf("timestamp with time zone")
	case damllf.Party, damllf.Text, damllf.ContractID, damllf.Enum:
		return leaf("text")
	case damllf.Optional:
		if inner := parts(t.Args[0], path, depth); t.Args[0].Kind != damllf.Optional && len(inner) > 0 {
			if len(inner[0].path) == len(path) {
				inner[0].daml = t.String()
			}
			return inner
		}
		return leaf("jsonb")
	case damllf.Record:
		if depth == 0 {
			return leaf("jsonb")
		}
		var list []part
		for _, f := range t.Fields {
			list = append(list, parts(f.Type, append(slices.Clone(path), f.Name), depth-1)...)
		}
		return list
	case damllf.Variant:
		if depth == 0 {
			return leaf("jsonb")
		}
		list := []part{{append(slices.Clone(path), "#tag"), "text", t.String()}}
		for _, f := range t.Fields {
			list = append(list, parts(f.Type, append(slices.Clone(path), "="+f.Name), depth-1)...)
		}
		return list
	}
	return leaf("jsonb") // lists, maps, a type within itself
}

// fitting returns the columns of a type, to the largest depth that gives at most so many; of a record with more fields,
// the first ones.
func fitting(t *damllf.Type, root []string, most int) []part {
	var list []part
	for depth := range 12 {
		deeper := parts(t, root, depth+1)
		if len(deeper) > most && list == nil {
			return deeper[:most]
		}
		if len(deeper) > most {
			break
		}
		if list != nil && len(deeper) == len(list) &&
			slices.EqualFunc(deeper, list, func(a, b part) bool { return a.sql == b.sql && slices.Equal(a.path, b.path) }) {
			break
		}
		list = deeper
	}
	return list
}

// Shape has the columns of a subject's values over all versions.
type Shape struct {
	parts    []part
	beside   []part   // of the value beside; their paths begin with its root
	Keyed    bool     // of a template: its contracts have keys
	Versions []string // those whose types are known
	// Notes name the versions whose types are not known. A field with several types is text.
	Notes []string
}

// UnknownError means that a subject's types are not known in any version.
type UnknownError struct{ Of, Why string }

func (e *UnknownError) Error() string {
	return "the types of " + e.Of + " are not known: " + cmp.Or(e.Why, "its package is not there")
}

// Shape computes the columns of a subject: those of the newest version, then those that only older ones have. The error
// is an *UnknownError if no version is known.
func (p *Packages) Shape(s *Subject) (Shape, error) {
	var shape Shape
	own, err := p.merge(s, &shape, nil, func(d definition) *damllf.TypeExpr { return d.expr })
	if err != nil {
		return Shape{}, err
	}
	if shape.parts = own.parts; len(own.versions) == 0 {
		return Shape{}, &UnknownError{Of: s.String(), Why: strings.Join(shape.Notes, "; ")}
	}
	slices.Reverse(own.versions)
	shape.Versions = slices.Compact(own.versions)
	if root, ok := beside[s.Kind]; ok {
		other, err := p.merge(s, &shape, []string{root.step}, func(d definition) *damllf.TypeExpr { return d.beside })
		if err != nil {
			return Shape{}, err
		}
		shape.setBeside(other.parts)
		shape.Keyed = s.Kind == Template && slices.ContainsFunc(s.definitions,
			func(d definition) bool { return d.beside != nil })
	}
	return shape, nil
}

// setBeside sets the columns of the value beside, without that of the whole where this is jsonb: the event's own column
// has it.
func (shape *Shape) setBeside(list []part) {
	shape.beside = slices.DeleteFunc(list, func(p part) bool { return len(p.path) == 1 && p.sql == "jsonb" })
}

// all returns all columns, those of the value beside last.
func (shape *Shape) all() []part { return slices.Concat(shape.parts, shape.beside) }

// merged has the columns of a value over all versions, and these, the newest first.
type merged struct {
	parts    []part
	versions []string
}

// merge puts the columns together that a value has in each version, as many as have room beside those of the shape. It
// notes in the shape which versions are left out.
func (p *Packages) merge(s *Subject, shape *Shape, root []string,
	of func(definition) *damllf.TypeExpr) (m merged, err error) {
	at := map[string]int{} // index by path
	room := mostColumns - len(shape.parts)
	what := strings.TrimPrefix(strings.Join(root, ""), "@")
	if what != "" {
		what = "the " + what + " of "
	}
	for _, d := range slices.Backward(s.definitions) {
		expr := of(d)
		if expr == nil { // such as a key of a template that has none
			continue
		}
		t, err := p.Resolver().Resolve(expr)
		if _, ok := errors.AsType[*contentError](err); ok {
			return merged{}, err
		}
		if err != nil {
			shape.Notes = append(shape.Notes, fmt.Sprintf("%sversion %s is left out: %v", what, d.version, err))
			continue
		}
		m.versions = append(m.versions, d.version)
		for _, c := range fitting(t, root, room) {
			key := strings.Join(c.path, "\x00")
			n, known := at[key]
			switch {
			case !known:
				if len(m.parts) < room {
					at[key] = len(m.parts)
					m.parts = append(m.parts, c)
				}
			case m.parts[n].sql != c.sql:
				m.parts[n].sql = "text"
				m.parts[n].daml += ", or " + c.daml + " in version " + d.version
			}
		}
	}
	return m, nil
}
