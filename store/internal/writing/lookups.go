package writing

import (
	"context"

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
