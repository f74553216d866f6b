-- Filling in history below where indexing began.

-- name: FillTurn :one
-- Locks the filled history against other writers until the transaction ends, and returns where indexing began. No row: it has not
-- begun.
WITH began AS (
    SELECT true AS only_row, f.history_floor AS began_at, coalesce(f.state_floor, f.history_floor) AS projected_from, f.is_copy,
        is_intact(f) AS intact
    FROM floors_both f WHERE f.stream = 'updates'
), turn AS (
    INSERT INTO fill_both AS x (only_row, began_at, projected_from, is_copy, digest)
    SELECT b.only_row, b.began_at, b.projected_from, b.is_copy, CASE WHEN b.intact THEN row_digest(b) END FROM began b
    ON CONFLICT (only_row, is_copy) DO UPDATE SET began_at = x.began_at
    RETURNING x.began_at, x.is_copy
)
SELECT began_at FROM turn WHERE NOT is_copy;

-- name: FillPlace :one
SELECT f.history_floor, f.state_floor, x.projected_from, x.lifetimes_to
FROM fill x, floors f WHERE f.stream = 'updates';

-- name: FillBeganAt :one
-- Where indexing began. No row: nothing was filled in.
SELECT began_at FROM fill;

-- name: FillMark :one
-- A mark that changes with each change of the filled history.
SELECT coalesce((SELECT x.xmin::text FROM fill x), '')::text AS mark;

-- name: FillHold :exec
-- Keeps history from being filled in until the transaction ends: whoever does writes the floors. Table fill may have no row yet.
SELECT FROM floors f WHERE f.stream = 'updates' FOR SHARE;

-- name: FillUnderWay :one
-- Whether a process leads the filling in.
SELECT EXISTS (SELECT FROM lock_holders(CAST(@lock::text AS regclass)));

-- name: CoverageBelow :many
-- The covered ranges that begin below an offset.
SELECT c.from_exclusive, c.to_inclusive FROM coverage c
WHERE c.stream = @stream AND c.from_exclusive < @up_to ORDER BY c.from_exclusive;

-- name: CoverageTake :many
-- Removes the row that begins at an offset and the one that ends there, so that they can be merged.
WITH taken AS (
    DELETE FROM coverage_both c
    WHERE c.stream = @stream AND c.scope = @scope AND (c.from_exclusive = @at OR c.to_inclusive = @at) RETURNING c.from_exclusive, c.is_copy
)
SELECT from_exclusive FROM taken WHERE NOT is_copy;

-- name: CoverageLower :one
-- Makes the row that begins at one offset begin at a lower one.
WITH lowered AS (
    UPDATE coverage_both c SET from_exclusive = @to_offset::bigint,
        digest = changed_digest(c, jsonb_build_object('from_exclusive', @to_offset::bigint))
    WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive = @from_offset::bigint RETURNING c.is_copy
)
SELECT count(*) FROM lowered WHERE NOT is_copy;

-- name: CoverageBegins :one
SELECT EXISTS (SELECT FROM coverage c WHERE c.stream = @stream AND c.scope = @scope AND c.from_exclusive = @at);

-- name: CheckpointHold :exec
-- Keeps a checkpoint from moving until the transaction ends.
SELECT FROM checkpoints WHERE stream = @stream FOR NO KEY UPDATE;

-- name: FloorLower :exec
-- Lowers the history floor to the beginning of the covered range that reaches up to it.
UPDATE floors_both f
SET (history_floor, digest) = (
    SELECT coalesce(l.floor, f.history_floor),
        CASE WHEN l.floor IS NULL THEN f.digest WHEN l.intact THEN changed_digest(f, jsonb_build_object('history_floor', l.floor)) END
    FROM (
        SELECT min(c.from_exclusive) AS floor, bool_and(is_intact(c)) AS intact
        FROM coverage_both c
        WHERE c.is_copy = f.is_copy AND c.stream = f.stream AND c.from_exclusive < f.history_floor AND c.to_inclusive >= f.history_floor
    ) l
)
WHERE f.stream = @stream;

-- name: CarriedCreatedForget :many
-- Removes the carried creation events of a range. active: the snapshot had the contract as active, else only as incompletely reassigned.
DELETE FROM shown_created c WHERE c.ledger_offset > @from_exclusive AND c.ledger_offset <= @to_inclusive
RETURNING c.ledger_offset, c.node_id, c.contract_id, (c.reassignment_counter IS NOT NULL)::boolean AS active;

