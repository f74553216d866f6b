package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// RepairBalances makes what follows from the records follow from them: rows that differ are removed, and those that are
// missing then are written.
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
		at, err := bounds.TransactionsPosition(ctx, r.stored.db, tx)
		if err != nil {
			return err
		}
		return writing.NoteRewrite(ctx, tx, tables.StreamTransactions, 0, at.LastSeq, writing.Repaired)
	})
}
