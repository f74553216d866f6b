package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/tables"
)

// CompareBalances compares what follows from the records of the history with them: who took part in which transfer, the
// running totals of the balance changes, and the rounds for which balances are known.
//
// step is called with what is compared next, found for each difference; if found returns an error, the comparison stops
// with it.
func (s *Stored) CompareBalances(ctx context.Context, step func(what string),
	found func(Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		f, err := s.newFollowing(ctx, tx, tables.Totals, nil, new(dictionaries))
		if err != nil {
			return err
		}
		for _, group := range tables.BySource(tables.Totals) {
			step("what follows from the transaction history: " + what(group))
			if err := f.compare(ctx, group, found); err != nil {
				return fmt.Errorf("compare %s with what follows from the history: %w", what(group), err)
			}
		}
		return nil
	})
}
