package writing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// SaveLookup stores an outcome, unless there is one already.
func SaveLookup(ctx context.Context, tx pgx.Tx, r *names.References, lookup *ledger.Lookup) (first bool, err error) {
	saved, err := queries.LookupSave(ctx, tx, rows.LookupRow(r, lookup))
	return saved > 0, err
}

// ForgetLookups removes the look-ups of contracts whose creation is stored, with their answers.
func ForgetLookups(ctx context.Context, tx pgx.Tx, contracts []string) error {
	if len(contracts) == 0 {
		return nil
	}
	if err := queries.LookupsForgetCreated(ctx, tx, contracts); err != nil {
		return fmt.Errorf("forget the look-ups of %d contracts: %w", len(contracts), err)
	}
	return nil
}
