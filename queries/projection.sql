-- name: StepEvents :many
-- The events of a range that concern the active set, in order, up to a number of rows.
SELECT * FROM step_events e
WHERE e.ledger_offset > @from_exclusive::bigint AND e.ledger_offset <= @to_inclusive::bigint
ORDER BY e.ledger_offset, e.node_id, e.kind
LIMIT @at_most::bigint;

-- name: ActiveContractsUse :exec
-- Adds look-ups for contracts that events refer to and that are not active.
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT e.contract_id, e.ledger_offset, e.node_id
FROM (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id, unnest(@contract_ids::text[]) AS contract_id) e
WHERE NOT EXISTS (SELECT FROM active_contracts a WHERE a.contract_id = e.contract_id)
ON CONFLICT DO NOTHING;
