package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// onlyTransactions is for repairs of the history that leave the dictionaries alone.
var onlyTransactions = []session.Role{session.RoleTransactions}

// History writes the transaction history in the role of repairing: a repair writes all of it again, as its writer does.
func (r *Repairer) History() *store.TransactionsWriter {
	return &store.TransactionsWriter{Leader: r.Leader}
}

// RestartTransactions begins a generation of the transaction history whatever is stored of it: what is wrong goes with the generation that is
// shown, when the new one takes its place. Rows are removed that would be in the way. Records that follow from updates, some of which were pruned,
// are a *ledger.Problem: they would be lost.
func (r *Repairer) RestartTransactions(ctx context.Context) error {
	err := r.repair(ctx, onlyTransactions, func(ctx context.Context, tx pgx.Tx) error {
		q := r.stored.db.Queries
		if err := r.refuseUnderivable(ctx, tx); err != nil {
			return err
		}
		at, err := held.TransactionsPosition(ctx, r.stored.db, tx)
		if err != nil {
			return err
		}
		seqs, err := q.TransactionsEnds(ctx, tx)
		if err != nil {
			return fmt.Errorf("look for the newest record: %w", err)
		}
		at.Revision, at.LastSeq, at.Leftovers = at.Revision+1, max(at.LastSeq, seqs.Newest, at.ShownAfter+1), true
		at.ReadAfter = at.LastSeq
		for _, table := range tables.In(tables.Records, tables.Totals) {
			beyond := "s.seq > $1"
			if !table.OfRecords() {
				beyond = "s.generation >= $1"
			}
			if _, err := tx.Exec(ctx, table.Delete(beyond), at.LastSeq); err != nil {
				return fmt.Errorf("remove rows of %s that belong to no record: %w", table.Name, err)
			}
		}
		if err := q.BalanceRoundsNote(ctx, tx, dbsqlc.BalanceRoundsNoteParams{Generation: at.ReadAfter}); err != nil {
			return fmt.Errorf("begin the totals of a generation: %w", err)
		}
		return writing.PutPosition(ctx, tx, at, "")
	})
	if err != nil {
		return fmt.Errorf("begin to read the transaction history again: %w", session.Refused(err))
	}
	return nil
}

func (r *Repairer) refuseUnderivable(ctx context.Context, tx pgx.Tx) error {
	derived, err := r.stored.db.Queries.RecordsAreDerived(ctx, tx)
	if err != nil || !derived {
		return err
	}
	extent, err := held.Read(ctx, r.stored.db, tx)
	if err == nil && extent.PrunedTo > 0 {
		err = &ledger.Problem{
			What: fmt.Sprintf("updates that records follow from were pruned up to offset %d in database %s, so their records can't be derived again", extent.PrunedTo, r.stored.db.Address()),
			Do:   "verify again: if they were pruned while it was verified, the records may be right; if they are damaged, restore a backup of the database",
		}
	}
	return err
}
