-- name: ColumnTypes :many
-- The columns of some tables with their types' names, in the tables' order.
SELECT c.relname::text AS relation, a.attname::text AS name, t.typname::text AS type
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = current_schema() AND c.relname::text = ANY (@relations::text[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum;

-- name: UpdateOffsets :many
-- The offsets of an update id, up to the watermark. No constraint makes the id unique.
SELECT u.ledger_offset FROM updates u
WHERE u.update_id = @update_id AND u.ledger_offset + 0 <= (SELECT watermark()) ORDER BY u.ledger_offset;
