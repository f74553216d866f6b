-- What the database claims to hold of the updates, to be compared with itself.

-- name: ClaimCoverage :many
-- All of it: nothing but the updates has coverage.
SELECT stream, scope, from_exclusive, to_inclusive FROM coverage ORDER BY from_exclusive, to_inclusive;

-- name: ClaimCheckpoints :many
-- All but those of the transaction history.
SELECT stream, ledger_offset, event_id FROM checkpoints WHERE stream <> 'transactions' ORDER BY stream;

-- name: ClaimFloors :many
SELECT * FROM floors ORDER BY stream;

-- name: ClaimScopes :many
SELECT scope, definition FROM scopes ORDER BY scope;

-- name: ClaimSnapshots :many
-- All but the one that waits.
SELECT s.snapshot_offset, s.scope, (s.finished_at IS NOT NULL)::boolean AS finished FROM snapshots s
WHERE s.snapshot_offset IS DISTINCT FROM (SELECT f.waiting_snapshot FROM floors f WHERE f.stream = 'updates') ORDER BY s.snapshot_offset;

-- name: ClaimProjected :one
-- Whether more than one row of what is derived follows from events behind an offset: one alone may be damaged.
SELECT (SELECT count(*) FROM (SELECT FROM active_contracts WHERE activated_offset > @after::bigint LIMIT 2) a)
     + (SELECT count(*) FROM (SELECT FROM lifetimes WHERE deactivated_offset > @after LIMIT 2) l) > 1 AS projected;

-- name: ClaimCarried :one
-- The snapshot that most carried rows that are shown say they are of. No row: there are none.
SELECT c.snapshot_offset
FROM (
    SELECT x.snapshot_offset FROM shown_created x
    UNION ALL
    SELECT x.snapshot_offset FROM shown_reassignments x
    UNION ALL
    SELECT x.ledger_offset FROM shown_unknown_elements x
) c
GROUP BY c.snapshot_offset ORDER BY count(*) DESC, c.snapshot_offset LIMIT 1;

-- name: ClaimLastUpdate :one
-- The last stored update after one offset and up to another; 0: there is none.
SELECT coalesce(max(u.ledger_offset), 0)::bigint AS last FROM updates u
WHERE u.ledger_offset > @after::bigint AND u.ledger_offset <= @up_to::bigint;

-- name: PartitionsAttached :many
-- The partitions that there are.
SELECT p.relname::text AS relation, b.bounds[1]::bigint AS from_offset, b.bounds[2]::bigint AS to_offset
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace AND n.nspname = current_schema()
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition
CROSS JOIN LATERAL (
    SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)$') AS bounds
) b
WHERE p.relkind = 'p' AND c.relkind = 'r'
ORDER BY p.relname, b.bounds[1]::bigint;

-- name: ReferenceColumns :many
-- The columns of tables, but for some, that hold a number of the dictionaries, and the column that tells a row's offset; empty:
-- none does.
SELECT c.relname::text AS relation, a.attname::text AS name, coalesce((
    SELECT o.attname FROM pg_catalog.pg_attribute o
    WHERE o.attrelid = c.oid AND o.attname IN ('ledger_offset', 'activated_offset') AND NOT o.attisdropped
    LIMIT 1
), '')::text AS offset_column
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname::text = ANY (@names::text[])
  AND NOT c.relname::text = ANY (@but::text[])
ORDER BY c.relname, a.attnum;

-- name: CoverageClear :exec
DELETE FROM coverage;

-- name: CheckpointSet :exec
INSERT INTO checkpoints AS c (stream, ledger_offset) VALUES (@stream, @ledger_offset::bigint)
ON CONFLICT (stream) DO UPDATE SET ledger_offset = excluded.ledger_offset, event_id = NULL, updated_at = now()
WHERE c.ledger_offset IS DISTINCT FROM excluded.ledger_offset OR c.event_id IS NOT NULL;

-- name: ClaimsDropStrays :exec
-- Removes claims of streams that do not exist.
WITH checkpoints AS (DELETE FROM checkpoints c WHERE c.stream NOT IN ('updates', 'transactions'))
DELETE FROM floors f WHERE f.stream <> 'updates';

-- name: SnapshotsKeep :exec
-- Leaves no snapshot but the finished one at an offset, which need not be there, and the one that waits. Carried rows of others go too:
-- nobody can tell any more which of them waited.
WITH gone AS (
    SELECT s.snapshot_offset FROM snapshots s WHERE NOT (@kept::boolean AND s.snapshot_offset = @snapshot_offset::bigint)
        AND s.snapshot_offset IS DISTINCT FROM (SELECT f.waiting_snapshot FROM floors f WHERE f.stream = 'updates')
), created AS (
    DELETE FROM carried_created x WHERE x.snapshot_offset <> @snapshot_offset AND x.snapshot_offset IN (SELECT g.snapshot_offset FROM gone g)
), views AS (
    DELETE FROM carried_interface_views x WHERE x.snapshot_offset <> @snapshot_offset AND x.snapshot_offset IN (SELECT g.snapshot_offset FROM gone g)
), reassignments AS (
    DELETE FROM carried_reassignments x WHERE x.snapshot_offset <> @snapshot_offset AND x.snapshot_offset IN (SELECT g.snapshot_offset FROM gone g)
), unknown AS (
    DELETE FROM carried_unknown_elements x WHERE x.ledger_offset <> @snapshot_offset AND x.ledger_offset IN (SELECT g.snapshot_offset FROM gone g)
), exact AS (
    DELETE FROM carried_exact_payloads x WHERE x.snapshot_offset <> @snapshot_offset AND x.snapshot_offset IN (SELECT g.snapshot_offset FROM gone g)
)
DELETE FROM snapshots s WHERE s.snapshot_offset IN (SELECT g.snapshot_offset FROM gone g);

-- name: SnapshotMove :exec
-- Gives the one snapshot that there is, beside the one that waits, its offset.
UPDATE snapshots s SET snapshot_offset = @snapshot_offset::bigint WHERE s.snapshot_offset IS DISTINCT FROM (SELECT f.waiting_snapshot FROM floors f WHERE f.stream = 'updates');

-- name: SnapshotRestore :exec
-- Makes a snapshot a finished one, with the scope. One that is gone is given as many entries as are carried.
INSERT INTO snapshots AS s (snapshot_offset, scope, token_kind, token, entries, finished_at)
SELECT @snapshot_offset::bigint, @scope::text, '', '',
    (SELECT count(*) FROM shown_created c WHERE c.reassignment_counter IS NOT NULL)
    + (SELECT count(*) FROM shown_reassignments) + (SELECT count(*) FROM shown_unknown_elements), now()
ON CONFLICT (snapshot_offset) DO UPDATE SET scope = excluded.scope, finished_at = coalesce(s.finished_at, excluded.finished_at);

-- name: PartitionForget :exec
DELETE FROM partitions WHERE relation = @relation AND from_offset = @from_offset;