-- name: CarriedRestForget :one
-- Removes the other carried rows of a range.
WITH views AS (
    DELETE FROM shown_interface_views v WHERE v.ledger_offset > @from_exclusive AND v.ledger_offset <= @to_inclusive RETURNING 1
), reassignments AS (
    DELETE FROM shown_reassignments r WHERE r.ledger_offset > @from_exclusive AND r.ledger_offset <= @to_inclusive RETURNING 1
), unknown AS (
    DELETE FROM shown_unknown_elements u
    WHERE u.ledger_offset > @from_exclusive AND u.ledger_offset <= @to_inclusive RETURNING 1
)
SELECT (SELECT count(*) FROM views) + (SELECT count(*) FROM reassignments) + (SELECT count(*) FROM unknown) AS removed;

-- name: LookupsForgetCreated :exec
-- Removes look-ups of contracts whose creation is stored now, with or without an answer.
DELETE FROM lookups l USING (SELECT unnest(@contract_ids::text[]) AS contract_id) c WHERE l.contract_id = c.contract_id;

-- name: FillLifetimesBegin :execrows
-- Begins to compute lifetimes from an offset on.
UPDATE fill_both f SET lifetimes_to = @from_offset::bigint, digest = changed_digest(f, jsonb_build_object('lifetimes_to', @from_offset::bigint));

-- name: FillLifetimesAdvance :one
-- Moves the end of the computed lifetimes by compare-and-swap.
WITH moved AS (
    UPDATE fill_both f SET lifetimes_to = @to_offset::bigint,
        digest = changed_digest(f, jsonb_build_object('lifetimes_to', @to_offset::bigint))
    WHERE f.lifetimes_to = @from_offset::bigint RETURNING f.is_copy
)
SELECT count(*) FROM moved WHERE NOT is_copy;

-- name: FillLifetimesForget :execrows
-- Makes the computing of lifetimes begin again, because rows after an offset changed. It does so even where it has not come that far:
-- its next step may have read these rows already. 0: none are being computed.
UPDATE fill_both x SET lifetimes_to = NULL, digest = changed_digest(x, '{"lifetimes_to": null}')
WHERE x.lifetimes_to IS NOT NULL AND (x.projected_from > @after::bigint OR EXISTS (
    SELECT FROM floors f WHERE f.stream = 'updates' AND f.state_floor IS NULL));

-- name: FillLifetimesDrop :exec
-- Removes the lifetimes that were computed and are not shown yet.
WITH active AS (
    DELETE FROM fill_active
)
DELETE FROM lifetimes l USING fill x WHERE l.activated_offset <= x.projected_from AND (
    l.deactivated_offset <= x.projected_from OR EXISTS (SELECT FROM floors f WHERE f.stream = 'updates' AND f.state_floor IS NULL));

-- name: FillActivate :exec
-- Adds the contracts that were found to be active.
INSERT INTO active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter,
    position_id, amount, locked, locked_until, stakeholders_ref)
SELECT a.contract_id, a.synchronizer_ref, a.template_ref, a.activated_offset, a.activated_node_id, a.reassignment_counter,
    a.position_id, a.amount, a.locked, a.locked_until, a.stakeholders_ref
FROM fill_active a
ON CONFLICT DO NOTHING;

-- name: FillStateKnown :exec
-- Lowers the state floor and shows the snapshot that waits at this offset, if there is one. The rows of a later snapshot have been
-- replaced by then: by events, or by the rows of the earlier snapshot.
WITH lowered AS (
    UPDATE floors_both f SET state_floor = @state_floor::bigint, waiting_snapshot = NULL,
        digest = changed_digest(f, jsonb_build_object('state_floor', @state_floor::bigint, 'waiting_snapshot', NULL::bigint))
    WHERE f.stream = 'updates'
), active AS (
    DELETE FROM fill_active
)
UPDATE fill_both f SET projected_from = @state_floor, lifetimes_to = NULL,
    digest = changed_digest(f, jsonb_build_object('projected_from', @state_floor::bigint, 'lifetimes_to', NULL));

-- name: FillActiveUse :exec
-- ActiveContractsUse for filled history. There a contract is not looked up if any creation of it is stored, even on another
-- synchronizer or later.
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT e.contract_id, e.ledger_offset, e.node_id
FROM (SELECT unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id, unnest(@contract_ids::text[]) AS contract_id) e
WHERE NOT EXISTS (SELECT FROM fill_active a WHERE a.contract_id = e.contract_id)
  AND NOT EXISTS (SELECT FROM created c WHERE c.contract_id = e.contract_id)
ON CONFLICT DO NOTHING;
