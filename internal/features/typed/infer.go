package typed

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits on what is inferred from stored values where no package says a type: see Infer.
const (
	// mostMembers is the number of different members above which objects are taken for maps, not records.
	mostMembers = 200
	// deepest limits the depth of nested records.
	deepest = 12
	// longestName is how many bytes a name has at most.
	longestName = 1000
)

var (
	identifier = regexp.MustCompile(`^[A-Za-z$_][A-Za-z0-9$_]*$`)
	dotted     = regexp.MustCompile(`^[A-Za-z$_][A-Za-z0-9$_]*(\.[A-Za-z$_][A-Za-z0-9$_]*)*$`)
	hyphenated = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// isName reports whether a text can be the name of a field or a choice. Its length is no part of the expression, which
// would take a third of what every program needs to start.
func isName(text string) bool { return len(text) <= longestName && identifier.MatchString(text) }

// Served returns a subject that events name but no known package defines; nil if its names are not valid in the
// language. ids are those of its packages, by which it can be named too.
func Served(kind Kind, pkg, module, entity, choice string, ids []string) *Subject {
	if !hyphenated.MatchString(pkg) || !dotted.MatchString(module) || !dotted.MatchString(entity) || choice != "" &&
		!isName(choice) {
		return nil
	}
	s := &Subject{Kind: kind, Package: pkg, Module: module, Entity: entity, Choice: choice}
	for _, id := range ids {
		s.definitions = append(s.definitions, definition{id: id})
	}
	return s
}

// Known reports whether a package defines the subject.
func (s *Subject) Known() bool {
	return slices.ContainsFunc(s.definitions, func(d definition) bool { return d.expr != nil })
}

// Seen is what the values of one member of many objects have in common. Nulls are not counted as values.
type Seen struct {
	Object  int // index of the objects among those of the query
	Key     string
	Present int64 // objects that have the member, be it null
	Values  int64
	Objects int64 // values that are objects
	Cases   int64 // objects of the form of a variant
	Lists   int64
	Bools   int64 // true or false; what is left are texts and numbers

	// Whether every text or number equals the text of its cast to the type.
	Bigint, Numeric, Date, Timestamp bool
	// Decimals is the number of digits after the point; negative if numbers differ.
	Decimals int
}

// sql returns the type through which every value round-trips; empty if there is no value.
func (m *node) sql() string {
	switch texts := m.Values - m.Objects - m.Lists - m.Bools; {
	case m.Values == 0:
		return ""
	case m.Objects > 0 || m.Lists > 0:
		return "jsonb"
	case m.Bools == m.Values:
		return "boolean"
	case texts < m.Values:
		return "text"
	case m.Bigint:
		return "bigint"
	case m.Numeric && m.Decimals >= 0:
		return fmt.Sprintf("numeric(38,%d)", m.Decimals)
	case m.Date:
		return "date"
	case m.Timestamp:
		return "timestamp with time zone"
	}
	return "text"
}

type node struct {
	Seen
	path    []string
	record  bool // its members have columns, and it has none
	variant bool // its constructors have columns, and so has it
	asked   bool
	members []*node
}

// Infer infers the shape of a subject from stored values, for subjects that no known package defines. read is called
// with queries whose rows are Seen; all of them must run in one snapshot.
//
// Each member gets a column, of a type through which the text of every value round-trips, else of type text. A nested
// object is treated alike if every value there is an object and they look like records: few members, with names that
// the language allows, one of them in all. Else it is jsonb. A member that is null everywhere has no column.
func Infer(s *Subject, ledger string, read func(query string) ([]Seen, error)) (Shape, error) {
	ask := func(whole string) func([]*node) ([]Seen, error) {
		return func(objects []*node) ([]Seen, error) { return read(seenQuery(s, ledger, whole, objects)) }
	}
	var shape Shape
	root, err := infer(true, mostColumns, &shape, ask(value[s.Kind].sql))
	if err != nil {
		return Shape{}, err
	}
	if root.Values == 0 {
		return Shape{}, &UnknownError{Of: s.String(), Why: "its package is not there, and no value of it is stored from " +
			"which they could be inferred"}
	}
	shape.Inferred = root.Values
	shape.parts = root.parts(nil)
	if len(shape.parts) > mostColumns {
		shape.Notes = append(shape.Notes, fmt.Sprintf("it has more members than a view has columns: the first %d have one",
			mostColumns))
		shape.parts = shape.parts[:mostColumns]
	}
	other, ok := beside[s.Kind]
	if !ok {
		return shape, nil
	}
	room := mostColumns - len(shape.parts)
	if root, err = infer(false, room, &shape, ask(other.sql)); err != nil {
		return Shape{}, err
	}
	shape.Keyed = s.Kind == Template && root.Values > 0
	list := root.parts(nil)
	for i, p := range list {
		list[i].path = append([]string{other.step}, p.path...)
	}
	shape.setBeside(list[:min(len(list), room)])
	return shape, nil
}

// infer infers what values are, to the depth that gives at most so many columns. record: they are objects whose members
// have columns.
func infer(record bool, most int, shape *Shape, read func(objects []*node) ([]Seen, error)) (*node, error) {
	root := &node{record: record}
	list, err := read(nil)
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		root.Seen = list[0]
	}
	level := []*node{root}
	if !record {
		level = root.objects(nil)
	}
	for depth := 0; root.Values > 0 && depth < deepest && len(level) > 0; depth++ {
		if list, err = read(level); err != nil {
			return nil, err
		}
		for _, seen := range list {
			in := level[seen.Object]
			in.members = append(in.members, &node{Seen: seen, path: append(slices.Clone(in.path), seen.Key)})
		}
		for _, m := range level {
			m.settle(record && m == root, shape)
		}
		if root.columns() > most { // as deep as there is room for
			for _, m := range level {
				m.record = record && m == root
			}
			break
		}
		level = root.objects(nil)
	}
	return root, nil
}

