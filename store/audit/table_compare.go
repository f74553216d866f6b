package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/tables"
)

// comparison compares rows that writing would make with those that are stored.
type comparison struct {
	tx      pgx.Tx
	names   *dictionaries
	columns map[string][]column
	found   Found
}

// comparing returns the comparison of tables with rows that refer to names, to which it gives their numbers.
func (s *Stored) comparing(ctx context.Context, tx pgx.Tx, of []tables.Table, wanted *names.References,
	found Found) (comparison, error) {
	c := comparison{tx: tx, found: found}
	var err error
	if c.names, err = s.resolve(ctx, tx, wanted); err == nil {
		c.columns, err = s.columnsOf(ctx, tx, of)
	}
	return c, err
}

func (c *comparison) table(table tables.Table, rows rows.Table) (*tableComparison, error) {
	recorded, err := record(c.tx, table, rows, c.columns[table.Name])
	return newTableComparison(recorded, c.names, c.found), err
}

// between compares the rows of tables of a family with those that are stored after an offset, or a seq, up to another.
func (c *comparison) between(ctx context.Context, family tables.Family, list []rows.Table, from, to int64) error {
	for _, rows := range list {
		table, err := c.table(tables.Get(family, rows.Name), rows)
		if err != nil {
			return err
		}
		if err := table.run(ctx, c.tx, from, to); err != nil {
			return fmt.Errorf("compare %s after %d up to %d: %w", rows.Name, from, to, err)
		}
	}
	return nil
}

// run compares the offsets, or the seqs, after from up to to, piece by piece.
func (c *tableComparison) run(ctx context.Context, tx pgx.Tx, from, to int64) error {
	sql := c.sql(4, c.betweenPlaces())
	after, rest := behind(from), c.table.rows
	for {
		var piece []recordedRow
		piece, rest = cutPiece(rest)
		upTo := behind(to)
		if len(rest) > 0 {
			upTo = piece[len(piece)-1].at
		}
		if err := c.piece(ctx, tx, sql, []any{after.offset, after.sub, upTo.offset, upTo.sub}, piece); err != nil {
			return err
		}
		if len(rest) == 0 {
			return nil
		}
		after = upTo
	}
}

