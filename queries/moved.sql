-- name: MovedExercises :many
-- The exercises of some choices of Splice's packages after one offset up to another.
SELECT e.ledger_offset, e.node_id, e.last_descendant_node_id, e.contract_id, t.module_name, t.entity_name, e.choice, e.choice_argument,
    e.exercise_result, u.update_id, u.effective_at, s.synchronizer_id
FROM exercised e
JOIN templates t ON t.template_ref = e.template_ref
JOIN updates u ON u.ledger_offset = e.ledger_offset
LEFT JOIN synchronizers s ON s.synchronizer_ref = u.synchronizer_ref
WHERE e.ledger_offset > @from_exclusive AND e.ledger_offset <= @to_inclusive AND e.choice = ANY (@choices::text[])
    AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM templates k WHERE k.package_name LIKE 'splice-%'))
ORDER BY e.ledger_offset, e.node_id;

-- name: UpdatesBack :one
-- The offset before the last so many updates after one offset up to another; the first one if there are fewer.
SELECT coalesce((
    SELECT u.ledger_offset - 1 FROM updates u WHERE u.ledger_offset > @from_exclusive AND u.ledger_offset <= @to_inclusive
    ORDER BY u.ledger_offset DESC OFFSET @beyond LIMIT 1
), @from_exclusive)::bigint AS from_exclusive;

-- name: UpdatesWindow :one
-- The offset of the last of so many updates after one offset up to another; the other one if there are fewer.
SELECT coalesce((
    SELECT u.ledger_offset FROM updates u WHERE u.ledger_offset > @from_exclusive AND u.ledger_offset <= @to_inclusive
    ORDER BY u.ledger_offset OFFSET @beyond LIMIT 1
), @to_inclusive)::bigint AS to_inclusive;

-- name: MovedAmulets :many
-- The amulets that the updates from one offset up to another create and archive, with their payloads where they are known.
SELECT c.ledger_offset, c.node_id, c.contract_id, true AS created, c.payload
FROM created c
WHERE c.ledger_offset >= @first_offset AND c.ledger_offset <= @last_offset AND c.template_ref = ANY (ARRAY(SELECT k.template_ref FROM amulet_templates k))
UNION ALL
SELECT e.ledger_offset, e.node_id, e.contract_id, false,
    (SELECT c.payload FROM creations c WHERE c.contract_id = e.contract_id AND c.payload IS NOT NULL LIMIT 1)
FROM exercised e
WHERE e.ledger_offset >= @first_offset AND e.ledger_offset <= @last_offset AND e.consuming AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM amulet_templates k))
ORDER BY 1, 2;

-- name: MovedContracts :many
-- The payloads of contracts, where they are known.
SELECT DISTINCT ON (c.contract_id) c.contract_id, c.payload
FROM creations c WHERE c.contract_id = ANY (@contract_ids::text[]) AND c.payload IS NOT NULL ORDER BY c.contract_id;

-- name: MovedOffset :one
-- The offset of an update. No row: it is not stored.
SELECT u.ledger_offset FROM updates u WHERE u.update_id = @update_id::text LIMIT 1;

-- name: MovedFirst :one
-- The offset of the update that the first record that is shown follows from. No row: there is none, or the update is not stored.
SELECT u.ledger_offset FROM transactions t JOIN updates u ON u.update_id = update_id_of(t.event_id)
WHERE t.seq = (SELECT h.shown_after + 1 FROM transactions_position h) LIMIT 1;

-- name: RecordsAreDerived :one
-- Whether the records that are stored follow from updates.
SELECT coalesce((SELECT t.derived FROM transactions t LIMIT 1), false)::boolean AS derived;

-- name: RecordsUpTo :many
-- The last record after one seq up to another that does not follow from an update after an offset. Records come in the order of their
-- updates, so it looks at those that do, the last ones first, and at one more.
SELECT t.seq, t.event_id FROM transactions t
WHERE t.seq > @from_exclusive::bigint AND t.seq <= @to_inclusive::bigint
    AND NOT EXISTS (SELECT FROM updates u WHERE u.update_id = update_id_of(t.event_id) AND u.ledger_offset > @after::bigint)
ORDER BY t.seq DESC LIMIT 1;
