package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/rows"
)

// WantedLookups returns the ids of contracts that were archived or exercised and whose creation is nowhere in the
// database, oldest event first, at most limit of them. What was wanted and turns out to be known (a contract that was
// archived on another synchronizer than it was created on, say) is forgotten.
func (l *UpdatesWriter) WantedLookups(ctx context.Context, limit int) ([]string, error) {
	q := l.store.queries
	for {
		wanted, err := q.LookupsWanted(ctx, l.pool, int64(limit))
		if err != nil {
			return nil, fmt.Errorf("read which contracts to look up: %w", err)
		}
		if len(wanted) == 0 {
			return nil, nil
		}
		known, err := q.LookupsCreationKnown(ctx, l.pool, wanted)
		if err != nil {
			return nil, fmt.Errorf("look for the creation of %d contracts: %w", len(wanted), err)
		}
		if len(known) == 0 {
			return wanted, nil
		}
		err = l.write(ctx, func(ctx context.Context, tx pgx.Tx) error { return q.LookupsForget(ctx, tx, known) })
		if err != nil {
			return nil, fmt.Errorf("forget %d wanted contracts whose creation is known: %w", len(known), err)
		}
	}
}

// SaveLookups stores how look-ups of wanted contracts ended, all of them or none (interface.md, endpoint 3). The first
// outcome of a contract stays: storing another, or one of a contract that is not wanted, does nothing. A contract with a
// text that PostgreSQL can't hold is stored as unusable.
//
// Errors: ErrNotLeader, or the database's; a *ledger.Problem where it would refuse the same again.
func (l *UpdatesWriter) SaveLookups(ctx context.Context, lookups []ledger.Lookup) error {
	if len(lookups) == 0 {
		return nil
	}
	outcomes := make([]ledger.Lookup, len(lookups))
	wanted := names.NewWanted()
	for i := range lookups {
		outcomes[i] = storable(lookups[i])
		if c := outcomes[i].Contract; c != nil {
			wanted.Template(c.TemplateID, c.PackageName, nil)
		}
	}
	saved := 0
	numbers, err := l.resolve(ctx, wanted)
	if err == nil {
		err = l.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
			for i := range outcomes {
				first, err := l.saveLookup(ctx, tx, numbers, &outcomes[i])
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
		return fmt.Errorf("save the outcome of %d look-ups: %w", len(lookups), refused(err))
	}
	if saved > 0 {
		l.store.cfg.Wrote("lookups", saved)
	}
	return nil
}

// saveLookup stores an outcome, unless there is one already.
func (l *Leader) saveLookup(ctx context.Context, tx pgx.Tx, r names.Numbers, lookup *ledger.Lookup) (first bool, err error) {
	row, exact := lookupRow(r, lookup)
	asked, err := l.store.queries.LookupSave(ctx, tx, row)
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
	return true, copyRows(ctx, tx, "lookup_exact_payloads", values)
}

// lookupRow converts an outcome into its row.
func lookupRow(r names.Numbers, lookup *ledger.Lookup) (row dbsqlc.LookupSaveParams, exact rows.Exact) {
	row = dbsqlc.LookupSaveParams{
		ContractID: lookup.ContractID, Status: string(lookup.Status), LookedUpAt: rows.Timestamp(ledger.Time{Time: lookup.At, Valid: true}),
	}
	if lookup.Reason != "" {
		row.Reason = &lookup.Reason
	}
	if c := lookup.Contract; c != nil {
		template := r.Template(c.TemplateID, c.PackageName, nil)
		row.TemplateRef, row.CreatedAt = &template, rows.Timestamp(c.CreatedAt)
		exact.Time(rows.Place{}, "createdAt", c.CreatedAt)
		row.Payload = exact.Value(rows.Place{}, "payload", c.Argument)
		row.ContractKey = exact.Value(rows.Place{}, "contract_key", c.ContractKey)
		row.ContractKeyHash = c.ContractKeyHash
		row.Signatories, row.Observers, row.WitnessParties = c.Signatories, c.Observers, c.WitnessParties
	}
	return row, exact
}

// storable is an outcome as the database can hold it.
func storable(lookup ledger.Lookup) ledger.Lookup {
	if lookup.Contract != nil {
		if err := checkContract(lookup.Contract); err != nil {
			lookup.Status, lookup.Contract, lookup.Reason = ledger.LookupUnusable, nil, err.Error()
		}
	}
	lookup.Reason = storableText(lookup.Reason)
	return lookup
}

// checkContract refuses what PostgreSQL can't hold, other than JSON.
func checkContract(c *ledger.Contract) error {
	if _, err := ledger.ParseTemplateID(c.TemplateID); err != nil {
		return fmt.Errorf("its template id is %w", err)
	}
	for _, field := range []struct {
		name  string
		texts []string
	}{
		{"template id", []string{c.TemplateID, c.PackageName}},
		{"signatories", c.Signatories}, {"observers", c.Observers}, {"witness parties", c.WitnessParties},
	} {
		if err := checkTexts(field.texts...); err != nil {
			return fmt.Errorf("%s: %w", field.name, err)
		}
	}
	return nil
}

// checkTexts refuses texts that PostgreSQL can't hold.
func checkTexts(texts ...string) error {
	for _, text := range texts {
		if !textHolds(text) {
			return fmt.Errorf("a text that PostgreSQL can't hold: %q", text)
		}
	}
	return nil
}

// storableText is a text for people, as the database can hold it.
func storableText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}
