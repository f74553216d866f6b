package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// RepairCopies makes each table that is kept twice and its copy alike, in one transaction: rows without their digests
// go, and what one of the two lacks is copied from the other. Where something was wrong, the leaders begin a new term,
// because they remember.
//
// Errors: that of CompareCopies where nothing says what is right; then nothing is written.
func (r *Repairer) RepairCopies(ctx context.Context) error {
	err := r.repair(ctx, rolesThatRemember, func(ctx context.Context, tx pgx.Tx) error {
		damaged := map[string]bool{}
		err := r.stored.compareCopies(ctx, tx, func(d findings.Difference) error {
			damaged[strings.TrimSuffix(d.Relation, "_copy")] = true
			return nil
		})
		if err != nil || len(damaged) == 0 {
			return err
		}
		columns, err := r.stored.columnsOfCopies(ctx, tx)
		if err != nil {
			return err
		}
		for _, table := range tables.KeptTwice() {
			if damaged[table.Name] {
				if err := repairCopy(ctx, tx, &table, columns[table.Name]); err != nil {
					return fmt.Errorf("table %s: %w", table.Name, err)
				}
			}
		}
		if err := r.term.EndTerms(ctx, tx, rolesThatRemember...); err != nil {
			return err
		}
		watermark, _, err := held.Watermark(ctx, r.stored.db, tx)
		if err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, findings.SealedUpdates, 0, int64(watermark), writing.Repaired)
	})
	r.term.Partitions.Forget()
	if err != nil {
		return fmt.Errorf("repair what is kept twice: %w", err)
	}
	return nil
}

// repairCopy removes what is damaged before it adds what is missing: what is damaged may be in the way.
func repairCopy(ctx context.Context, tx pgx.Tx, table *tables.Table, columns []column) error {
	var names, values []string
	for _, c := range columns {
		names, values = append(names, c.name), append(values, "x."+c.name)
	}
	var same []string
	for _, c := range table.Key {
		same = append(same, fmt.Sprintf("y.%[1]s = x.%[1]s", c))
	}
	add := func(to, from string, isCopy bool) string {
		return fmt.Sprintf("INSERT INTO %s (%s, is_copy) SELECT %s, %t FROM %s x WHERE NOT EXISTS (SELECT FROM %[1]s y "+
			"WHERE %[6]s)",
			to, strings.Join(names, ", "), strings.Join(values, ", "), isCopy, from, strings.Join(same, " AND "))
	}
	for _, statement := range []string{
		fmt.Sprintf("DELETE FROM %s x WHERE NOT is_intact(x)", table.Both()),
		add(table.Name, table.Copy(), false), add(table.Copy(), table.Name, true),
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