// settle decides whether objects are records, by their members.
func (m *node) settle(root bool, shape *Shape) {
	m.asked = true
	slices.SortFunc(m.members, func(a, b *node) int { return strings.Compare(a.Key, b.Key) })
	all := len(m.members)
	m.members = slices.DeleteFunc(m.members, func(x *node) bool {
		name := x.Key
		if m.variant {
			name = strings.TrimPrefix(name, "=")
		}
		return !isName(name)
	})
	common := m.variant || slices.ContainsFunc(m.members, func(x *node) bool { return x.Present == m.Objects })
	m.record = root || len(m.members) == all && all <= mostMembers && (common || all == 0)
	if root && len(m.members) < all {
		shape.Notes = append(shape.Notes, "members whose names are none of the language have no column")
	}
}

// objects appends the members within that may be records and have not been queried.
func (m *node) objects(list []*node) []*node {
	if !m.asked {
		if m.Values > 0 && m.Objects == m.Values {
			m.variant = m.Cases == m.Objects
			list = append(list, m)
		}
		return list
	}
	if m.record {
		for _, x := range m.members {
			list = x.objects(list)
		}
	}
	return list
}

func (m *node) columns() int { return len(m.parts(nil)) }

func (m *node) parts(list []part) []part {
	switch {
	case m.record && m.variant:
		list = append(list, part{append(slices.Clone(m.path), "#tag"), "text", "inferred"})
		fallthrough
	case m.record:
		for _, x := range m.members {
			list = x.parts(list)
		}
	case m.sql() != "":
		list = append(list, part{m.path, m.sql(), "inferred"})
	}
	return list
}

