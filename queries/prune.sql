-- Pruning up to an offset: the floor. Everything is one transaction. What copies rows of facts is in store/prune_carry.go.

-- name: PrunePartitions :many
-- The partitions that have offsets up to the floor, with their size in bytes and about how many rows they have (negative: not known).
SELECT p.relation, p.name, p.from_offset, p.to_offset, pg_total_relation_size(c.oid)::bigint AS bytes, c.reltuples::bigint AS about_rows
FROM partitions p
JOIN pg_catalog.pg_class c ON c.relname::text = p.name AND c.relnamespace = (
    SELECT k.relnamespace FROM pg_catalog.pg_class k WHERE k.oid = 'updates'::regclass)
WHERE p.from_offset <= @floor::bigint
ORDER BY p.relation, p.from_offset;

-- name: PruneActive :one
-- How many contracts stay because they were active; those on two synchronizers count twice.
SELECT count(*) FROM needed_creations n
WHERE n.active AND n.ledger_offset <= @floor::bigint AND (n.active_until IS NULL OR n.active_until > @floor::bigint);

-- name: PruneMoveLookups :exec
-- Moves look-ups to the first of these events of their contracts, with their answers, and adds those that there are not. The arrays are
-- parallel.
WITH events AS (
    SELECT DISTINCT ON (e.contract_id COLLATE "C") e.contract_id, e.ledger_offset, e.node_id
    FROM (SELECT unnest(@contract_ids::text[]) AS contract_id, unnest(@ledger_offsets::bigint[]) AS ledger_offset, unnest(@node_ids::integer[]) AS node_id) e
    ORDER BY e.contract_id COLLATE "C", e.ledger_offset, e.node_id
), places AS (
    SELECT l.contract_id, l.ledger_offset, l.node_id, e.ledger_offset AS to_offset, e.node_id AS to_node_id
    FROM events e JOIN lookups l ON l.contract_id = e.contract_id
    WHERE l.ledger_offset <= @floor::bigint
), moved AS (
    UPDATE lookups l SET ledger_offset = p.to_offset, node_id = p.to_node_id
    FROM places p WHERE l.ledger_offset = p.ledger_offset AND l.node_id = p.node_id
)
INSERT INTO lookups (contract_id, ledger_offset, node_id)
SELECT e.contract_id, e.ledger_offset, e.node_id FROM events e
WHERE NOT EXISTS (SELECT FROM lookups l WHERE l.contract_id = e.contract_id);

-- name: PruneForgetLookups :exec
DELETE FROM lookups l WHERE l.ledger_offset <= @floor::bigint;

-- name: PruneResets :one
-- The number of the last reset or change of the scope. It grows with each.
SELECT coalesce(max(r.rewrite), 0)::bigint FROM rewrites r WHERE r.stream = 'updates' AND r.reason IN ('reset', 'scope changed');

-- name: PruneRewritten :one
-- Whether something up to an offset changed after a change: what was compared with files before is not what is stored now.
SELECT EXISTS (
    SELECT FROM rewrites r WHERE r.rewrite > @newest::bigint AND r.stream <> 'transactions' AND r.from_exclusive < @up_to::bigint
);

-- name: PruneSnapshot :exec
-- Puts a snapshot at the floor in the place of the one before. Its scope is that of the coverage, which is still there.
WITH before AS (
    DELETE FROM snapshots
)
INSERT INTO snapshots (snapshot_offset, scope, token_kind, token, entries, started_at, finished_at, pruned, mixed)
SELECT @floor::bigint,
    (SELECT v.scope FROM coverage v WHERE v.stream = 'updates' AND v.from_exclusive <= @floor AND v.to_inclusive > @floor), '', '',
    @entries::bigint, now(), now(), true,
    (SELECT nullif(count(DISTINCT w.scope) > 1 OR bool_or(w.mixed), false) FROM (
        SELECT v.scope, false AS mixed FROM coverage v WHERE v.stream = 'updates' AND v.from_exclusive <= @floor
        UNION ALL
        SELECT k.scope, coalesce(k.mixed, false) FROM snapshots k
    ) w);

-- name: PruneMoveUnknown :execrows
-- Moves the entries of a snapshot that are of unknown kinds to the floor.
UPDATE unknown_elements SET ledger_offset = @floor WHERE ledger_offset <= @floor_before;

-- name: PruneCoverage :exec
-- Removes the coverage up to the floor, and shortens the range that contains it.
WITH gone AS (
    DELETE FROM coverage d WHERE d.stream = 'updates' AND d.to_inclusive <= @floor::bigint
)
UPDATE coverage c SET from_exclusive = @floor::bigint
WHERE c.stream = 'updates' AND c.from_exclusive < @floor::bigint AND c.to_inclusive > @floor::bigint;

-- name: PruneFloors :exec
-- The floors are where they would be if indexing had begun with a snapshot there.
UPDATE floors f SET history_floor = @floor::bigint, state_floor = @floor::bigint, pruned_to = @floor::bigint
WHERE f.stream = 'updates';

-- name: PruneSeals :exec
-- Puts the windows that begin up to the floor, and the snapshot's, aside.
WITH gone AS (
    DELETE FROM verifications v WHERE v.stream = 'snapshot' OR v.stream = 'updates' AND v.from_exclusive < @floor::bigint
    RETURNING v.stream, v.from_exclusive, v.to_inclusive, v.verified_at, v.result, v.differences, v.digest, v.repaired_at
)
INSERT INTO pruned_verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest, repaired_at)
SELECT g.stream, g.from_exclusive, g.to_inclusive, g.verified_at, g.result, g.differences, g.digest, g.repaired_at FROM gone g
ON CONFLICT DO NOTHING;
