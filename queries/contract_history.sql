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
