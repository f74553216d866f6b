package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// RepairBalances makes what follows from the records follow from them: rows that differ are removed, and those that are
// missing then are written.
func (r *Repairer) RepairBalances(ctx context.Context, step func(what string)) error {
	return r.repair(ctx, onlyHistory, func(ctx context.Context, tx pgx.Tx) error {
		return r.followRecords(ctx, tx, func(table *derivedTable) bool {
			step("writing again what follows from the transaction history: " + table.relation)
			return true
		})
	})
}

// followRecords makes tables that follow from the records follow from them; which chooses them.
func (r *Repairer) followRecords(ctx context.Context, tx pgx.Tx, which func(table *derivedTable) bool) error {
	columns, err := r.store.columnsOf(ctx, tx, balanceRelations())
	if err != nil {
		return err
	}
	for i := range balanceTables {
		table := &balanceTables[i]
		if !which(table) {
			continue
		}
		list := columns[table.relation]
		remove := `WITH wrong AS MATERIALIZED (` + table.exactly(list, table.table()) + ` EXCEPT ALL ` + table.exactly(list, "("+table.follows+")") + `)
DELETE FROM ` + table.table() + ` s USING wrong w WHERE ` + table.onKey("s", "w")
		if _, err := tx.Exec(ctx, remove); err != nil {
			return fmt.Errorf("remove rows of %s that do not follow from the history: %w", table.relation, err)
		}
		names := make([]string, len(list))
		for i := range list {
			names[i] = list[i].name
		}
		add := `INSERT INTO ` + table.table() + ` (` + strings.Join(names, ", ") + `) SELECT ` + strings.Join(names, ", ") + ` FROM (` + table.follows + `) w
WHERE NOT EXISTS (SELECT FROM ` + table.table() + ` s WHERE ` + table.onKey("s", "w") + `)`
		if _, err := tx.Exec(ctx, add); err != nil {
			return fmt.Errorf("write the rows of %s that follow from the history: %w", table.relation, err)
		}
	}
	return nil
}
