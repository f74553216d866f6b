package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
)

// sealed returns the tables of a stream. What lies up to the offset of a snapshot is of the snapshot. What is not
// sealed are look-ups and offset checkpoints: they may be replaced.
func sealed(stream string) []tables.Table {
	switch stream {
	case tables.StreamSnapshot:
		return append(tables.OfSnapshot(), tables.In(tables.Resynced)...)
	case tables.StreamTransactions:
		return tables.In(tables.Records)
	}
	return tables.In(tables.Facts)
}

// rowsDigest returns a SHA-256 over all rows of a window: over the name of each table that has any, and over the
// SHA-256 of each of its rows, in an order that depends on nothing but the rows. See rowDigestSQL.
func (s *Stored) rowsDigest(ctx context.Context, tx pgx.Tx, stream string, from, to int64) ([]byte, error) {
	columns, err := s.sealedColumns(ctx, tx, stream)
	if err != nil {
		return nil, err
	}
	whole := sha256.New()
	for _, table := range sealed(stream) {
		sql, err := digestsSQL(&table, columns[table.Name])
		if err != nil {
			return nil, err
		}
		rows, sum := 0, sha256.New()
		var row []byte
		err = pg.Each(ctx, tx, sql, []any{from, to}, []any{&row}, func() error {
			rows++
			sum.Write(row)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("digest %s of %s after %d up to %d: %w", table.Name, stream, from, to, err)
		}
		if rows > 0 { // a table that a later release adds changes no digest of what was before
			fmt.Fprintf(whole, "%s %x\n", table.Name, sum.Sum(nil))
		}
	}
	return whole.Sum(nil), nil
}

// sealedColumns returns the columns of a stream's tables, in the order of their names.
func (s *Stored) sealedColumns(ctx context.Context, db dbsqlc.DBTX, stream string) (map[string][]column, error) {
	columns, err := s.columnsOf(ctx, db, sealed(stream))
	if err != nil {
		return nil, err
	}
	for _, list := range columns {
		slices.SortFunc(list, func(a, b column) int { return strings.Compare(sealedName(a), sealedName(b)) })
	}
	return columns, nil
}

// digestsSQL reads the digests of the table's rows. Rows at one place are in the order of their digests.
func digestsSQL(table *tables.Table, columns []column) (string, error) {
	row, err := rowDigestSQL(table.Name, columns)
	if err != nil {
		return "", err
	}
	condition, order := "$1::bigint < $2::bigint", "digest"
	if table.Place != "" {
		place := "s." + table.Place
		condition += " AND " + place + " > $1::bigint AND " + place + " <= $2::bigint"
		order = place + ", digest"
	}
	return fmt.Sprintf("SELECT %s AS digest FROM %s s WHERE %s ORDER BY %s", row, table.Name, table.Rows(condition),
		order), nil
}

// rowDigestSQL returns the expression for the SHA-256 of a row's canonical text: of each column that is not NULL, in
// the order of their names, its name and its value in quotes. A column that a later release adds, and leaves NULL in
// the rows of before, changes nothing.
func rowDigestSQL(relation string, columns []column) (string, error) {
	var parts []string
	for _, c := range columns {
		value, err := valueSQL(c)
		if err != nil {
			return "", fmt.Errorf("digest %s.%s: %w", relation, c.name, err)
		}
		parts = append(parts, named(sealedName(c), value))
	}
	return fmt.Sprintf("sha256(convert_to(concat_ws(',', %s), 'UTF8'))", strings.Join(parts, ", ")), nil
}

// sealedName returns the name of a column in the text that is digested. A column with the number of a list of parties
// is named as the list: parties.
func sealedName(c column) string {
	if tables.References[c.name] == tables.PartyList {
		return strings.TrimSuffix(c.name, "_ref")
	}
	return c.name
}

// named returns an expression that is NULL, which concat_ws leaves out, where the value is.
func named(name, value string) string {
	return fmt.Sprintf("'%s=' || quote_literal(%s)", strings.ReplaceAll(name, "'", "''"), value)
}

// valueSQL returns the expression for a column's value as text, the same whatever is set for a session, a role or a
// database. In place of a reference stands what it refers to; a number that refers to nothing stays.
func valueSQL(c column) (string, error) {
	name := "s." + pgx.Identifier{c.name}.Sanitize()
	switch tables.References[c.name] {
	case tables.Template:
		var parts []string
		for _, field := range []string{"entity_name", "module_name", "package_id", "package_name",
			"representative_package_id", "template_id"} {
			parts = append(parts, named(field, "d."+field))
		}
		return fmt.Sprintf("coalesce((SELECT concat_ws(',', %s) FROM templates d WHERE d.template_ref = %[2]s), %[2]s::text)",
			strings.Join(parts, ", "), name), nil
	case tables.Synchronizer:
		return fmt.Sprintf("coalesce((SELECT d.synchronizer_id FROM synchronizers d WHERE d.synchronizer_ref = %[1]s), "+
			"%[1]s::text)", name), nil
	case tables.PartyList:
		return listText(name), nil
	}
	switch c.typeName {
	case "int4", "int8", "bool", "numeric", "text", "_text", "jsonb":
		return name + "::text", nil
	case "timestamptz":
		return "extract(epoch FROM " + name + ")::text", nil
	case "bytea":
		return "encode(sha256(" + name + "), 'hex')", nil
	}
	return "", fmt.Errorf("the text of type %s may depend on settings", c.typeName)
}

// sealOf returns the digest that a window's row holds: over the row itself, so that an altered result is noticed too,
// and over the rows that it seals.
func sealOf(w *dbsqlc.Verifications, rows []byte) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %s %d\n%x\n",
		w.Stream, w.FromExclusive, w.ToInclusive, w.VerifiedAt.Time.UnixMicro(), w.Result, w.Differences, rows))
	return sum[:]
}
