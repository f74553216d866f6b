package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
)

// SealRecords is SealUpdates for records of the transaction history: those that its service shows after a seq, in its order. The error is
// store.ErrPositionMoved where another generation is shown than that of the seq.
func (s *Sealer) SealRecords(ctx context.Context, after int64, records []ledger.Transaction) (findings.Comparison, error) {
	var c findings.Comparison
	to := after + int64(len(records))
	err := s.sealing(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c = findings.Comparison{}
		if err := s.stored.refuseGone(ctx, tx, findings.SealedTransactions, after, to); err != nil {
			return err
		}
		if err := s.stored.compareRecords(ctx, tx, after, records, c.Add); err != nil {
			return err
		}
		return s.sealCompared(ctx, tx, findings.SealedTransactions, after, to, c)
	})
	if err != nil {
		return c, fmt.Errorf("seal the records after seq %d up to %d: %w", after, to, err)
	}
	return c, nil
}
