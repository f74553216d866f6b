package writing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// SaveLookup stores an outcome, unless there is one already.
func SaveLookup(ctx context.Context, tx pgx.Tx, r names.Numbers, lookup *ledger.Lookup) (first bool, err error) {
	row, exact := rows.LookupRow(r, lookup)
	asked, err := queries.LookupSave(ctx, tx, row)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	values := make([]dbsqlc.LookupExactPayloads, len(exact.Rows))
	for i := range exact.Rows { // a looked-up contract has no offset of its own
		values[i] = dbsqlc.LookupExactPayloads{
			LedgerOffset: asked.LedgerOffset, NodeID: asked.NodeID, Field: exact.Rows[i].Field, Exact: exact.Rows[i].Exact,
		}
	}
	return true, CopyRows(ctx, tx, "lookup_exact_payloads", values)
}
