-- What the database holds of the updates, for a comparison with the ledger and the catalog.

-- name: HeldSnapshot :one
-- Whether the rows of a snapshot are carried.
SELECT EXISTS (SELECT FROM snapshots s WHERE s.finished_at IS NOT NULL) AS snapshot;

-- name: LastUpdateWithin :one
-- The last stored update after one offset and up to another; 0: there is none.
SELECT coalesce(max(u.ledger_offset), 0)::bigint AS last FROM updates u
WHERE u.ledger_offset > @after::bigint AND u.ledger_offset <= @up_to::bigint;

-- name: ReferenceColumns :many
-- The columns that refer to a dictionary, in all tables but some, each with the column of its table that has a row's offset. Empty:
-- none has it.
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

-- name: HeldContradictions :many
-- Where what is held contradicts itself: a row, and what speaks against it.
WITH finished AS (
    SELECT s.snapshot_offset FROM snapshots s WHERE s.finished_at IS NOT NULL
), found (relation, name, says) AS (
    SELECT x.relation, 'stream updates', 'it is not stored, and what is held of the updates is'
    FROM (SELECT 'checkpoints' AS relation, EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'updates') AS there
        UNION ALL SELECT 'floors', EXISTS (SELECT FROM floors)) x
    WHERE NOT x.there AND (EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'updates') OR EXISTS (SELECT FROM floors) OR EXISTS (SELECT FROM coverage))
    UNION ALL
    SELECT 'floors', 'stream ' || f.stream, format('the history floor is %s, and what is active is known %s', f.history_floor,
        coalesce('from offset ' || f.state_floor || ' on', 'nowhere'))
    FROM floors f
    WHERE f.state_floor IS DISTINCT FROM f.history_floor
      AND (f.history_floor = 0 OR f.history_floor IN (SELECT s.snapshot_offset FROM finished s))
    UNION ALL
    SELECT 'floors', 'stream ' || f.stream, 'scope ' || f.changed_to || ' is in force, and not stored'
    FROM floors f WHERE f.changed_to IS NOT NULL AND NOT EXISTS (SELECT FROM scopes x WHERE x.scope = f.changed_to)
    UNION ALL
    SELECT 'floors', 'stream ' || f.stream, 'several scopes are covered, and it does not say which is in force'
    FROM floors f WHERE f.changed_to IS NULL AND (SELECT count(DISTINCT v.scope) FROM coverage v) > 1
    UNION ALL
    SELECT 'scopes', 'scope ' || s.scope, 'nothing was read in it, and it is not in force'
    FROM scopes s
    WHERE (SELECT count(*) FROM scopes) > 1 AND NOT EXISTS (SELECT FROM coverage v WHERE v.scope = s.scope)
      AND NOT EXISTS (SELECT FROM snapshots k WHERE k.scope = s.scope) AND NOT EXISTS (SELECT FROM floors f WHERE f.changed_to = s.scope)
    UNION ALL
    SELECT 'checkpoints', 'stream ' || c.stream, format('it is at offset %s, before the history floor, %s', c.ledger_offset, f.history_floor)
    FROM checkpoints c JOIN floors f ON f.stream = c.stream WHERE c.ledger_offset < f.history_floor
    UNION ALL
    SELECT 'coverage', format('from_exclusive %s, to_inclusive %s', v.from_exclusive, v.to_inclusive),
        format('it begins before the history floor, %s', f.history_floor)
    FROM coverage v JOIN floors f ON f.stream = v.stream WHERE v.from_exclusive < f.history_floor
    UNION ALL
    SELECT 'snapshots', 'snapshot_offset ' || s.snapshot_offset, format('the history floor is %s', f.history_floor)
    FROM finished s CROSS JOIN floors f WHERE s.snapshot_offset <> f.history_floor
    UNION ALL
    SELECT 'snapshots', 'snapshot_offset ' || s.snapshot_offset, 'it is not finished, and the updates after it are indexed'
    FROM snapshots s JOIN floors f ON f.history_floor = s.snapshot_offset WHERE s.finished_at IS NULL
    UNION ALL
    SELECT 'snapshots', '', 'its rows are stored, and which snapshot they are of is not'
    FROM floors f
    WHERE f.history_floor > 0 AND f.state_floor IS NOT NULL AND NOT EXISTS (SELECT FROM snapshots)
      AND (EXISTS (SELECT FROM created c WHERE c.ledger_offset <= f.history_floor)
        OR EXISTS (SELECT FROM reassignments r WHERE r.ledger_offset <= f.history_floor)
        OR EXISTS (SELECT FROM unknown_elements u WHERE u.ledger_offset <= f.history_floor))
    UNION ALL
    SELECT 'redactions', 'redaction ' || n.redaction, 'a later one is stored, and it is not'
    FROM generate_series(1, (SELECT max(r.redaction) FROM redactions r)) n (redaction)
    WHERE NOT EXISTS (SELECT FROM redactions r WHERE r.redaction = n.redaction)
    UNION ALL
    SELECT 'redactions', 'redaction ' || r.redaction, 'it came with update ' || r.of_update || ', which is not redacted'
    FROM redactions r
    WHERE r.of_update IS NOT NULL AND NOT EXISTS (SELECT FROM redactions u WHERE u.kind = 'update' AND u.id = r.of_update)
)
SELECT f.relation::text AS relation, f.name::text AS name, f.says::text AS says FROM found f ORDER BY 1, 2, 3;
