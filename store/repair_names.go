package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/store/internal/names"
)

// addNames gives numbers to names and lists of parties that have none: the dictionary lost them with their copies, or what they are of
// was never stored. Where any was added the terms of the leaders end, because they remember.
func (r *Repairer) addNames(ctx context.Context, tx pgx.Tx, wanted names.Wanted) error {
	if err := r.store.queries.DictionariesLock(ctx, tx); err != nil {
		return fmt.Errorf("lock the dictionaries: %w", err)
	}
	if err := r.store.queries.PartyListsTurn(ctx, tx, names.ListsClass); err != nil {
		return fmt.Errorf("wait for others who add lists of parties: %w", err)
	}
	added, err := names.Add(ctx, r.store.queries, tx, wanted)
	if err != nil || !added {
		return err
	}
	return r.endTerms(ctx, tx, rolesThatRemember)
}