// seenQuery returns the query for the members of objects, or, without objects, for the values themselves, as if each
// were the only member of an object.
func seenQuery(s *Subject, ledger, whole string, objects []*node) string {
	v, most := View{Subject: s}, mostMembers
	list := []string{"(0, jsonb_build_object('', e.whole))"}
	if objects != nil {
		list = nil
	}
	for i, m := range objects {
		object := "e.whole"
		if len(m.path) > 0 {
			object = Column{Path: m.path, Type: "jsonb"}.Expression(ledger, object)
		} else {
			most = mostFields
		}
		if m.variant { // of one constructor its value is the only member
			object = fmt.Sprintf("CASE WHEN %[1]s ->> 'tag' IS NOT NULL THEN jsonb_build_object('=' || (%[1]s ->> 'tag'), "+
				"%[1]s -> 'value') END", object)
		}
		list = append(list, fmt.Sprintf("(%d, %s)", i, object))
	}
	return strings.NewReplacer("LEDGER", quoted(ledger), "OBJECTS", strings.Join(list, ",\n        "), "WHOLE", whole,
		"ROWS", v.rows(ledger),
		"MOST", fmt.Sprint(most+1)).Replace(seenSQL)
}

// seenSQL counts the kinds of values of the members of OBJECTS. The stand-in for a value that jsonb can't hold is no
// value.
const seenSQL = `
SELECT object, key, present, "values", objects, cases, lists, bools, bigints, numerics, dates, timestamps, decimals
FROM (
    SELECT object, key, count(*) AS present, count(*) FILTER (WHERE kind <> 'null') AS "values",
        count(*) FILTER (WHERE kind = 'object') AS objects,
        count(*) FILTER (WHERE kind = 'object' AND jsonb_typeof(value -> 'tag') = 'string' AND value ? 'value'
            AND value - '{tag,value}'::text[] = '{}') AS cases,
        count(*) FILTER (WHERE kind = 'array') AS lists, count(*) FILTER (WHERE kind = 'boolean') AS bools,
        coalesce(bool_and(coalesce(LEDGER.as_bigint(text)::text = text, false))
            FILTER (WHERE text IS NOT NULL), false) AS bigints,
        coalesce(bool_and(coalesce(LEDGER.as_numeric(text, decimals)::text = rtrim(text, '.') OR decimals > 0
            AND text ~ 'E', false)) FILTER (WHERE text IS NOT NULL), false)
            AS numerics,
        coalesce(bool_and(coalesce(to_char(LEDGER.as_date(text), 'YYYY-MM-DD') = text, false))
            FILTER (WHERE text IS NOT NULL), false) AS dates,
        coalesce(bool_and(coalesce(to_char(LEDGER.as_timestamptz(text) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')
            = rpad(rtrim(text, 'Z') || CASE WHEN strpos(text, '.') = 0 THEN '.' ELSE '' END, 26, '0'), false))
                FILTER (WHERE text IS NOT NULL), false) AS timestamps,
        coalesce(CASE WHEN min(decimals) = max(decimals) THEN min(decimals) END, -1) AS decimals,
        row_number() OVER (PARTITION BY object ORDER BY key) AS nth
    FROM (
        SELECT x.object, left(y.key, 1001) AS key, y.value, t.kind, t.text,
            CASE WHEN t.text ~ '^-?[0-9]{1,38}(\.[0-9]{0,37})?$' THEN length(split_part(t.text, '.', 2))
                 WHEN t.text ~ '^-?[0-9](\.[0-9]+)?E-[0-9]+$' THEN scale(LEDGER.as_numeric(t.text, 37)) END AS decimals
        FROM (SELECT WHOLE AS whole ROWS) e
        CROSS JOIN LATERAL (VALUES
        OBJECTS) x (object, value)
        CROSS JOIN LATERAL jsonb_each(CASE WHEN jsonb_typeof(x.value) = 'object' THEN x.value END) y
        CROSS JOIN LATERAL (SELECT jsonb_typeof(y.value) AS kind,
            CASE WHEN jsonb_typeof(y.value) IN ('string', 'number') THEN y.value #>> '{}' END AS text OFFSET 0) t
        WHERE NOT (jsonb_typeof(e.whole) = 'object' AND e.whole ? '$exact')
    ) m
    GROUP BY object, key
) s
WHERE nth <= MOST`
