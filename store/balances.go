package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/dbsqlc"
)

// deriveFromTransfers brings what is derived from transfers up to date with the records of a range of seqs: who took part
// in which transfer, the running totals of the balance changes, and the rounds that balances can be told of. It is called
// once per range, in the transaction that wrote the records' rows and after them; what comes behind it in the transaction
// is planned as look-ups by index, too. The order of the ranges and their borders make no difference.
func (l *Leader) deriveFromTransfers(ctx context.Context, tx pgx.Tx, fromExclusive, toInclusive int64) error {
	started := time.Now()
	q := l.store.queries
	if err := q.DerivePlainly(ctx, tx); err != nil {
		return fmt.Errorf("set how statements are planned: %w", err)
	}
	err := q.PartyTransfersDerive(ctx, tx, dbsqlc.PartyTransfersDeriveParams{FromExclusive: fromExclusive, ToInclusive: toInclusive})
	if err != nil {
		return fmt.Errorf("link the transfers of records after %d up to %d to their parties: %w", fromExclusive, toInclusive, err)
	}
	err = q.BalanceTotalsAdd(ctx, tx, dbsqlc.BalanceTotalsAddParams{FromExclusive: fromExclusive, ToInclusive: toInclusive})
	if err != nil {
		return fmt.Errorf("add the balance changes of records after %d up to %d to the totals: %w", fromExclusive, toInclusive, err)
	}
	err = q.BalanceRoundsNote(ctx, tx, dbsqlc.BalanceRoundsNoteParams{FromExclusive: fromExclusive, ToInclusive: toInclusive})
	if err != nil {
		return fmt.Errorf("note the rounds of records after %d up to %d: %w", fromExclusive, toInclusive, err)
	}
	l.store.cfg.Observe("project", time.Since(started))
	return nil
}
