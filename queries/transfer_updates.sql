-- name: TransferExercises :many
-- The exercises of some choices of Splice's packages after one offset up to another, with the records that were noted of their update.
SELECT e.ledger_offset, e.node_id, e.last_descendant_node_id, e.contract_id, t.module_name, t.entity_name, e.choice, e.choice_argument,
    e.exercise_result, u.update_id, u.effective_at, s.synchronizer_id, n.records AS noted
FROM exercised e
JOIN templates t ON t.template_ref = e.template_ref
JOIN updates u ON u.ledger_offset = e.ledger_offset
LEFT JOIN synchronizers s ON s.synchronizer_ref = u.synchronizer_ref
LEFT JOIN redacted_records n ON n.update_id = u.update_id
WHERE e.ledger_offset > @from_exclusive AND e.ledger_offset <= @to_inclusive AND e.choice = ANY (@choices::text[])
    AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM templates k WHERE k.package_name LIKE 'splice-%'))
ORDER BY e.ledger_offset, e.node_id;

-- name: UpdatesWindow :one
-- The offset of the update number beyond + 1 after one offset, up to another; the other one if there are fewer.
SELECT coalesce((
    SELECT u.ledger_offset FROM updates u WHERE u.ledger_offset > @from_exclusive AND u.ledger_offset <= @to_inclusive
    ORDER BY u.ledger_offset OFFSET @beyond LIMIT 1
), @to_inclusive)::bigint AS to_inclusive;

-- name: TransferAmulets :many
-- The amulets that the updates from one offset up to another create, with their payloads, and archive.
SELECT c.ledger_offset, c.node_id, c.contract_id, true AS created, c.payload
FROM created c
WHERE c.ledger_offset >= @first_offset AND c.ledger_offset <= @last_offset AND c.origin <> 'snapshot' AND c.template_ref = ANY (ARRAY(SELECT k.template_ref FROM amulet_templates k))
UNION ALL
SELECT e.ledger_offset, e.node_id, e.contract_id, false, NULL
FROM exercised e
WHERE e.ledger_offset >= @first_offset AND e.ledger_offset <= @last_offset AND e.consuming AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM amulet_templates k))
ORDER BY 1, 2;

-- name: EndedAmulets :many
-- The payloads of the amulets whose lifetimes end from one offset up to another. A lifetime says where the contract was created, so that no
-- partition is searched. The contract ids are compared in a form that has no index, so that the planner does not search them all the same.
SELECT l.contract_id, c.payload
FROM lifetimes l
JOIN created c ON c.ledger_offset = l.activated_offset AND c.node_id = l.activated_node_id
WHERE l.deactivated_offset >= @first_offset AND l.deactivated_offset <= @last_offset AND c.contract_id || '' = l.contract_id AND c.payload IS NOT NULL
    AND l.template_ref = ANY (ARRAY(SELECT k.template_ref FROM amulet_templates k));

-- name: TransferContracts :many
-- The payloads of contracts, where they are known.
SELECT DISTINCT ON (c.contract_id) c.contract_id, c.payload
FROM creations c WHERE c.contract_id = ANY (@contract_ids::text[]) AND c.payload IS NOT NULL ORDER BY c.contract_id;
