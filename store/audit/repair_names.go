package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/names"
)

// addNames gives numbers to names and lists of parties that have none: the dictionary lost them with their copies, or what they are of
// was never stored. Where any was added the terms of the leaders end, because they remember.
func (r *Repairer) addNames(ctx context.Context, tx pgx.Tx, wanted names.Wanted) error {
	if err := r.stored.db.Queries.DictionariesLock(ctx, tx); err != nil {
		return fmt.Errorf("lock the dictionaries: %w", err)
	}
	if err := r.stored.db.Queries.PartyListsTurn(ctx, tx, names.ListsClass); err != nil {
		return fmt.Errorf("wait for others who add lists of parties: %w", err)
	}
	added, err := names.Add(ctx, r.stored.db.Queries, tx, wanted)
	if err != nil || !added {
		return err
	}
	return r.term.EndTerms(ctx, tx, rolesThatRemember...)
}
