package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/tables"
)

// RepairBalances makes what follows from the records follow from them: rows that differ are removed, and those that are
// missing then are written.
func (r *Repairer) RepairBalances(ctx context.Context, step func(what string)) error {
	return r.repair(ctx, onlyHistory, func(ctx context.Context, tx pgx.Tx) error {
		return r.followRecords(ctx, tx, func(table *tables.Table) bool {
			step("writing again what follows from the transaction history: " + table.Name)
			return true
		})
	})
}

// followRecords makes tables that follow from the records follow from them; which chooses them.
func (r *Repairer) followRecords(ctx context.Context, tx pgx.Tx, which func(table *tables.Table) bool) error {
	columns, err := r.store.columnsOf(ctx, tx, tables.Totals)
	if err != nil {
		return err
	}
	for _, table := range tables.In(tables.Totals) {
		if !which(&table) {
			continue
		}
		list := columns[table.Name]
		remove := `WITH wrong AS MATERIALIZED (` + exactly(list, table.SQL()) + ` EXCEPT ALL ` + exactly(list, "("+table.Follows+")") + `)
DELETE FROM ` + table.SQL() + ` s USING wrong w WHERE ` + onKey(&table, "s", "w")
		if _, err := tx.Exec(ctx, remove); err != nil {
			return fmt.Errorf("remove rows of %s that do not follow from the history: %w", table.Name, err)
		}
		names := make([]string, len(list))
		for i := range list {
			names[i] = list[i].name
		}
		add := `INSERT INTO ` + table.SQL() + ` (` + strings.Join(names, ", ") + `) SELECT ` + strings.Join(names, ", ") + ` FROM (` + table.Follows + `) w
WHERE NOT EXISTS (SELECT FROM ` + table.SQL() + ` s WHERE ` + onKey(&table, "s", "w") + `)`
		if _, err := tx.Exec(ctx, add); err != nil {
			return fmt.Errorf("write the rows of %s that follow from the history: %w", table.Name, err)
		}
	}
	return nil
}
