package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// RemovedRows is how many rows of a table were removed. A contract that is active again was removed
// from lifetimes.
type RemovedRows struct {
	Relation string
	Rows     int64
}

// removeRecords has the records of the transaction history that follow from updates derived again from those that are read in place of what
// lies after an offset: all of them, or those after the offset where updates were pruned, from which no records can be derived.
func (l *UpdatesWriter) removeRecords(ctx context.Context, tx pgx.Tx, extent *Extent, to ledger.Offset) ([]RemovedRows, error) {
	derived, err := l.store.db.Queries.RecordsAreDerived(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("look whether records follow from updates: %w", err)
	}
	if !derived {
		return nil, nil
	}
	// Who derives them may be another process; then the position does not move any more.
	if err := l.term.Exclude(ctx, tx, RoleTransactions); err != nil {
		return nil, err
	}
	at, err := held.TransactionsPosition(ctx, l.store.db, tx)
	if err != nil {
		return nil, err
	}
	if extent.PrunedTo == 0 {
		_, err = (&TransactionsWriter{Leader: l.Leader}).beginGeneration(ctx, tx, at)
		return nil, err
	}
	return l.cutRecords(ctx, tx, at, to)
}

// cutRecords removes the records that follow from updates after an offset, from the end of the shown generation, and one that is read to
// take its place.
func (l *UpdatesWriter) cutRecords(ctx context.Context, tx pgx.Tx, at ledger.TransactionsPosition, to ledger.Offset) (removed []RemovedRows, err error) {
	q := l.store.db.Queries
	last, err := q.RecordsUpTo(ctx, tx, dbsqlc.RecordsUpToParams{FromExclusive: at.ShownAfter, ToInclusive: at.ShownTo, After: int64(to)})
	if err != nil {
		return nil, fmt.Errorf("look for the last record up to offset %d: %w", to, err)
	}
	next, cursor := at, ledger.TransactionsCursor("")
	next.Revision++
	next.ReadAfter, next.ShownTo, next.LastSeq = at.ShownAfter, at.ShownAfter, at.ShownAfter
	if len(last) > 0 {
		next.ShownTo, next.LastSeq, cursor = last[0].Seq, last[0].Seq, ledger.TransactionsCursor(last[0].EventID)
	}
	if next.LastSeq == at.LastSeq {
		return nil, nil
	}
	for _, table := range tables.In(tables.Records, tables.Totals) {
		if !table.OfRecords() {
			continue
		}
		gone, err := tx.Exec(ctx, "DELETE FROM "+table.SQL()+" s WHERE s.seq > $1", next.LastSeq)
		if err != nil {
			return nil, fmt.Errorf("remove the records after seq %d from %s: %w", next.LastSeq, table.Name, err)
		}
		if rows := gone.RowsAffected(); rows > 0 {
			removed = append(removed, RemovedRows{Relation: table.Name, Rows: rows})
		}
	}
	if err := writing.PutPosition(ctx, tx, next, cursor); err != nil {
		return nil, err
	}
	if err := q.BalancesForget(ctx, tx); err != nil {
		return nil, fmt.Errorf("remove the totals of the records: %w", err)
	}
	if err := q.BalancesCompute(ctx, tx); err != nil {
		return nil, fmt.Errorf("compute the totals of the records up to seq %d: %w", next.LastSeq, err)
	}
	if err := writing.Unseal(ctx, tx, findings.SealedTransactions, next.LastSeq); err != nil {
		return nil, err
	}
	return removed, writing.NoteRewrite(ctx, tx, findings.SealedTransactions, next.ShownTo, at.ShownTo, writing.Reset)
}
