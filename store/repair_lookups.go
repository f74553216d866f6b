package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
)

// RepairLookup stores what the participant tells of a looked-up contract in place of what is stored.
func (r *Repairer) RepairLookup(ctx context.Context, lookup ledger.Lookup) error {
	outcome := storable(lookup)
	wanted := names.NewWanted()
	if c := outcome.Contract; c != nil {
		wanted.Template(c.TemplateID, c.PackageName, nil)
	}
	numbers, err := r.resolve(ctx, wanted)
	if err != nil {
		return err
	}
	return r.repair(ctx, []Role{RoleUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.store.queries.LookupAskAgain(ctx, tx, lookup.ContractID); err != nil {
			return fmt.Errorf("forget the look-up of contract %s: %w", lookup.ContractID, err)
		}
		_, err := r.saveLookup(ctx, tx, numbers, &outcome)
		return err
	})
}
