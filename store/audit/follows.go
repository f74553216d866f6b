package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// following compares tables that follow from others with what they follow from, and repairs them. PostgreSQL computes
// all of it again. One row that differs is in memory at a time.
type following struct {
	tx        pgx.Tx
	columns   map[string][]column
	arguments pgx.NamedArgs // of the functions that tables follow from
	names     *dictionaries
}

func (s *Stored) newFollowing(ctx context.Context, tx pgx.Tx, family tables.Family, arguments pgx.NamedArgs,
	names *dictionaries) (*following, error) {
	columns, err := s.columnsOf(ctx, tx, tables.In(family))
	return &following{tx: tx, columns: columns, arguments: arguments, names: names}, err
}

// what names tables that follow from the same, for people.
func what(group []tables.Table) string { return strings.Join(tables.Names(group), ", ") }

// compare compares tables that follow from the same. It pairs rows by the columns that name them (pairedBy).
func (f *following) compare(ctx context.Context, group []tables.Table, found Found) error {
	differing := make([]string, len(group))
	for i := range group {
		differing[i] = f.differingSQL(i, &group[i])
	}
	sql := "WITH wanted AS (SELECT * FROM " + group[0].Follows + ")\n" + strings.Join(differing, "\nUNION ALL\n")
	var i int
	var wanted, stored []*string
	return pg.Each(ctx, f.tx, sql, []any{f.arguments}, []any{&i, &wanted, &stored},
		func() error { f.report(&group[i], wanted, stored, found); return nil })
}

// differingSQL finds the rows that are on one side only, and those that differ: the columns that they should have, and
// have.
func (f *following) differingSQL(n int, table *tables.Table) string {
	named := pairedBy(table)
	differ := []string{"s." + named[0] + " IS NULL", "w." + named[0] + " IS NULL AND " + known(table)}
	var same, wanted, stored []string
	for _, c := range f.columns[table.Name] {
		if slices.Contains(named, c.name) {
			same = append(same, c.exactly("w")+" = "+c.exactly("s"))
		} else {
			differ = append(differ, "w."+named[0]+" IS NOT NULL AND "+c.exactly("w")+" IS DISTINCT FROM "+c.exactly("s"))
		}
		wanted, stored = append(wanted, c.shown("w")), append(stored, c.shown("s"))
	}
	return fmt.Sprintf(`SELECT %d, CASE WHEN w.%[2]s IS NOT NULL THEN ARRAY[%[3]s] END,
    CASE WHEN s.%[2]s IS NOT NULL THEN ARRAY[%[4]s] END
FROM (SELECT * FROM wanted w WHERE %[5]s) w FULL JOIN %[6]s s ON %[7]s
WHERE %[8]s`, n, named[0], strings.Join(wanted, ", "), strings.Join(stored, ", "), ofTable(table), table.Name,
		strings.Join(same, " AND "), strings.Join(differ, " OR "))
}

// pairedBy returns the columns by which rows are put in pairs.
func pairedBy(table *tables.Table) []string {
	if table.Named != nil {
		return table.Named
	}
	return table.Key
}

// ofTable chooses, among the rows w that should be there, a table's.
func ofTable(table *tables.Table) string {
	if table.Of == "" {
		return "true"
	}
	return table.Of
}

// known returns the condition that is true of the rows s that have to follow.
func known(table *tables.Table) string {
	if table.Undecided == "" {
		return "true"
	}
	return "(" + table.Undecided + ") IS NOT TRUE"
}

// exactly returns the expression by which a column is compared: numbers as text, which distinguishes 1.0 from 1.00, and
// text by its bytes.
func (c column) exactly(row string) string {
	switch name := row + "." + c.name; c.typeName {
	case "numeric", "jsonb":
		return name + "::text"
	case "text":
		return name + ` COLLATE "C"`
	default:
		return name
	}
}

// shown returns the expression that shows a column of a row that differs, as text.
func (c column) shown(row string) string {
	value := row + "." + c.name
	if tables.References[c.name] == tables.PartyList {
		return listText(value)
	}
	return value + "::text"
}

// report reports how two rows differ; the one that is nil is not there.
func (f *following) report(table *tables.Table, wanted, stored []*string, found Found) {
	columns, row := f.columns[table.Name], stored
	if stored == nil {
		row = wanted
	}
	d := f.names.difference(table, columns, pairedBy(table), row)
	d.Derived = true
	if table.Name == "lifetimes" {
		d.Since = ledger.Offset(numberIn(columns, "activated_offset", row))
	}
	f.names.reportRows(d, columnNames(columns), wanted, stored, found)
}

// repair removes the rows that differ, and adds those that are not there then. A row that is right is not touched. What
// should be there is computed before the first row goes: it may follow from that row. Which rows are there, when some
// are added, is asked by the key: looking for them in another way would read what is being added again and again.
func (f *following) repair(ctx context.Context, group []tables.Table) error {
	statements := []string{"CREATE TEMPORARY TABLE wanted ON COMMIT DROP AS SELECT * FROM " + group[0].Follows,
		"ANALYZE wanted"}
	for i := range group {
		table := &group[i]
		var same, names []string
		for _, c := range f.columns[table.Name] {
			is := " IS NOT DISTINCT FROM "
			if slices.Contains(pairedBy(table), c.name) {
				is = " = " // by which the rows are joined
			}
			same, names = append(same, c.exactly("w")+is+c.exactly("s")), append(names, c.name)
		}
		list := strings.Join(names, ", ")
		statements = append(statements,
			fmt.Sprintf("DELETE FROM %s s WHERE %s AND NOT EXISTS (SELECT FROM wanted w WHERE %s AND %s)",
				table.Name, known(table), ofTable(table), strings.Join(same, " AND ")),
			fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM wanted w WHERE %[3]s ON CONFLICT DO NOTHING", table.Name, list,
				ofTable(table)))
	}
	for _, sql := range append(statements, "DROP TABLE wanted") {
		if _, err := f.tx.Exec(ctx, sql, f.arguments); err != nil {
			return err
		}
	}
	return nil
}

// CompareBalances compares what follows from the records of the history with them: who took part in which transfer, the
// running totals of the balance changes, and the rounds for which balances are known.
//
// step is called with what is compared next, found for each difference.
func (s *Stored) CompareBalances(ctx context.Context, step func(what string), found Found) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		f, err := s.newFollowing(ctx, tx, tables.Totals, nil, new(dictionaries))
		if err != nil {
			return err
		}
		for _, group := range tables.BySource(tables.Totals) {
			step("what follows from the transaction history: " + what(group))
			if err := f.compare(ctx, group, found); err != nil {
				return fmt.Errorf("compare %s with what follows from the history: %w", what(group), err)
			}
		}
		return nil
	})
}

// RepairBalances corrects what follows from the records: it removes the rows that differ, and writes those that are
// then missing.
func (r *Repairer) RepairBalances(ctx context.Context, step func(what string)) error {
	return r.repair(ctx, onlyTransactions, func(ctx context.Context, tx pgx.Tx) error {
		f, err := r.stored.newFollowing(ctx, tx, tables.Totals, nil, new(dictionaries))
		if err != nil {
			return err
		}
		for _, group := range tables.BySource(tables.Totals) {
			step("writing again what follows from the transaction history: " + what(group))
			if err := f.repair(ctx, group); err != nil {
				return fmt.Errorf("write again what of %s follows from the history: %w", what(group), err)
			}
		}
		at, err := bounds.TransactionsPosition(ctx, tx)
		if err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, tables.StreamTransactions, 0, at.LastSeq, writing.Repaired)
	})
}
