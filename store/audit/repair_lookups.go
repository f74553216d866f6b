package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// RepairLookup stores what the participant returns for a looked-up contract in place of what is stored.
func (r *Repairer) RepairLookup(ctx context.Context, lookup ledger.Lookup) error {
	outcome := r.term.Redacted.Lookup(rows.Storable(lookup))
	wanted := names.NewReferences()
	if c := outcome.Contract; c != nil {
		wanted.Template(c.TemplateID, c.PackageName, nil)
	}
	if err := r.term.Resolve(ctx, wanted); err != nil {
		return err
	}
	return r.repair(ctx, []session.Role{session.RoleUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.stored.db.Queries.LookupAskAgain(ctx, tx, lookup.ContractID); err != nil {
			return fmt.Errorf("forget the look-up of contract %s: %w", lookup.ContractID, err)
		}
		_, err := writing.SaveLookup(ctx, tx, wanted, &outcome)
		return err
	})
}
