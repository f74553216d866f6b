// Package rows makes the rows of tables from what was read: from updates, entries of a snapshot and records of the
// transaction history. It is pure: it knows no database, and equal input gives equal rows. Its row types name the
// columns of their tables; that of a table of events lies in one file with what makes its rows. Writers send them, and
// comparisons read the same ones.
package rows

import "ledgerindexer/store/internal/pgcopy"

// Table are the rows that go into one table.
type Table struct {
	Name string
	pgcopy.Rows
}

// TableOf returns rows for a table.
func TableOf[T any](relation string, rows []T) Table { return Table{relation, pgcopy.Of(rows)} }
