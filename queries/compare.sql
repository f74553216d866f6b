-- name: ColumnTypes :many
-- The columns of our tables and the names of their types, in the order of the tables' columns.
SELECT c.relname::text AS relation, a.attname::text AS name, t.typname::text AS type
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = current_schema() AND c.relname::text = ANY (@relations::text[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum;

-- name: TemplateListWhole :many
SELECT template_ref, template_id, package_id, package_name, module_name, entity_name, representative_package_id FROM templates;

-- name: UpdateOffsets :many
-- Where an update is stored, up to the watermark. Nothing but the writer keeps an id from standing twice.
SELECT u.ledger_offset FROM updates u
WHERE u.update_id = @update_id AND u.ledger_offset + 0 <= (SELECT watermark()) ORDER BY u.ledger_offset;
