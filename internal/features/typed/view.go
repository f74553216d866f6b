package typed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// View is a view of a subject.
type View struct {
	Schema, Name string
	Subject      *Subject
	Columns      []Column
	Shape        Shape
	Indexed      map[string]bool // fields that have an index, by Column.PathName
}

// wide is the number of columns above which a view takes the value once for all of them: PostgreSQL fetches and
// decompresses a value that is not small for each column anew. It can't use indexes for columns of a value that was
// taken, so fields that have one are taken from the table.
const wide = 100

func (v *View) isWide() bool { return IsWide(v.Columns) }

// IsWide reports whether a view of these columns uses only the indexes that there were when it was made.
func IsWide(columns []Column) bool { return len(columns) > wide }

// base are the columns that do not come from the value: their expressions and SQL types, in the order of a new view.
type base struct{ name, sql, kind, comment string }

var (
	place = []base{
		{"contract_id", "e.contract_id", "text", "The contract."},
		{"template_id", "e.template_id", "text", "Template, as served: package-id:Module:Entity."},
		{"ledger_offset", "e.ledger_offset", "bigint", "Offset of the event."},
		{"node_id", "e.node_id", "integer",
			"Node id of the event. (ledger_offset, node_id) is unique in a view of a template."},
		{"record_time", "e.record_time", "timestamp with time zone",
			"Record time of the update. NULL where a snapshot did not say."},
		{"synchronizer_id", "e.synchronizer_id", "text", "The synchronizer."},
	}
	active = base{"active", "a.ledger_offset IS NOT NULL",
		"boolean", "Whether the contract is active since this event, at the watermark."}
	created = []base{
		{"created_at", "e.created_at", "timestamp with time zone", "Ledger time of the contract's creation."},
		{"signatories", "e.signatories", "text[]", "Signatories."},
		{"observers", "e.observers", "text[]", "Observers."},
	}
	value = map[Kind]base{
		Template: {"payload", "e.payload", "jsonb", "The whole payload as served."},
		Interface: {"view_value", "e.view_value", "jsonb",
			"The whole interface view as served. NULL: it could not be computed."},
		Choice: {"choice_argument", "e.choice_argument", "jsonb", "The whole argument as served."},
	}
	key       = base{"contract_key", "e.contract_key", "jsonb", "The contract's whole key as served."}
	exercised = []base{
		{"exercise_result", "e.exercise_result", "jsonb", "The whole result of the exercise as served."},
		{"acting_parties", "e.acting_parties", "text[]", "Who exercised it."},
		{"consuming", "e.consuming", "boolean", "Whether it archived the contract."},
	}
)

// beside is what lies beside the value and has columns of its own: the first step of their paths, and its expression.
var beside = map[Kind]struct{ step, sql string }{Template: {"@key", key.sql}, Choice: {"@result", "e.exercise_result"}}

// shadowed has what stands before the name of a field that a column of the event has.
var shadowed = map[Kind]string{Template: "payload_", Interface: "view_", Choice: "argument_"}

// bases returns the columns of a kind that are no part of the value. ledger is the schema that analysts read.
func bases(kind Kind, ledger string) []base {
	switch kind {
	case Interface:
		list := slices.Clone(place)
		list[1].sql = fmt.Sprintf("(SELECT c.template_id FROM %s.created_events c WHERE c.ledger_offset = e.ledger_offset "+
			"AND c.node_id = e.node_id LIMIT 1)",
			quoted(ledger))
		return append(list, base{"interface_id", "e.interface_id", "text", "The interface, as served."}, active, value[kind])
	case Choice:
		return append(append(slices.Clone(place), exercised...), value[kind])
	}
	return append(append(slices.Clone(place), active), append(slices.Clone(created), key, value[kind])...)
}

// NewView returns the view of a subject. Columns that were published before keep their position and type. changes
// describes new columns, and those that stay although the shape has them no more, or with another type.
func NewView(schema, name string, s *Subject, shape Shape, published []Column) (v View, changes []string) {
	v = View{Schema: schema, Name: name, Subject: s, Shape: shape, Columns: slices.Clone(published)}
	wanted := v.wanted()
	taken := func(name string) bool {
		return slices.ContainsFunc(v.Columns, func(c Column) bool { return c.Name == name })
	}
	find := func(list []Column, path []string) int {
		return slices.IndexFunc(list, func(c Column) bool { return slices.Equal(c.Path, path) })
	}
	without := 0
	for _, w := range wanted {
		i := find(v.Columns, w.Path)
		switch {
		case i < 0 && len(v.Columns) == viewColumns:
			without++
		case i < 0:
			w.Name = unique(w.Name, taken)
			v.Columns = append(v.Columns, w)
			if published != nil {
				changes = append(changes, fmt.Sprintf("column %s came", w.Name))
			}
		case v.Columns[i].Type != w.Type:
			changes = append(changes, fmt.Sprintf("column %s stays %s, though it would be %s now: what does not fit is NULL; "+
				"drop the view and create it again",
				v.Columns[i].Name, v.Columns[i].Type, w.Type))
		}
	}
	if without > 0 {
		changes = append(changes, fmt.Sprintf("%d fields have no column: a view has at most %d, published ones included; "+
			"drop the view and create it again", without, viewColumns))
	}
	for _, c := range published {
		if find(wanted, c.Path) < 0 {
			changes = append(changes, fmt.Sprintf("column %s stays, though no version has it", c.Name))
		}
	}
	return v, changes
}

