package writing

import (
	"context"
	"errors"
	"fmt"

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
	values := make([]rows.LookupExactPayload, len(exact.Rows))
	for i := range exact.Rows { // a looked-up contract has no offset of its own
		values[i] = rows.LookupExactPayload{
			LedgerOffset: asked.LedgerOffset, NodeID: asked.NodeID, Field: exact.Rows[i].Field, Exact: exact.Rows[i].Exact,
		}
	}
	return true, CopyRows(ctx, tx, "lookup_exact_payloads", values)
}

// ForgetLookups removes the look-ups of contracts whose creation is stored, with their answers.
func ForgetLookups(ctx context.Context, tx pgx.Tx, contracts []string) error {
	if len(contracts) == 0 {
		return nil
	}
	gone, err := queries.LookupsForgetCreated(ctx, tx, contracts)
	if err == nil {
		err = forgetExact(ctx, tx, dbsqlc.LookupExactForgetParams(gone))
	}
	if err != nil {
		return fmt.Errorf("forget the look-ups of %d contracts: %w", len(contracts), err)
	}
	return nil
}

// ForgetCarriedLookups removes the look-ups of contracts whose creation is carried, with their answers.
func ForgetCarriedLookups(ctx context.Context, tx pgx.Tx) error {
	gone, err := queries.LookupsForgetCarried(ctx, tx)
	if err == nil {
		err = forgetExact(ctx, tx, dbsqlc.LookupExactForgetParams(gone))
	}
	if err != nil {
		return fmt.Errorf("forget the look-ups of contracts that the snapshot brings: %w", err)
	}
	return nil
}

// forgetExact removes the exact values of look-ups that were removed. It is a statement of its own: the one that
// removed the look-ups may have waited for one to be answered, and does not see the values of that answer.
func forgetExact(ctx context.Context, tx pgx.Tx, gone dbsqlc.LookupExactForgetParams) error {
	if len(gone.LedgerOffsets) == 0 {
		return nil
	}
	return queries.LookupExactForget(ctx, tx, gone)
}
