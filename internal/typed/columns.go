package typed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ledgerindexer/internal/damllf"
)

const (
	// mostColumns limits the columns of a value. Parts of larger values are jsonb.
	mostColumns = 1000
	// viewColumns is the number of columns that PostgreSQL allows in a view. A view has those that were published before, too.
	viewColumns = 1600
	// nameBytes is the length of the longest name in PostgreSQL.
	nameBytes = 63
)

// Column is a column of a view. It is stored as JSON.
type Column struct {
	Name string `json:"name"`
	// Path leads from the value to the column's: a field by its name, a variant's value by "=" and its constructor, and its constructor
	// itself by "#tag". "@" and a name is no part of the value: see View.SQL.
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

// fitting returns the columns of a type, to the largest depth that gives at most mostColumns; of a record with more fields, the first ones.
func fitting(t *damllf.Type) []part {
	var list []part
	for depth := range 12 {
		deeper := parts(t, nil, depth+1)
		if len(deeper) > mostColumns && list == nil {
			return deeper[:mostColumns]
		}
		if len(deeper) > mostColumns {
			break
		}
		if list != nil && len(deeper) == len(list) && slices.EqualFunc(deeper, list, func(a, b part) bool { return a.sql == b.sql && slices.Equal(a.path, b.path) }) {
			break
		}
		list = deeper
	}
	return list
}

// Shape has the columns of a subject's values over all versions.
type Shape struct {
	parts    []part
	Versions []string // those whose types are known
	Inferred int64    // number of values from which it was inferred, because no version is known; else 0
	// Notes name the versions whose types are not known, and those that are no valid upgrades. A field with several types is text.
	Notes []string
}

// UnknownError means that a subject's types are not known in any version.
type UnknownError struct{ Of, Why string }

func (e *UnknownError) Error() string {
	return "the types of " + e.Of + " are not known: " + cmp.Or(e.Why, "its package is not there")
}

// Shape computes the columns of a subject: those of the newest version, then those that only older ones have. The error is an
// *UnknownError if no version is known.
func (p *Packages) Shape(s *Subject) (Shape, error) {
	var shape Shape
	at := map[string]int{} // index by path
	var newer *damllf.Type
	for i := len(s.definitions) - 1; i >= 0; i-- {
		d := s.definitions[i]
		if d.expr == nil { // no package says it
			continue
		}
		t, err := p.Resolver().Resolve(d.expr)
		if _, ok := errors.AsType[*contentError](err); ok {
			return Shape{}, err
		}
		if err != nil {
			shape.Notes = append(shape.Notes, fmt.Sprintf("version %s is left out: %v", d.version, err))
			continue
		}
		if newer != nil {
			if err := damllf.Compatible(t, newer); err != nil {
				shape.Notes = append(shape.Notes, fmt.Sprintf("version %s breaks the rules of upgrades from %s: %v", shape.Versions[len(shape.Versions)-1], d.version, err))
			}
		}
		newer = t
		shape.Versions = append(shape.Versions, d.version)
		for _, c := range fitting(t) {
			key := strings.Join(c.path, "\x00")
			n, known := at[key]
			switch {
			case !known:
				if len(shape.parts) < mostColumns {
					at[key] = len(shape.parts)
					shape.parts = append(shape.parts, c)
				}
			case shape.parts[n].sql != c.sql:
				shape.parts[n].sql = "text"
				shape.parts[n].daml += ", or " + c.daml + " in version " + d.version
			}
		}
	}
	if len(shape.Versions) == 0 {
		return Shape{}, &UnknownError{Of: s.String(), Why: strings.Join(shape.Notes, "; ")}
	}
	slices.Reverse(shape.Versions)
	shape.Versions = slices.Compact(shape.Versions)
	return shape, nil
}

// described returns a path for people to read.
func described(path []string) string {
	var names []string
	for _, step := range path {
		names = append(names, strings.TrimPrefix(step, "="))
	}
	switch n := len(names); {
	case n == 0:
		return "the value itself"
	case names[n-1] == "#tag":
		return strings.Join(names[:n-1], ".") + " (constructor)"
	}
	return strings.Join(names, ".")
}

// columnName returns the name of a path's column, without the suffix that may make it unique.
func columnName(path []string) string {
	if len(path) == 1 && strings.HasPrefix(path[0], "@") {
		return path[0][1:]
	}
	var names []string
	for _, step := range path {
		names = append(names, Fold(strings.TrimPrefix(strings.TrimPrefix(step, "="), "#")))
	}
	name := strings.Join(names, "_")
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	if name = strings.TrimPrefix(name, "_"); name == "" {
		name = "value"
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return shortened(name, strings.Join(path, "\x00"))
}

// Fold turns a name of the language into one that needs no quotes in SQL: initialAmount becomes initial_amount.
func Fold(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case unicode.IsUpper(r):
			afterLower := i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]))
			beforeLower := i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				out.WriteByte('_')
			}
			out.WriteRune(unicode.ToLower(r))
		case unicode.IsLower(r) || unicode.IsDigit(r):
			out.WriteRune(r)
		default:
			out.WriteByte('_')
		}
	}
	return out.String()
}

// shortened cuts a name that is too long, and adds a hash of what it names.
func shortened(name, of string) string {
	if len(name) <= nameBytes {
		return name
	}
	return name[:nameBytes-9] + "_" + hashed(of)
}

func hashed(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:4])
}

// unique returns the name, with a number if it is taken.
func unique(name string, taken func(string) bool) string {
	candidate := name
	for n := 2; taken(candidate); n++ {
		suffix := fmt.Sprintf("_%d", n)
		candidate = name[:min(len(name), nameBytes-len(suffix))] + suffix
	}
	return candidate
}
