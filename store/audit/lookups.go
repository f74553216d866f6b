package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/writing"
)

// lookups looks up the looked-up contracts again. It skips those that the participant does not return any more because
// they were pruned since.
func (u *Updates) lookups(ctx context.Context) error {
	u.result.Lookups = 0 // derived may have called lookups before, to repair names
	after := ""
	for {
		ids, err := u.Database.AnsweredLookups(ctx, after, lookupsAtOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			u.Begin(Progress{Step: "looked-up contracts", Done: u.result.Lookups})
			if err := u.lookup(ctx, id); err != nil {
				return fmt.Errorf("look up contract %s: %w", id, err)
			}
		}
		after = ids[len(ids)-1]
	}
}

// lookupsAtOnce is how many contracts are read from the database at once.
const lookupsAtOnce = 500

func (u *Updates) lookup(ctx context.Context, id string) error {
	var contract ledger.Contract
	err := Retry(ctx, u.Logger, func() (err error) {
		contract, _, err = u.Source.ContractByID(ctx, id, u.Scope.Parties)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrNotOffered) {
		return nil
	}
	if err == nil {
		err = u.sameLedger(ctx)
	}
	if err != nil {
		return err
	}
	u.result.Lookups++
	_, err = u.compared(ctx, func(found Found) error { return u.Database.CompareLookup(ctx, contract, found) },
		func() error {
			return u.Repairer.RepairLookup(ctx, ledger.Lookup{ContractID: id, At: time.Now(), Status: ledger.LookupFound,
				Contract: &contract})
		})
	return err
}

// AnsweredLookups returns contracts after one, in the order of their ids, whose look-up was answered with found or
// not_found: asking again should bring the same.
func (s *Stored) AnsweredLookups(ctx context.Context, after string, limit int) (contractIDs []string, err error) {
	defer pg.Wrap(&err, "read which contracts were looked up")
	return queries.LookupsAnswered(ctx, s.db.Pool, dbsqlc.LookupsAnsweredParams{After: after, AtMost: int64(limit)})
}

// lookupColumns finds the columns of a looked-up contract that are not as the arguments say.
const lookupColumns = `
SELECT v.relation, v.name, v.type, v.wanted, v.stored
FROM lookups l
LEFT JOIN templates t ON t.template_ref = l.template_ref
CROSS JOIN LATERAL (VALUES
    ('lookups', 'status', '', 'found', l.status),
    ('lookups', 'reason', '', NULL, l.reason),
    ('lookups', 'template_ref', '', $2 || ' of ' || $3,
        t.template_id || ' of ' || t.package_name || coalesce(', represented by ' || t.representative_package_id, '')),
    ('lookups', 'created_at', '', $4::timestamptz::text, l.created_at::text),
    ('lookups', 'payload', 'jsonb', $5::jsonb::text, l.payload::text),
    ('lookups', 'contract_key', 'jsonb', $6::jsonb::text, l.contract_key::text),
    ('lookups', 'contract_key_hash', '', encode($7::bytea, 'hex'), encode(l.contract_key_hash, 'hex')),
    ('lookups', 'signatories', '', $8::text[]::text, l.signatories::text),
    ('lookups', 'observers', '', $9::text[]::text, l.observers::text),
    ('lookups', 'witness_parties', '', $10::text[]::text, l.witness_parties::text),
    ('lookups', 'exact', 'jsonb', $11::jsonb::text, l.exact::text)
) v (relation, name, type, wanted, stored)
WHERE l.contract_id = $1 AND v.wanted IS DISTINCT FROM v.stored`

// CompareLookup compares what is stored of a looked-up contract with what the participant returns.
func (s *Stored) CompareLookup(ctx context.Context, contract ledger.Contract, found Found) (err error) {
	defer pg.Wrap(&err, "compare the look-up of contract %s", contract.ContractID)
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error {
		erased, err := redacted.Read(ctx, tx)
		if err != nil {
			return err
		}
		outcome := erased.Lookup(rows.Storable(ledger.Lookup{ContractID: contract.ContractID, Status: ledger.LookupFound,
			Contract: &contract}))
		if outcome.Contract == nil {
			return nil // it can't be stored, and nothing else is to be said of it
		}
		// its template is compared by its names
		row := rows.LookupRow(names.NewReferences(), &outcome)
		arguments := []any{
			contract.ContractID, contract.TemplateID, contract.PackageName, row.CreatedAt, row.Payload,
			row.ContractKey, row.ContractKeyHash, row.Signatories, row.Observers, row.WitnessParties, row.Exact,
		}
		d := Difference{Kind: Altered, Row: "contract_id " + contract.ContractID}
		var typeName string
		into := []any{&d.Relation, &d.Column, &typeName, &d.Wanted, &d.Stored}
		return pg.Each(ctx, tx, lookupColumns, arguments, into, func() error {
			if !alike(column{d.Column, typeName}, d.Wanted, d.Stored) {
				found(d)
			}
			return nil
		})
	})
}

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
	return r.repair(ctx, []session.Lease{session.LeaseUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		if err := queries.LookupAskAgain(ctx, tx, lookup.ContractID); err != nil {
			return fmt.Errorf("forget the look-up of contract %s: %w", lookup.ContractID, err)
		}
		_, err := writing.SaveLookup(ctx, tx, wanted, &outcome)
		return err
	})
}
