package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// tableComparison compares the rows of one table. PostgreSQL makes rows of what writing would send, and finds those
// that are on one side only; what comes back is put in pairs by key here.
type tableComparison struct {
	table recordedTable
	key   []int // which of the columns tell rows apart
	names *dictionaries
	found func(Difference) error
}

func newTableComparison(table recordedTable, names *dictionaries, found func(Difference) error) *tableComparison {
	c := &tableComparison{table: table, names: names, found: found}
	for _, name := range keyColumns[table.relation] {
		c.key = append(c.key, columnNamed(table.columns, name))
	}
	return c
}

// run compares the offsets after from up to to, piece by piece.
func (c *tableComparison) run(ctx context.Context, tx pgx.Tx, from, to ledger.Offset) error {
	sql := c.sql()
	after, rest := behind(from), c.table.rows
	for {
		var piece []recordedRow
		piece, rest = cutPiece(rest)
		upTo := behind(to)
		if len(rest) > 0 {
			upTo = piece[len(piece)-1].at
		}
		if err := c.piece(ctx, tx, sql, after, upTo, piece); err != nil {
			return err
		}
		if len(rest) == 0 {
			return nil
		}
		after = upTo
	}
}

// cutPiece cuts off as many rows as one statement takes, and not between rows at the same place.
func cutPiece(rows []recordedRow) (piece, rest []recordedRow) {
	bytes := 0
	for i := range rows {
		bytes += rows[i].bytes
		if i > 0 && (bytes > pieceBytes || i >= pieceRows) && rows[i].at != rows[i-1].at {
			return rows[:i], rows[i:]
		}
	}
	return rows, nil
}

// The statement's arguments before the columns: the places after which, and up to which, stored rows are compared.
const placeArguments = 4

// sql finds the rows that are on one side only, counting equal rows. It compares jsonb as text, which tells 1.0 from
// 1.00, and binary values by their digest.
func (c *tableComparison) sql() string {
	relation := c.table.relation
	var arrays, names, expected, stored, key []string
	for i, column := range c.table.columns {
		name := pgx.Identifier{column.name}.Sanitize()
		arrays = append(arrays, fmt.Sprintf("$%d::text[]", i+1+placeArguments))
		names = append(names, name)
		switch column.typeName {
		case "bytea":
			expected = append(expected, "e."+name)
			stored = append(stored, digestSQL("s."+name, digestAbove)+" AS "+name)
		case "jsonb":
			expected = append(expected, fmt.Sprintf("e.%[1]s::jsonb::text AS %[1]s", name))
			stored = append(stored, fmt.Sprintf("s.%[1]s::text AS %[1]s", name))
		default:
			expected = append(expected, fmt.Sprintf("e.%[1]s::%[2]s AS %[1]s", name, pgx.Identifier{column.typeName}.Sanitize()))
			stored = append(stored, "s."+name)
		}
	}
	for _, i := range c.key {
		key = append(key, names[i])
	}
	sub := "0"
	if column := placeColumn(relation); column != "" {
		sub = "s." + pgx.Identifier{column}.Sanitize()
		if relation == "exact_payloads" {
			sub = "coalesce(" + sub + ", -1)"
		}
	}
	list := func(parts []string) string { return strings.Join(parts, ", ") }
	return `WITH expected AS (
    SELECT ` + list(expected) + `
    FROM unnest(` + list(arrays) + `) AS e (` + list(names) + `)
), stored AS (
    SELECT ` + list(stored) + `
    FROM ` + pgx.Identifier{"indexer", relation}.Sanitize() + ` s
    WHERE s.ledger_offset BETWEEN $1::bigint AND $3::bigint
      AND (s.ledger_offset, ` + sub + `) > ($1::bigint, $2::integer) AND (s.ledger_offset, ` + sub + `) <= ($3::bigint, $4::integer)` +
		ofUpdates[relation] + `
)
SELECT true AS expected, x.* FROM (TABLE expected EXCEPT ALL TABLE stored) x
UNION ALL
SELECT false, y.* FROM (TABLE stored EXCEPT ALL TABLE expected) y
ORDER BY ` + list(key)
}

