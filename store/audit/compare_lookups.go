package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/dbsqlc"
	"ledgerindexer/store/internal/names"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/redacted"
	"ledgerindexer/store/internal/rows"
)

// AnsweredLookups returns contracts after one, in the order of their ids, whose look-up was answered with found or
// not_found: asking again should bring the same.
func (s *Stored) AnsweredLookups(ctx context.Context, after string, limit int) (contractIDs []string, err error) {
	contractIDs, err = s.db.Queries.LookupsAnswered(ctx, s.db.Pool, dbsqlc.LookupsAnsweredParams{After: after,
		AtMost: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("read which contracts were looked up: %w", err)
	}
	return contractIDs, nil
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
func (s *Stored) CompareLookup(ctx context.Context, contract ledger.Contract,
	found func(Difference) error) error {
	return s.db.ReadOnly(ctx, func(tx pgx.Tx) error { return s.compareLookup(ctx, tx, contract, found) })
}

func (s *Stored) compareLookup(ctx context.Context, tx pgx.Tx, contract ledger.Contract,
	found func(Difference) error) error {
	erased, err := redacted.Read(ctx, s.db.Queries, tx)
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
	err = pg.Each(ctx, tx, lookupColumns, arguments, []any{&d.Relation, &d.Column, &typeName, &d.Wanted, &d.Stored},
		func() error {
			if alike(column{d.Column, typeName}, d.Wanted, d.Stored) {
				return nil
			}
			return found(d)
		})
	if err != nil {
		return fmt.Errorf("compare the look-up of contract %s: %w", contract.ContractID, err)
	}
	return nil
}
