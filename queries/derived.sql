-- What the database holds of the updates, for a comparison with the ledger and the catalog.

-- name: HeldSnapshot :one
-- Whether the rows of a snapshot are carried.
SELECT EXISTS (SELECT FROM snapshots s WHERE s.finished_at IS NOT NULL) AS snapshot;

-- name: HeldLost :one
-- The state table whose row is missing although other state tables have theirs. Empty: none.
SELECT coalesce((
    SELECT t.name
    FROM (VALUES ('checkpoints', EXISTS (SELECT FROM checkpoints c WHERE c.stream = 'updates')),
        ('floors', EXISTS (SELECT FROM floors f WHERE f.stream = 'updates'))) t (name, there)
    WHERE NOT t.there AND (EXISTS (SELECT FROM checkpoints_both c WHERE c.stream = 'updates') OR EXISTS (SELECT FROM floors_both)
        OR EXISTS (SELECT FROM coverage_both))
    ORDER BY t.name LIMIT 1
), '')::text AS lost;

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
