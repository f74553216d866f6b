-- name: ActiveAsOf :many
-- The stored activations, as of an offset, of contracts on synchronizers. The arrays are parallel. closed: the row is a lifetime.
-- Lifetimes that ended up to the offset are not read, so this is fast near the watermark.
WITH asked AS (
    SELECT unnest(@contract_ids::text[]) AS contract_id, unnest(@synchronizer_refs::integer[]) AS synchronizer_ref
)
SELECT a.contract_id, a.synchronizer_ref, a.template_ref, a.activated_offset, a.activated_node_id, a.reassignment_counter, false AS closed
FROM active_contracts a
WHERE a.contract_id = ANY (@contract_ids::text[]) AND a.activated_offset <= @at::bigint
  AND (a.contract_id, a.synchronizer_ref) IN (SELECT q.contract_id, q.synchronizer_ref FROM asked q)
UNION ALL
SELECT l.contract_id, l.synchronizer_ref, l.template_ref, l.activated_offset, l.activated_node_id, l.reassignment_counter, true
FROM lifetimes l
WHERE l.deactivated_offset > @at::bigint AND l.activated_offset <= @at::bigint
  AND (l.contract_id, l.synchronizer_ref) IN (SELECT q.contract_id, q.synchronizer_ref FROM asked q);

-- name: SnapshotFinished :one
-- The snapshot whose entries are shown, with the scope in which it was read. A definition that is lost is empty.
SELECT sqlc.embed(s), coalesce(d.definition::text, '')::text AS definition
FROM snapshots s LEFT JOIN scopes d ON d.scope = s.scope
WHERE s.finished_at IS NOT NULL
ORDER BY s.snapshot_offset DESC LIMIT 1;

-- name: CarriedCreatedOfActive :one
-- Whether a creation event belongs to an active contract of the snapshot.
SELECT EXISTS (
    SELECT FROM created
    WHERE ledger_offset = @ledger_offset AND node_id = @node_id AND reassignment_counter IS NOT NULL);

-- name: CarriedEvents :many
-- The events of the snapshot at some places, with their kinds as in CarriedAt. The arrays are parallel.
WITH places AS (
    SELECT unnest(@created_offsets::bigint[]) AS ledger_offset, unnest(@created_node_ids::integer[]) AS node_id
), reassigned AS (
    SELECT unnest(@reassigned_offsets::bigint[]) AS ledger_offset, unnest(@reassigned_node_ids::integer[]) AS node_id
)
SELECT (CASE WHEN c.reassignment_counter IS NULL THEN 'created' ELSE 'active' END)::text AS kind, c.ledger_offset, c.node_id AS number
FROM created c JOIN places p ON p.ledger_offset = c.ledger_offset AND p.node_id = c.node_id
UNION ALL
SELECT 'reassignment', r.ledger_offset, r.node_id
FROM reassignments r JOIN reassigned p ON p.ledger_offset = r.ledger_offset AND p.node_id = r.node_id
UNION ALL
SELECT 'unknown', u.ledger_offset, u.ordinal
FROM unknown_elements u
WHERE u.ledger_offset = @at AND u.ordinal >= @first_ordinal::bigint AND u.ordinal < @end_ordinal::bigint;

-- name: CarriedDrop :exec
-- Removes the rows of the snapshot that CarriedAt returned. The arrays are parallel. The creation event of an active contract stays, without
-- its counter, if an incomplete reassignment needs it.
WITH dropped AS (
    SELECT unnest(@kinds::text[]) AS kind, unnest(@offsets::bigint[]) AS ledger_offset, unnest(@numbers::integer[]) AS number
), moves AS (
    DELETE FROM reassignments r USING dropped d
    WHERE d.kind = 'reassignment' AND d.ledger_offset = r.ledger_offset AND d.number = r.node_id
), unknown AS (
    DELETE FROM unknown_elements u USING dropped d
    WHERE d.kind = 'unknown' AND d.ledger_offset = u.ledger_offset AND d.number = u.ordinal
), incomplete AS (
    UPDATE created c SET reassignment_counter = NULL FROM dropped d
    WHERE d.kind = 'active' AND d.ledger_offset = c.ledger_offset AND d.number = c.node_id
      AND EXISTS (SELECT FROM reassignments r WHERE r.created_offset = c.ledger_offset AND r.created_node_id = c.node_id)
)
DELETE FROM created c USING dropped d
WHERE d.kind IN ('active', 'created') AND d.ledger_offset = c.ledger_offset AND d.number = c.node_id
  AND NOT EXISTS (
      SELECT FROM reassignments r
      WHERE d.kind = 'active' AND r.created_offset = c.ledger_offset AND r.created_node_id = c.node_id);

-- name: CarriedViewsDropOrphans :exec
-- Removes interface views of the snapshot at an offset whose creation event is not stored.
DELETE FROM interface_views v
WHERE v.ledger_offset <= @at AND NOT EXISTS (SELECT FROM created c WHERE c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id);

-- name: CoverageClose :exec
-- Adds a range up to the watermark to the coverage, as far as no row has it, and merges the scope's rows that touch it, but not those
-- that were written ahead. The parts of one statement run in no defined order, but the deletion ends before the first row is inserted
-- and checked against the exclusion constraint: the inserted rows are computed from all that the deletion returns.
WITH mine AS (
    DELETE FROM coverage c
    WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive <= @to_inclusive::bigint AND c.to_inclusive >= @from_exclusive::bigint
      AND c.from_exclusive < watermark()
    RETURNING int8range(c.from_exclusive, c.to_inclusive, '(]') AS claimed
), others AS (
    SELECT int8range(c.from_exclusive, c.to_inclusive, '(]') AS claimed FROM coverage c
    WHERE c.stream = @stream AND c.scope <> @scope AND c.from_exclusive < @to_inclusive::bigint AND c.to_inclusive > @from_exclusive::bigint
), whole AS (
    SELECT coalesce((SELECT range_agg(m.claimed) FROM mine m), '{}'::int8multirange)
        + (int8multirange(int8range(@from_exclusive::bigint, @to_inclusive::bigint, '(]'))
            - coalesce((SELECT range_agg(o.claimed) FROM others o), '{}'::int8multirange)) AS claimed
)
INSERT INTO coverage (stream, scope, from_exclusive, to_inclusive)
SELECT @stream::text, @scope::text, lower(part) - 1, upper(part) - 1 FROM whole w, unnest(w.claimed) AS part;
