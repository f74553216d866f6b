package store

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

// WantedLookups returns the ids of contracts that were archived or exercised and whose creation is nowhere in the
// database, oldest event first, at most limit of them. What was wanted and turns out to be known (a contract that was
// archived on another synchronizer than it was created on, say) is forgotten.
func (l *UpdatesWriter) WantedLookups(ctx context.Context, limit int) ([]string, error) {
	for {
		wanted, err := queries.LookupsWanted(ctx, l.term.Pool, int64(limit))
		if err != nil {
			return nil, fmt.Errorf("read which contracts to look up: %w", err)
		}
		if len(wanted) == 0 {
			return nil, nil
		}
		known, err := queries.LookupsCreationKnown(ctx, l.term.Pool, wanted)
		if err != nil {
			return nil, fmt.Errorf("look for the creation of %d contracts: %w", len(wanted), err)
		}
		if len(known) == 0 {
			return wanted, nil
		}
		err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error { return queries.LookupsForget(ctx, tx, known) })
		if err != nil {
			return nil, fmt.Errorf("forget %d wanted contracts whose creation is known: %w", len(known), err)
		}
	}
}

// SaveLookups stores how look-ups of wanted contracts ended, all of them or none (interface.md, endpoint 3). The first
// outcome of a contract stays: storing another, or one of a contract that is not wanted, does nothing. A contract with
// a text that PostgreSQL can't hold is stored as unusable.
//
// Errors: ErrNotLeader, or the database's; a *ledger.Problem where it would refuse the same again.
func (l *UpdatesWriter) SaveLookups(ctx context.Context, lookups []ledger.Lookup) error {
	if len(lookups) == 0 {
		return nil
	}
	outcomes := make([]ledger.Lookup, len(lookups))
	wanted := names.NewReferences()
	for i := range lookups {
		outcomes[i] = l.term.Redacted.Lookup(rows.Storable(lookups[i]))
		if c := outcomes[i].Contract; c != nil {
			wanted.Template(c.TemplateID, c.PackageName, nil)
		}
	}
	saved := 0
	err := l.term.Resolve(ctx, wanted)
	if err == nil {
		err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			for i := range outcomes {
				first, err := writing.SaveLookup(ctx, tx, wanted, &outcomes[i])
				if err != nil {
					return fmt.Errorf("contract %s: %w", outcomes[i].ContractID, err)
				}
				if first {
					saved++
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("save the outcome of %d look-ups: %w", len(lookups), session.Refused(err))
	}
	if saved > 0 {
		l.store.db.Config.Wrote("lookups", saved)
	}
	return nil
}
