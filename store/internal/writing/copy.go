package writing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/pgcopy"
	"ledgerindexer/store/internal/rows"
)

// CopyRows COPYs rows into a table, if there are any.
func CopyRows[T any](ctx context.Context, tx pgx.Tx, relation string, rows []T) error {
	return pgcopy.Copy(ctx, tx, pgx.Identifier{relation}, pgcopy.Of(rows))
}

// CopyTables COPYs the rows of tables, one table after the other.
func CopyTables(ctx context.Context, tx pgx.Tx, list []rows.Table) error {
	for _, table := range list {
		if err := pgcopy.Copy(ctx, tx, pgx.Identifier{table.Name}, table.Rows); err != nil {
			return err
		}
	}
	return nil
}