// wanted returns the columns of a new view.
func (v *View) wanted() (list []Column) {
	kind := v.Subject.Kind
	events := map[string]bool{}
	for _, b := range bases(kind, "") {
		events[b.name] = true
		if b != key || v.Shape.Keyed {
			list = append(list, Column{Name: b.name, Path: []string{"@" + b.name}, Type: b.kind})
		}
	}
	for _, p := range v.Shape.all() {
		c := Column{Name: columnName(p.path), Path: p.path, Type: p.sql}
		if events[c.Name] {
			c.Name = shadowed[kind] + c.Name
		}
		list = append(list, c)
	}
	return list
}

// Shadowed returns notes on the fields that have not their own name, because a column of the event has it.
func (v *View) Shadowed() (notes []string) {
	for _, b := range bases(v.Subject.Kind, "") {
		if c := v.shadowedBy(b.name); c != nil {
			notes = append(notes, fmt.Sprintf("field %s is column %s, because %s is the event's", c.PathName(), c.Name, b.name))
		}
	}
	return notes
}

// shadowedBy returns the column of the field that would have the name of a column of the event; nil if there is none.
func (v *View) shadowedBy(name string) *Column {
	for i, c := range v.Columns {
		if !strings.HasPrefix(c.root(), "@") && columnName(c.Path) == name {
			return &v.Columns[i]
		}
	}
	return nil
}

func quoted(names ...string) string { return pgx.Identifier(names).Sanitize() }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// SQL returns the statements that create or replace the view. ledger is the schema that analysts read.
func (v *View) SQL(ledger string) []string {
	name := quoted(v.Schema, v.Name)
	var columns []string
	comments := []string{"COMMENT ON VIEW " + name + " IS " + literal(v.comment())}
	for _, c := range v.Columns {
		expr, comment := "", ""
		if b, ok := c.base(v.Subject.Kind, ledger); ok {
			expr, comment = b.sql, b.comment
			if field := v.shadowedBy(b.name); field != nil {
				comment += " The field " + field.PathName() + " is " + field.Name + "."
			}
		} else {
			expr, comment = v.expression(c, ledger), v.describe(c)
		}
		columns = append(columns, expr+" AS "+quoted(c.Name))
		comments = append(comments, "COMMENT ON COLUMN "+name+"."+quoted(c.Name)+" IS "+literal(comment))
	}
	create := "CREATE OR REPLACE VIEW " + name + " WITH (security_invoker = true) AS\nSELECT " + strings.Join(columns,
		",\n    ") + "\n" + v.rows(ledger)
	return append([]string{create}, comments...)
}

// expression returns the expression of a column in the view.
func (v *View) expression(c Column, ledger string) string {
	from, taken := value[v.Subject.Kind].sql, "once.value"
	if root := beside[v.Subject.Kind]; root.step != "" && c.root() == root.step {
		from, taken, c.Path = root.sql, "once.beside", c.Path[1:]
	} else if v.Indexed[c.PathName()] {
		taken = from
	}
	if v.isWide() {
		from = taken
	}
	return c.Expression(ledger, from)
}

// root returns the first step of the column's path; empty for the value itself.
func (c Column) root() string {
	if len(c.Path) == 0 {
		return ""
	}
	return c.Path[0]
}

// base returns the base column of this name, if it is one.
func (c Column) base(kind Kind, ledger string) (base, bool) {
	list := bases(kind, ledger)
	i := slices.IndexFunc(list, func(b base) bool { return slices.Equal(c.Path, []string{"@" + b.name}) })
	if i < 0 {
		return base{}, false
	}
	return list[i], true
}

// once joins the value, and what lies beside it, taken from the table once, where the view is wide. OFFSET keeps the
// planner from putting the expressions back in the place of each use; #> '{}' is the value itself, out of its storage.
func (v *View) once() string {
	if !v.isWide() {
		return ""
	}
	list := value[v.Subject.Kind].sql + " #> '{}' AS value"
	if other, ok := beside[v.Subject.Kind]; ok {
		list += ", " + other.sql + " #> '{}' AS beside"
	}
	return "CROSS JOIN LATERAL (SELECT " + list + " OFFSET 0) once\n"
}

