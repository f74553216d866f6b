package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/rows"
)

// addBehind adds balance changes to the running totals where none of them is for a round before a party's last. ok is false
// where one is: then nothing was done.
func (l *TransactionsWriter) addBehind(ctx context.Context, tx pgx.Tx, balanceChanges []dbsqlc.IndexerBalanceChanges) (ok bool, err error) {
	added := rows.AddedTotals(balanceChanges)
	if len(added) == 0 {
		return true, nil
	}
	var parties []string
	for i := range added {
		if i == 0 || added[i].Party != added[i-1].Party {
			parties = append(parties, added[i].Party)
		}
	}
	list, err := l.store.queries.LatestTotals(ctx, tx, parties)
	if err != nil {
		return false, fmt.Errorf("read the last totals of %d parties: %w", len(parties), err)
	}
	latest := make(map[string]rows.Total, len(list))
	for _, row := range list {
		latest[row.Party] = rows.Total{
			Party: row.Party, Round: row.Round,
			InitialAmount: ledger.Decimal(row.InitialAmount), HoldingFeesRate: ledger.Decimal(row.HoldingFeesRate),
		}
	}
	changes, ok := rows.ChangesBehind(added, latest)
	if !ok {
		return false, nil
	}
	return true, l.changeTotals(ctx, tx, changes)
}

func (l *TransactionsWriter) changeTotals(ctx context.Context, tx pgx.Tx, changes rows.TotalChanges) error {
	q := l.store.queries
	begun := make([]dbsqlc.IndexerLatestTotals, len(changes.Begun))
	for i := range changes.Begun {
		begun[i] = dbsqlc.IndexerLatestTotals(changes.Begun[i])
	}
	if err := copyRows(ctx, tx, "balance_totals", changes.Added); err != nil {
		return err
	}
	if err := copyRows(ctx, tx, "latest_totals", begun); err != nil {
		return err
	}
	if len(changes.Raised) > 0 {
		if err := q.BalanceTotalsRaise(ctx, tx, rows.TotalsInColumns(changes.Raised)); err != nil {
			return fmt.Errorf("raise the totals of %d parties: %w", len(changes.Raised), err)
		}
	}
	if len(changes.Moved) > 0 {
		if err := q.LatestTotalsMove(ctx, tx, dbsqlc.LatestTotalsMoveParams(rows.TotalsInColumns(changes.Moved))); err != nil {
			return fmt.Errorf("move the last totals of %d parties: %w", len(changes.Moved), err)
		}
	}
	return nil
}
