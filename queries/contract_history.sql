-- name: ContractEvents :many
-- The events of a contract up to the watermark, the latest first. A consuming exercise is an archival too.
SELECT e.ledger_offset, e.node_id, e.kind, e.origin, e.update_id, e.record_time, s.synchronizer_id, t.template_id, t.package_name,
    e.acs_delta, e.choice, e.consuming, e.interface_id, so.synchronizer_id AS source_synchronizer_id,
    ta.synchronizer_id AS target_synchronizer_id, e.reassignment_id, e.reassignment_counter
FROM (
    SELECT c.ledger_offset, c.node_id, 'created' AS kind, c.origin,
        (SELECT u.update_id FROM updates u WHERE u.ledger_offset = c.ledger_offset AND c.origin <> 'snapshot') AS update_id,
        c.record_time, c.synchronizer_ref, c.template_ref, c.acs_delta, NULL::text AS choice, NULL::boolean AS consuming, NULL::text AS interface_id,
        NULL::integer AS source_ref, NULL::integer AS target_ref, NULL::text AS reassignment_id, NULL::bigint AS reassignment_counter
    FROM created c WHERE c.contract_id = @contract_id
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 'archived', '', (SELECT u.update_id FROM updates u WHERE u.ledger_offset = a.ledger_offset),
        a.record_time, a.synchronizer_ref, a.template_ref, true, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM archived a WHERE a.contract_id = @contract_id
    UNION ALL
    SELECT x.ledger_offset, x.node_id, k.kind, '', (SELECT u.update_id FROM updates u WHERE u.ledger_offset = x.ledger_offset),
        x.record_time, x.synchronizer_ref, x.template_ref, x.acs_delta, k.choice, k.consuming, k.interface_id, NULL, NULL, NULL, NULL
    FROM exercised x
    CROSS JOIN LATERAL (
        SELECT 'exercised' AS kind, x.choice, x.consuming, x.interface_id
        UNION ALL
        SELECT 'archived', NULL, NULL, NULL WHERE x.consuming
    ) k
    WHERE x.contract_id = @contract_id
    UNION ALL
    SELECT r.ledger_offset, r.node_id, r.kind, '', (SELECT u.update_id FROM updates u WHERE u.ledger_offset = r.ledger_offset),
        r.record_time, r.synchronizer_ref, r.template_ref, NULL, NULL, NULL, NULL, r.source_ref, r.target_ref, r.reassignment_id,
        r.reassignment_counter
    FROM reassignments r WHERE r.contract_id = @contract_id
) e
LEFT JOIN templates t ON t.template_ref = e.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
LEFT JOIN synchronizers so ON so.synchronizer_ref = e.source_ref
LEFT JOIN synchronizers ta ON ta.synchronizer_ref = e.target_ref
WHERE e.ledger_offset + 0 <= (SELECT watermark())
ORDER BY e.ledger_offset DESC, e.node_id DESC, e.kind LIMIT @most;

-- name: ContractActive :many
-- The synchronizers on which a contract is active at the watermark.
SELECT s.synchronizer_id, a.activated_offset, a.activated_node_id, a.reassignment_counter, t.template_id, t.package_name
FROM active_contracts a
LEFT JOIN templates t ON t.template_ref = a.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = a.synchronizer_ref
WHERE a.contract_id = @contract_id AND a.activated_offset + 0 <= (SELECT watermark()) ORDER BY a.activated_offset;

-- name: ContractLifetimes :many
-- The lifetimes of a contract that ended at one of these offsets: lifetimes have an index on their end only.
SELECT s.synchronizer_id, l.activated_offset, l.activated_node_id, l.deactivated_offset
FROM lifetimes l LEFT JOIN synchronizers s ON s.synchronizer_ref = l.synchronizer_ref
WHERE l.deactivated_offset = ANY (@deactivated_offsets::bigint[]) AND l.contract_id = @contract_id
ORDER BY l.deactivated_offset, l.activated_offset;

-- name: ContractStored :one
-- The contract as its latest creation event describes it.
SELECT t.template_id, t.package_name, c.payload, c.contract_key, c.contract_key_hash, c.signatories, c.observers, c.witness_parties,
    c.created_at
FROM creations c LEFT JOIN templates t ON t.template_ref = c.template_ref
WHERE c.contract_id = @contract_id AND c.ledger_offset + 0 <= (SELECT watermark())
ORDER BY c.ledger_offset DESC, c.node_id DESC LIMIT 1;

-- name: ContractLookup :one
-- The look-up of a contract without a stored creation, with its answer if there is one.
SELECT l.status, l.reason, l.looked_up_at, l.ledger_offset, l.node_id, t.template_id, t.package_name, l.payload, l.contract_key,
    l.contract_key_hash, l.signatories, l.observers, l.witness_parties, l.created_at
FROM lookups l LEFT JOIN templates t ON t.template_ref = l.template_ref
WHERE l.contract_id = @contract_id AND l.ledger_offset <= watermark();