// ofUpdates leaves out rows of updates' tables that belong to something else: a snapshot, or an offset checkpoint.
var ofUpdates = map[string]string{
	"unknown_elements": ` AND NOT s.carried`,
	"exact_payloads":   ` AND s.stream = '` + StreamUpdates + `' AND s.field NOT LIKE 'checkpoint\_%'`,
}

// piece compares the rows after one place up to another with those that should be there.
func (c *tableComparison) piece(ctx context.Context, tx pgx.Tx, sql string, after, upTo rowPlace, rows []recordedRow) error {
	arguments := []any{pgx.QueryResultFormats{pgx.TextFormatCode}, after.offset, after.sub, upTo.offset, upTo.sub}
	for i := range c.table.columns {
		values := make([]*string, len(rows))
		for j := range rows {
			values[j] = rows[j].values[i]
		}
		arguments = append(arguments, values)
	}
	different, err := tx.Query(ctx, sql, arguments...)
	if err != nil {
		return err
	}
	defer different.Close()
	var same rowPair
	for different.Next() {
		raw := different.RawValues()
		values := make([]*string, len(raw)-1)
		for i, value := range raw[1:] {
			if value != nil {
				text := string(value)
				values[i] = &text
			}
		}
		if key := c.keyOf(values); key != same.key || same.empty() {
			if err := c.report(&same); err != nil {
				return err
			}
			same = rowPair{key: key}
		}
		if string(raw[0]) == "t" {
			same.ledger = append(same.ledger, values)
		} else {
			same.stored = append(same.stored, values)
		}
	}
	if err := different.Err(); err != nil {
		return err
	}
	return c.report(&same)
}

// rowPair is the rows with the same key that are on one side only: one at most on each side, except in a table that
// has no primary key.
type rowPair struct {
	key            string
	ledger, stored [][]*string
}

func (p *rowPair) empty() bool { return len(p.ledger)+len(p.stored) == 0 }

// keyOf is the text of a row's key.
func (c *tableComparison) keyOf(values []*string) string {
	var key strings.Builder
	for _, i := range c.key {
		key.WriteString(quoted(values[i]))
		key.WriteByte(',')
	}
	return key.String()
}

func quoted(value *string) string {
	if value == nil {
		return "NULL"
	}
	return strconv.Quote(*value)
}

// report tells how the rows with one key differ.
func (c *tableComparison) report(p *rowPair) error {
	both := min(len(p.ledger), len(p.stored))
	for i := range both {
		for j, column := range c.table.columns {
			expected, stored := p.ledger[i][j], p.stored[i][j]
			if quoted(expected) == quoted(stored) {
				continue
			}
			d := c.difference(Altered, p.stored[i])
			d.Column, d.Ledger, d.Stored = column.name, c.names.name(column.name, expected), c.names.name(column.name, stored)
			if err := c.found(d); err != nil {
				return err
			}
		}
	}
	for _, row := range p.ledger[both:] {
		if err := c.found(c.difference(Missing, row)); err != nil {
			return err
		}
	}
	for _, row := range p.stored[both:] {
		if err := c.found(c.difference(Extra, row)); err != nil {
			return err
		}
	}
	return nil
}

// difference names a row. PostgreSQL wrote the numbers, so they can be read.
func (c *tableComparison) difference(kind Disagreement, row []*string) Difference {
	d := Difference{Kind: kind, Relation: c.table.relation}
	if i := columnNamed(c.table.columns, "node_id"); i >= 0 && row[i] != nil {
		n, _ := strconv.ParseInt(*row[i], 10, 32)
		nodeID := int32(n)
		d.NodeID = &nodeID
	}
	var parts []string
	for _, i := range c.key {
		name, value := c.table.columns[i].name, row[i]
		if value == nil {
			continue
		}
		if name == "ledger_offset" {
			n, _ := strconv.ParseInt(*value, 10, 64)
			d.Offset = ledger.Offset(n)
			continue
		}
		parts = append(parts, name+" "+*value)
	}
	d.Row = strings.Join(parts, ", ")
	return d
}
