package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// Rows are compared in pieces: a statement can't take more than 1 GB of arguments.
const (
	pieceBytes = 16 << 20
	pieceRows  = 20_000
)

// exactColumn holds the values that their own columns can't.
const exactColumn = "exact"

// extraFields are the exact values of what an event, or the entry around it, has besides. See compareEvents.
var extraFields = []string{"extra", "assignment_extra", "entry_extra", "assignment_entry_extra"}

// digestAbove is the length in bytes above which binary values are compared, and shown, by their SHA-256.
const digestAbove = 64

// recordedTable is what writing would put into a table: the columns, their types and the rows' values as text.
type recordedTable struct {
	tables.Table
	columns []column
	rows    []recordedRow
}

type column struct {
	name     string
	typeName string // as in pg_type, such as int8 or _text
}

// columnNamed finds a column by its name; -1: there is none.
func columnNamed(columns []column, name string) int {
	return slices.IndexFunc(columns, func(c column) bool { return c.name == name })
}

func columnNames(columns []column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// recordedRow is a row that writing would make.
type recordedRow struct {
	at     rowPlace
	values []*string // nil: NULL
	bytes  int
}

// rowPlace orders the rows of a table, so that they can be taken in pieces. Rows at the same place stay together.
type rowPlace struct {
	offset int64 // or seq
	sub    int32 // what subColumn names; -1: NULL
}

func (p rowPlace) compare(q rowPlace) int {
	return cmp.Or(cmp.Compare(p.offset, q.offset), cmp.Compare(p.sub, q.sub))
}

// behind returns the place after all rows at an offset or seq.
func behind(offset int64) rowPlace { return rowPlace{offset, math.MaxInt32} }

// factColumns returns the columns of every table of facts, in the table's order.
func (s *Stored) factColumns(ctx context.Context, db dbsqlc.DBTX) (map[string][]column, error) {
	return s.columnsOf(ctx, db, tables.In(tables.Facts))
}

func (s *Stored) columnsOf(ctx context.Context, db dbsqlc.DBTX, of []tables.Table) (_ map[string][]column, err error) {
	defer pg.Wrap(&err, "read the types of columns")
	list, err := queries.ColumnTypes(ctx, db, tables.Names(of))
	columns := map[string][]column{}
	for _, c := range list {
		columns[c.Relation] = append(columns[c.Relation], column{c.Name, c.Type})
	}
	return columns, err
}

// record makes a table's rows as text, without writing them. Columns that the rows do not name are NULL.
func record(tx pgx.Tx, table tables.Table, rows rows.Table, known []column) (recordedTable, error) {
	r := recordedTable{Table: table}
	for _, name := range rows.Columns() {
		i := columnNamed(known, name)
		if i < 0 {
			return r, fmt.Errorf("table %s has no column %s", table.Name, name)
		}
		r.columns = append(r.columns, known[i])
	}
	for _, c := range known {
		if columnNamed(r.columns, c.name) < 0 {
			r.columns = append(r.columns, c)
		}
	}
	types := tx.Conn().TypeMap()
	for values := range rows.Values() {
		row := recordedRow{values: make([]*string, len(r.columns))}
		for i, value := range values {
			var err error
			if row.values[i], err = r.columns[i].text(types, value); err != nil {
				return r, fmt.Errorf("make the rows of %s: %w", table.Name, err)
			}
			if row.values[i] != nil {
				row.bytes += len(*row.values[i])
			}
		}
		row.at = r.place(row.values)
		r.rows = append(r.rows, row)
	}
	slices.SortStableFunc(r.rows, func(a, b recordedRow) int { return a.at.compare(b.at) })
	return r, nil
}

// text returns a value as PostgreSQL reads it, nil for NULL; for a binary value what is compared of it.
func (c column) text(types *pgtype.Map, value any) (*string, error) {
	if c.typeName == "bytea" {
		return digest(value.([]byte)), nil
	}
	kind, known := types.TypeForName(c.typeName)
	if !known {
		return nil, fmt.Errorf("column %s has the type %q, which is not known here", c.name, c.typeName)
	}
	text, err := types.Encode(kind.OID, pgx.TextFormatCode, value, []byte{})
	if err != nil || text == nil {
		return nil, err
	}
	return new(string(text)), nil
}

// place finds out where a row is ordered: by its offset or seq, and within it as subColumn says.
func (t *recordedTable) place(row []*string) rowPlace {
	at := rowPlace{offset: numberIn(t.columns, t.Key[0], row)}
	if sub := t.subColumn(); sub != "" {
		if at.sub = -1; row[columnNamed(t.columns, sub)] != nil {
			at.sub = int32(numberIn(t.columns, sub, row))
		}
	}
	return at
}

// numberIn returns the number in a column, which PostgreSQL wrote; 0 for NULL.
func numberIn(columns []column, name string, row []*string) (n int64) {
	if text := row[columnNamed(columns, name)]; text != nil {
		n, _ = strconv.ParseInt(*text, 10, 64)
	}
	return n
}

// subColumn orders the rows at one offset: the second of a table's key columns. It is empty where there is one row
// only, and where the rows belong to a record, which are taken together.
func (t *recordedTable) subColumn() string {
	if len(t.Key) < 2 || t.OfRecords() {
		return ""
	}
	return t.Key[1]
}

// digest returns what is compared of a binary value; digestSQL does the same.
func digest(value []byte) *string {
	if value == nil {
		return nil
	}
	text := hex.EncodeToString(value)
	if len(value) > digestAbove {
		sum := sha256.Sum256(value)
		text = fmt.Sprintf("%d bytes, SHA-256 %x", len(value), sum)
	}
	return &text
}

func digestSQL(expression string, above int) string {
	return fmt.Sprintf("CASE WHEN octet_length(%[1]s) > %[2]d THEN octet_length(%[1]s) || ' bytes, SHA-256 ' || "+
		"encode(sha256(%[1]s), 'hex') ELSE encode(%[1]s, 'hex') END", expression, above)
}
