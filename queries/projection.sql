-- name: StepEvents :many
-- The events of a range that concern the active set, in order, with the columns of stepEvent, up to a number of rows.
SELECT e.ledger_offset, e.node_id, e.kind, e.contract_id, e.synchronizer_ref, e.template_ref, e.flag, coalesce((
    SELECT r.reassignment_counter FROM reassignments r
    WHERE e.kind = 1 AND e.flag AND r.ledger_offset = e.ledger_offset AND r.node_id = e.node_id
), 0)::bigint AS counter, h.position_id, coalesce(h.amount::text, '')::text AS amount,
    (h.locked IS NOT NULL)::boolean AS lock_known, (h.locked IS TRUE)::boolean AS locked, e.stakeholders_ref
FROM (
    SELECT c.ledger_offset, c.node_id, 1 AS kind, c.contract_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, c.template_ref,
        c.origin = 'assignment' AS flag, c.stakeholders_ref
    FROM created c
    WHERE c.ledger_offset > @from_exclusive::bigint AND c.ledger_offset <= @to_inclusive::bigint AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 2, a.contract_id, coalesce(a.synchronizer_ref, 0), 0, true, NULL
    FROM archived a
    WHERE a.ledger_offset > @from_exclusive AND a.ledger_offset <= @to_inclusive
    UNION ALL
    SELECT x.ledger_offset, x.node_id, CASE WHEN x.consuming THEN 3 ELSE 4 END, x.contract_id, coalesce(x.synchronizer_ref, 0), 0,
        x.acs_delta IS NOT FALSE, NULL
    FROM exercised x
    WHERE x.ledger_offset > @from_exclusive AND x.ledger_offset <= @to_inclusive AND (x.consuming OR x.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT r.ledger_offset, r.node_id, 5, r.contract_id, r.source_ref, 0, false, NULL
    FROM reassignments r
    WHERE r.ledger_offset > @from_exclusive AND r.ledger_offset <= @to_inclusive AND r.kind = 'unassigned'
) e
LEFT JOIN LATERAL (
    SELECT y.position_id, y.amount, y.locked FROM holding_events y
    WHERE e.kind = 1 AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND y.ledger_offset = e.ledger_offset AND y.node_id = e.node_id
    LIMIT 1
) h ON true
ORDER BY e.ledger_offset, e.node_id, e.kind
LIMIT @at_most::bigint;

-- name: StepEventsOf :many
-- StepEvents of some contracts, up to an offset.
SELECT e.ledger_offset, e.node_id, e.kind, e.contract_id, e.synchronizer_ref, e.template_ref, e.flag, coalesce((
    SELECT r.reassignment_counter FROM reassignments r
    WHERE e.kind = 1 AND e.flag AND r.ledger_offset = e.ledger_offset AND r.node_id = e.node_id
), 0)::bigint AS counter, h.position_id, coalesce(h.amount::text, '')::text AS amount,
    (h.locked IS NOT NULL)::boolean AS lock_known, (h.locked IS TRUE)::boolean AS locked, e.stakeholders_ref
FROM (
    SELECT c.ledger_offset, c.node_id, 1 AS kind, c.contract_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, c.template_ref,
        c.origin = 'assignment' AS flag, c.stakeholders_ref
    FROM created c
    WHERE c.contract_id = ANY (@contract_ids::text[]) AND c.ledger_offset <= @up_to::bigint AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 2, a.contract_id, coalesce(a.synchronizer_ref, 0), 0, true, NULL
    FROM archived a
    WHERE a.contract_id = ANY (@contract_ids::text[]) AND a.ledger_offset <= @up_to::bigint
    UNION ALL
    SELECT x.ledger_offset, x.node_id, CASE WHEN x.consuming THEN 3 ELSE 4 END, x.contract_id, coalesce(x.synchronizer_ref, 0), 0,
        x.acs_delta IS NOT FALSE, NULL
    FROM exercised x
    WHERE x.contract_id = ANY (@contract_ids::text[]) AND x.ledger_offset <= @up_to::bigint AND (x.consuming OR x.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT r.ledger_offset, r.node_id, 5, r.contract_id, r.source_ref, 0, false, NULL
    FROM reassignments r
    WHERE r.contract_id = ANY (@contract_ids::text[]) AND r.ledger_offset <= @up_to::bigint AND r.kind = 'unassigned'
) e
LEFT JOIN LATERAL (
    SELECT y.position_id, y.amount, y.locked FROM holding_events y
    WHERE e.kind = 1 AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND y.ledger_offset = e.ledger_offset AND y.node_id = e.node_id
    LIMIT 1
) h ON true
ORDER BY e.ledger_offset, e.node_id, e.kind;

-- name: ActiveContractsUse :exec
-- Adds look-ups for contracts that events refer to and that are not active.
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT e.contract_id, e.ledger_offset, e.node_id
FROM (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id, unnest(@contract_ids::text[]) AS contract_id) e
WHERE NOT EXISTS (SELECT FROM active_contracts a WHERE a.contract_id = e.contract_id)
ON CONFLICT DO NOTHING;