// among compares the rows that should be stored with those stored rows s of the family that a condition on its
// arguments chooses.
func (c *tableComparison) among(ctx context.Context, tx pgx.Tx, where string, arguments ...any) (err error) {
	defer pg.Wrap(&err, "compare %s", c.table.Name)
	return c.piece(ctx, tx, c.sql(len(arguments), c.table.Rows(where)), arguments, c.table.rows)
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

// betweenPlaces returns the condition that chooses the stored rows after the place in the first two arguments, up to
// the one in the next two.
func (c *tableComparison) betweenPlaces() string {
	sub := "0"
	if column := c.table.subColumn(); column != "" {
		sub = "s." + pgx.Identifier{column}.Sanitize()
	}
	return c.table.Rows(fmt.Sprintf(`s.%[1]s BETWEEN $1::bigint AND $3::bigint
      AND (s.%[1]s, %[2]s) > ($1::bigint, $2::integer) AND (s.%[1]s, %[2]s) <= ($3::bigint, $4::integer)`,
		c.table.Key[0], sub))
}

// sql finds the rows that are on one side only, counting equal rows; on the stored side those of a condition, which has
// the first arguments for itself. It compares jsonb and numbers as text, so that the rare rows that are written
// otherwise come back and are looked at again (alike), and binary values by their digest.
func (c *tableComparison) sql(arguments int, where string) string {
	var arrays, names, expected, stored, shownX, shownY, key []string
	for i, column := range c.table.columns {
		name := pgx.Identifier{column.name}.Sanitize()
		arrays = append(arrays, fmt.Sprintf("$%d::text[]", i+1+arguments))
		names = append(names, name)
		isList := tables.References[column.name] == tables.PartyList
		shownX, shownY = append(shownX, shownSQL("x."+name, name, isList && !c.stakeholders)),
			append(shownY, shownSQL("y."+name, name, isList && !c.stakeholders))
		switch typeName := column.typeName; {
		case slices.Contains(c.ignored, column.name):
			expected, stored = append(expected, "NULL::text AS "+name), append(stored, "NULL::text AS "+name)
		case isList && c.stakeholders:
			expected = append(expected, partySet("e."+name+"::text[]", "")+" AS "+name)
			stored = append(stored, fmt.Sprintf("CASE WHEN s.%[1]s IS NOT NULL THEN coalesce(%[2]s, ARRAY[s.%[1]s || ', which "+
				"is not in the dictionary']) END AS %[1]s",
				name, partySet(partiesSQL("s."+name), c.onlyOf(column))))
		case typeName == "bytea":
			expected = append(expected, "e."+name)
			stored = append(stored, digestSQL("s."+name, digestAbove)+" AS "+name)
		case column.name == exactColumn && c.stakeholders:
			of := "nullif(%s::jsonb - '{" + strings.Join(extraFields, ",") + "}'::text[], '{}'::jsonb)::text AS " + name
			expected, stored = append(expected, fmt.Sprintf(of, "e."+name)), append(stored, fmt.Sprintf(of, "s."+name))
		case typeName == "jsonb" || typeName == "numeric":
			expected = append(expected, fmt.Sprintf("e.%[1]s::%[2]s::text AS %[1]s", name, column.typeName))
			stored = append(stored, fmt.Sprintf("s.%[1]s::text AS %[1]s", name))
		default:
			expected = append(expected, fmt.Sprintf("e.%[1]s::%[2]s AS %[1]s", name, pgx.Identifier{column.typeName}.Sanitize()))
			stored = append(stored, "s."+name)
		}
	}
	for _, i := range c.key {
		key = append(key, names[i])
	}
	list := func(parts []string) string { return strings.Join(parts, ", ") }
	return `WITH expected AS (
    SELECT ` + list(expected) + `
    FROM unnest(` + list(arrays) + `) AS e (` + list(names) + `)
), stored AS (
    SELECT ` + list(stored) + `
    FROM ` + pgx.Identifier{c.table.Name}.Sanitize() + ` s
    WHERE ` + where + `
)
SELECT true AS expected, ` + list(shownX) + ` FROM (TABLE expected EXCEPT ALL TABLE stored) x
UNION ALL
SELECT false, ` + list(shownY) + ` FROM (TABLE stored EXCEPT ALL TABLE expected) y
ORDER BY ` + list(key)
}

// shownSQL returns the expression that shows a column of a row that differs: for a list of parties the list.
func shownSQL(value, name string, isList bool) string {
	if !isList {
		return value
	}
	return listText(value) + " AS " + name
}

// partySet returns the expression for a list of parties in order, with those that a condition on p holds for.
func partySet(list, where string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s IS NOT NULL THEN ARRAY(SELECT p FROM unnest(%[1]s) p%[2]s
		ORDER BY p COLLATE "C") END`, list, where)
}

// onlyOf leaves those of a creation's witnesses that are stakeholders, and of those who see an interface view.
func (c *tableComparison) onlyOf(column column) string {
	if c.ofViews() && column.name == "seen_by_ref" {
		return " WHERE p = ANY (" + partiesSQL("(SELECT k.stakeholders_ref FROM created k WHERE k.ledger_offset = "+
			"s.ledger_offset AND k.node_id = s.node_id)") + "::text[])"
	}
	if column.name != "witness_parties_ref" || columnNamed(c.table.columns, "signatories_ref") < 0 {
		return ""
	}
	return " WHERE p = ANY (" + partiesSQL("s.signatories_ref") + " || " + partiesSQL("s.observers_ref") + ")"
}

// piece compares the stored rows that the statement chooses by its first arguments with those that should be there.
func (c *tableComparison) piece(ctx context.Context, tx pgx.Tx, sql string, chosen []any, rows []recordedRow) error {
	arguments := append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, chosen...)
	for i := range c.table.columns {
		values := make([]*string, len(rows))
		for j := range rows {
			values[j] = rows[j].values[i]
			if c.stakeholders && tables.References[c.table.columns[i].name] == tables.PartyList {
				values[j] = c.names.name(c.table.columns[i].name, values[j])
			}
		}
		arguments = append(arguments, values)
	}
	return c.pairs(ctx, tx, sql, arguments)
}

// pairs reads the rows that are on one side only, in the order of their keys: whether the row should be stored, and its
// columns.
func (c *tableComparison) pairs(ctx context.Context, tx pgx.Tx, sql string, arguments []any) error {
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
			c.report(&same)
			same = rowPair{key: key}
		}
		if string(raw[0]) == "t" {
			same.ledger = append(same.ledger, values)
		} else {
			same.stored = append(same.stored, values)
		}
	}
	if err := different.Err(); err != nil { // the pair may not be whole
		return err
	}
	c.report(&same)
	return nil
}

func (c *tableComparison) keyOf(values []*string) string {
	var key strings.Builder
	for _, i := range c.pair {
		key.WriteString(Quoted(values[i]))
		key.WriteByte(',')
	}
	return key.String()
}
