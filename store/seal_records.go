package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
)

// SealRecords is SealUpdates for records of the transaction history: those that its service shows after a seq, in its order.
func (l *Leader) SealRecords(ctx context.Context, after int64, records []ledger.Transaction) (ledger.Comparison, error) {
	var c ledger.Comparison
	to := after + int64(len(records))
	err := l.sealing(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c = ledger.Comparison{}
		if err := l.store.compareRecords(ctx, tx, after, records, c.Add); err != nil {
			return err
		}
		return l.sealCompared(ctx, tx, ledger.SealedTransactions, after, to, c)
	})
	if err != nil {
		return c, fmt.Errorf("seal the records after seq %d up to %d: %w", after, to, err)
	}
	return c, nil
}
