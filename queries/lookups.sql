-- name: LookupsWanted :many
SELECT contract_id FROM lookups WHERE status = 'wanted' ORDER BY ledger_offset, node_id LIMIT @at_most::bigint;

-- name: LookupsCreationKnown :many
-- The contracts among those given whose creation is stored, up to the watermark. The ids are unnested, so that the planner looks each
-- one up by index.
SELECT w.contract_id::text AS contract_id
FROM (SELECT unnest(@contract_ids::text[]) AS contract_id) w
WHERE EXISTS (SELECT FROM created c WHERE c.contract_id = w.contract_id AND c.ledger_offset + 0 <= (SELECT watermark()));

-- name: LookupsWant :exec
-- Adds look-ups for the events of a range whose contract has neither a stored creation nor a look-up. After a reset those are missing of
-- contracts whose creation it removed.
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT m.contract_id, m.ledger_offset, m.node_id FROM missing_lookups(@from_exclusive, @to_inclusive) m;

-- name: LookupsForget :exec
DELETE FROM lookups WHERE status = 'wanted' AND contract_id = ANY (@contract_ids::text[]);

-- name: LookupSave :execrows
-- Stores an answer. No row: there is no such look-up, or it has an answer already.
UPDATE lookups SET status = @status, reason = @reason, looked_up_at = @looked_up_at, template_ref = @template_ref,
    created_at = @created_at, payload = @payload, contract_key = @contract_key, contract_key_hash = @contract_key_hash,
    signatories = @signatories, observers = @observers, witness_parties = @witness_parties, exact = @exact
WHERE contract_id = @contract_id AND status = 'wanted';

-- name: LookupsCount :one
SELECT count(*) FILTER (WHERE status = 'wanted') AS wanted, count(*) FILTER (WHERE status = 'found') AS found,
    count(*) FILTER (WHERE status = 'not_found') AS not_found, count(*) FILTER (WHERE status = 'unusable') AS unusable
FROM lookups;
