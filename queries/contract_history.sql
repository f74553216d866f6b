-- name: ContractEvents :many
-- What happened to a contract up to the watermark, the latest first. A consuming exercise is an archival too.
SELECT e.ledger_offset, e.node_id, e.kind, e.origin, e.update_id, e.record_time, e.synchronizer_id, e.template_id, e.package_name,
    e.acs_delta, e.choice, e.consuming, e.interface_id, e.source_synchronizer_id, e.target_synchronizer_id, e.reassignment_id,
    e.reassignment_counter
FROM (
    SELECT c.ledger_offset, c.node_id, 'created' AS kind, c.origin, c.update_id, c.record_time, c.synchronizer_id, c.template_id,
        c.package_name, c.acs_delta, NULL::text AS choice, NULL::boolean AS consuming, NULL::text AS interface_id,
        NULL::text AS source_synchronizer_id, NULL::text AS target_synchronizer_id, NULL::text AS reassignment_id,
        NULL::bigint AS reassignment_counter
    FROM ledger.created_events c WHERE c.contract_id = @contract_id
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 'archived', '', a.update_id, a.record_time, a.synchronizer_id, a.template_id,
        a.package_name, a.acs_delta, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM ledger.archived_events a WHERE a.contract_id = @contract_id
    UNION ALL
    SELECT x.ledger_offset, x.node_id, 'exercised', '', x.update_id, x.record_time, x.synchronizer_id, x.template_id,
        x.package_name, x.acs_delta, x.choice, x.consuming, x.interface_id, NULL, NULL, NULL, NULL
    FROM ledger.exercised_events x WHERE x.contract_id = @contract_id
    UNION ALL
    SELECT r.ledger_offset, r.node_id, r.kind, '', r.update_id, r.record_time, r.synchronizer_id, r.template_id,
        r.package_name, NULL, NULL, NULL, NULL, r.source_synchronizer_id, r.target_synchronizer_id, r.reassignment_id,
        r.reassignment_counter
    FROM ledger.reassignments r WHERE r.contract_id = @contract_id
) e
ORDER BY e.ledger_offset DESC, e.node_id DESC, e.kind LIMIT @most;

-- name: ContractActive :many
-- On which synchronizers a contract is active at the watermark.
SELECT a.synchronizer_id, a.activated_offset, a.activated_node_id, a.reassignment_counter, a.template_id, a.package_name
FROM ledger.active_contracts a WHERE a.contract_id = @contract_id ORDER BY a.activated_offset;

-- name: ContractLifetimes :many
-- The closed lifetimes of a contract that ended at one of these offsets: lifetimes are found by their end alone.
SELECT s.synchronizer_id, l.activated_offset, l.activated_node_id, l.deactivated_offset
FROM indexer.lifetimes l LEFT JOIN indexer.synchronizers s ON s.synchronizer_ref = l.synchronizer_ref
WHERE l.deactivated_offset = ANY (@deactivated_offsets::bigint[]) AND l.contract_id = @contract_id
ORDER BY l.deactivated_offset, l.activated_offset;

-- name: ContractStored :one
-- What the latest creation event says of a contract.
SELECT c.template_id, c.package_name, c.payload, c.contract_key, c.contract_key_hash, c.signatories, c.observers, c.witness_parties,
    c.created_at
FROM ledger.created_events c WHERE c.contract_id = @contract_id ORDER BY c.ledger_offset DESC, c.node_id DESC LIMIT 1;

-- name: ContractLookup :one
-- How the look-up of a contract ended whose creation was never seen, or that it has not ended yet.
SELECT l.status, l.reason, l.looked_up_at, l.ledger_offset, l.node_id, t.template_id, t.package_name, l.payload, l.contract_key,
    l.contract_key_hash, l.signatories, l.observers, l.witness_parties, l.created_at
FROM indexer.lookups l LEFT JOIN indexer.templates t ON t.template_ref = l.template_ref
WHERE l.contract_id = @contract_id AND l.ledger_offset <= ledger.latest_offset();
