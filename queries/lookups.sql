-- name: LookupsWanted :many
SELECT contract_id FROM lookups WHERE status = 'wanted' ORDER BY ledger_offset, node_id LIMIT @at_most::bigint;

-- name: LookupsCreationKnown :many
-- Those of some contracts whose creation is here, up to the watermark, after all. The ids come as a list, so that each is
-- looked for by index.
SELECT w.contract_id::text AS contract_id
FROM (SELECT unnest(@contract_ids::text[]) AS contract_id) w
WHERE EXISTS (SELECT FROM created c WHERE c.contract_id = w.contract_id AND c.ledger_offset + 0 <= (SELECT watermark()))
   OR EXISTS (SELECT FROM shown_created c WHERE c.contract_id = w.contract_id);

-- name: LookupsWant :exec
-- Asks for the contracts whose creation is nowhere and that nobody asked for, of events after an offset up to another.
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT m.contract_id, m.ledger_offset, m.node_id FROM missing_lookups(@from_exclusive, @to_inclusive) m;

-- name: LookupsForget :exec
DELETE FROM lookups WHERE status = 'wanted' AND contract_id = ANY (@contract_ids::text[]);

-- name: LookupSave :one
-- Stores an outcome, and says which event made us ask. No row: nobody asked, or there is an outcome already.
UPDATE lookups SET status = @status, reason = @reason, looked_up_at = @looked_up_at, template_ref = @template_ref,
    created_at = @created_at, payload = @payload, contract_key = @contract_key, contract_key_hash = @contract_key_hash,
    signatories = @signatories, observers = @observers, witness_parties = @witness_parties
WHERE contract_id = @contract_id AND status = 'wanted'
RETURNING ledger_offset, node_id;

-- name: LookupsCount :one
SELECT count(*) FILTER (WHERE status = 'wanted') AS wanted, count(*) FILTER (WHERE status = 'found') AS found,
    count(*) FILTER (WHERE status = 'not_found') AS not_found, count(*) FILTER (WHERE status = 'unusable') AS unusable
FROM lookups;
