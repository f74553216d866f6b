package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/tables"
)

// CompareBalances compares what follows from the records of the history with them: who took part in which transfer, the
// running totals of the balance changes, and the rounds that balances can be told of. PostgreSQL works all of it out once
// more; of what it finds, no more than a row at a time is held here.
//
// step is told what is compared next; found of every difference, an error of its ends the comparison.
func (s *Store) CompareBalances(ctx context.Context, step func(what string), found func(ledger.Difference) error) error {
	return s.readOnly(ctx, func(tx pgx.Tx) error {
		columns, err := s.columnsOf(ctx, tx, tables.Totals)
		if err != nil {
			return err
		}
		derived := func(d ledger.Difference) error {
			d.Derived = true
			return found(d)
		}
		for _, table := range tables.In(tables.Totals) {
			step("what follows from the transaction history: " + table.Name)
			list := columns[table.Name]
			c := newTableComparison(recordedTable{Table: table, columns: list}, new(dictionaries), derived)
			if err := c.pairs(ctx, tx, differing(&table, list), []any{pgx.QueryResultFormats{pgx.TextFormatCode}}); err != nil {
				return fmt.Errorf("compare %s with what it follows from: %w", table.Name, err)
			}
		}
		return nil
	})
}

// differing finds the rows that are on one side only.
func differing(table *tables.Table, columns []column) string {
	return `WITH expected AS (` + exactly(columns, "("+table.Follows+")") + `), stored AS (` + exactly(columns, table.SQL()) + `)
SELECT true AS expected, x.* FROM (TABLE expected EXCEPT ALL TABLE stored) x
UNION ALL
SELECT false, y.* FROM (TABLE stored EXCEPT ALL TABLE expected) y
ORDER BY ` + strings.Join(table.Key, ", ")
}

// exactly selects a table's columns from rows, numbers as text, which tells 1.0 from 1.00.
func exactly(columns []column, rows string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = "r." + c.name
		if c.typeName == "numeric" {
			list[i] += "::text AS " + c.name
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + rows + " r"
}

// onKey compares the keys of two rows.
func onKey(table *tables.Table, a, b string) string {
	list := make([]string, len(table.Key))
	for i, name := range table.Key {
		list[i] = a + "." + name + " = " + b + "." + name
	}
	return strings.Join(list, " AND ")
}
