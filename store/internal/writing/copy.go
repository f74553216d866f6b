package writing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/pgcopy"
	"ledgerindexer/store/internal/rows"
)

// CopyRows COPYs rows into a table, if there are any.
func CopyRows[T any](ctx context.Context, tx pgx.Tx, relation string, rows []T) error {
	return copyInto(ctx, tx, relation, pgcopy.Of(rows))
}

// CopyTable COPYs a table's rows, if there are any.
func CopyTable(ctx context.Context, tx pgx.Tx, table rows.Table) error {
	return copyInto(ctx, tx, table.Name, table.Rows)
}

// copyInto COPYs rows into a table that has their columns.
func copyInto(ctx context.Context, tx pgx.Tx, relation string, rows pgcopy.Rows) error {
	return pgcopy.Copy(ctx, tx, pgx.Identifier{relation}, rows)
}
