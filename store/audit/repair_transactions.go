package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

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

// RestartTransactions begins a generation of the transaction history whatever is stored of it: what is wrong goes with
// the generation that is shown, when the new one takes its place. Rows are removed that would be in the way.
func (r *Repairer) RestartTransactions(ctx context.Context) error {
	err := r.repair(ctx, onlyTransactions, func(ctx context.Context, tx pgx.Tx) error {
		q := r.stored.db.Queries
		at, err := held.TransactionsPosition(ctx, r.stored.db, tx)
		if err != nil {
			return err
		}
		seqs, err := q.TransactionsEnds(ctx, tx)
		if err != nil {
			return fmt.Errorf("look for the newest record: %w", err)
		}
		next := at
		next.Revision, next.ReadAfter, next.Leftovers = at.Revision+1, max(at.LastSeq, seqs.Newest, at.ShownAfter+1), true
		next.LastSeq = next.ReadAfter
		for _, table := range tables.In(tables.Records, tables.Totals) {
			beyond := "s.seq > $1"
			if !table.OfRecords() {
				beyond = "s.generation >= $1"
			}
			if _, err := tx.Exec(ctx, table.Delete(beyond), next.ReadAfter); err != nil {
				return fmt.Errorf("remove rows of %s that belong to no record: %w", table.Name, err)
			}
		}
		err = q.BalanceRoundsCompute(ctx, tx, dbsqlc.BalanceRoundsComputeParams{
			FromExclusive: next.ReadAfter, ToInclusive: next.LastSeq})
		if err != nil {
			return fmt.Errorf("note that the rounds of the records are not known: %w", err)
		}
		return writing.PutPosition(ctx, tx, next, "", nil)
	})
	if err != nil {
		return fmt.Errorf("begin to read the transaction history again: %w", session.Refused(err))
	}
	return nil
}