// rows returns the FROM and WHERE clauses that select the events.
func (v *View) rows(ledger string) string {
	s := v.Subject
	named := fmt.Sprintf("e.package_name = %s AND e.module_name = %s AND e.entity_name = %s",
		literal(s.Package), literal(s.Module), literal(s.Entity))
	switch {
	case s.Kind == Template:
		return fmt.Sprintf("FROM %s.created_events e\n%s%s AND a.template_number = e.template_number\nWHERE %s",
			quoted(ledger), v.once(), activeNow(ledger), named)
	case s.Kind == Interface:
		return fmt.Sprintf("FROM %s.interface_views e\n%s%s\nWHERE %s", quoted(ledger), v.once(), activeNow(ledger), named)
	case s.OfInterface:
		named = fmt.Sprintf("e.interface_id IN (SELECT p.package_id || %s FROM %s.packages p WHERE p.package_name = %s)",
			literal(":"+s.Module+":"+s.Entity), quoted(ledger), literal(s.Package))
	default:
		named = "e.interface_id IS NULL AND " + named
	}
	return fmt.Sprintf("FROM %s.exercised_events e\n%sWHERE e.choice = %s AND %s", quoted(ledger), v.once(),
		literal(s.Choice), named)
}

// activeNow joins the contracts that are active since an event. The planner drops the join if a query does not use it,
// and starts with it if the query wants only active contracts: they are fewer than events, and have an index by
// template.
func activeNow(ledger string) string {
	return fmt.Sprintf("LEFT JOIN %s.active_events a ON a.ledger_offset = e.ledger_offset AND a.node_id = e.node_id",
		quoted(ledger))
}

func (v *View) comment() string {
	rows := map[Kind]string{Template: "creation event", Interface: "interface view of a creation event",
		Choice: "exercise"}
	text := fmt.Sprintf("Typed view of %s. Versions %s. One row per %s. A value that does not fit its column is NULL "+
		"there, and is in %s.", v.Subject, strings.Join(v.Shape.Versions, ", "), rows[v.Subject.Kind],
		value[v.Subject.Kind].name)
	for _, note := range v.Shape.Notes {
		text += " " + note + "."
	}
	return strings.ToValidUTF8(text[:min(len(text), 4000)], "")
}

func (v *View) describe(c Column) string {
	for _, p := range v.Shape.all() {
		switch {
		case !slices.Equal(p.path, c.Path):
		case p.sql == c.Type:
			return described(c.Path) + ": " + p.daml
		default:
			return described(c.Path) + ": " + p.daml + "; what is no " + c.Type + " is NULL"
		}
	}
	return described(c.Path) + ": in no version that is known"
}

// Expression returns the expression of a column from the value. Views and indexes must have the same one, or PostgreSQL
// does not use the index. Texts are extracted as people write it, value -> 'a' ->> 'b', for the same reason.
func (c Column) Expression(ledger, value string) string {
	var path, guards []string
	for _, step := range c.Path {
		switch {
		case step == "#tag":
			path = append(path, "tag")
		case strings.HasPrefix(step, "="):
			guards = append(guards, into(value, append(slices.Clone(path), "tag"), "->>")+" = "+literal(step[1:]))
			path = append(path, "value")
		default:
			path = append(path, step)
		}
	}
	text := into(value, path, "->>")
	cast := func(function string) string { return quoted(ledger) + "." + function + "(" + text + ")" }
	expr := "(" + text + ")"
	switch c.Type {
	case "boolean", "bigint", "date":
		expr = cast("as_" + c.Type)
	case "timestamp with time zone":
		expr = cast("as_timestamptz")
	case "jsonb":
		expr = fmt.Sprintf("nullif(%s, 'null'::jsonb)", into(value, path, "->"))
	}
	var scale int
	_, err := fmt.Sscanf(c.Type, "numeric(38,%d)", &scale)
	numeric := err == nil
	if numeric {
		expr = fmt.Sprintf("%s.as_numeric(%s, %d)", quoted(ledger), text, scale)
	}
	if len(guards) > 0 {
		expr = "CASE WHEN " + strings.Join(guards, " AND ") + " THEN " + expr + " END"
		if numeric {
			expr = "(" + expr + ")"
		}
	}
	if numeric { // behind CASE, which has no scale of its own
		expr += "::" + c.Type
	}
	return expr
}

// into extracts a path from a value, with the operator last for the last step. An empty path is the whole value.
func into(value string, path []string, last string) string {
	if len(path) == 0 {
		return value + " #" + last[1:] + " '{}'"
	}
	expr := value
	for i, step := range path {
		operator := "->"
		if i == len(path)-1 {
			operator = last
		}
		expr += " " + operator + " " + literal(step)
	}
	return expr
}
