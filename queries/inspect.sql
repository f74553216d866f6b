-- name: InspectServer :one
-- The server, and the session's user and rights. Works in an empty database.
SELECT current_setting('server_version_num')::int AS version_number,
    current_setting('server_version')::text AS version,
    session_user::text AS username,
    current_setting('server_encoding')::text AS encoding,
    pg_is_in_recovery() AS in_recovery,
    current_setting('default_transaction_read_only')::boolean AS read_only,
    clock_timestamp()::timestamptz AS clock,
    r.rolsuper AS superuser,
    has_database_privilege(d.oid, 'CREATE') AS may_create_schemas,
    pg_get_userbyid(d.datdba)::text AS database_owner,
    -- The connections that this user can still open: the least of what server, role and database allow.
    least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true)::int, 0)
            - (SELECT count(*)::int FROM pg_catalog.pg_stat_activity a WHERE a.backend_type = 'client backend'),
        CASE WHEN r.rolconnlimit >= 0 AND NOT r.rolsuper
            THEN r.rolconnlimit - (SELECT count(*)::int FROM pg_catalog.pg_stat_activity a WHERE a.usesysid = r.oid) END,
        CASE WHEN d.datconnlimit >= 0 AND NOT r.rolsuper
            THEN d.datconnlimit - (SELECT count(*)::int FROM pg_catalog.pg_stat_activity a WHERE a.datid = d.oid) END
    )::int AS free_connections
FROM pg_catalog.pg_roles r, pg_catalog.pg_database d
WHERE r.rolname = session_user AND d.datname = current_database();

-- name: InspectSettings :many
-- Settings in this session, with their origin ("user", "database", "configuration file").
SELECT s.name::text AS name, s.setting::text AS value, coalesce(s.unit, '')::text AS unit, s.source::text AS source
FROM pg_catalog.pg_settings s WHERE s.name = ANY (@names::text[]);

-- name: InspectSchemas :many
-- Those of some schemas that exist.
SELECT n.nspname::text AS name, pg_get_userbyid(n.nspowner)::text AS owner, pg_has_role(n.nspowner, 'USAGE') AS owned
FROM pg_catalog.pg_namespace n WHERE n.nspname::text = ANY (@schemas::text[]) ORDER BY 1;

-- name: InspectRelations :one
-- The number of a schema's relations, indexes included, and one of them that this user does not own; empty: none. Only a table's
-- owner can attach partitions to it.
SELECT count(*) AS relations, coalesce(min(c.relname) FILTER (WHERE NOT pg_has_role(c.relowner, 'USAGE')), '')::text AS foreign_relation
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname::text = @schema::text AND c.relkind IN ('r', 'p', 'i', 'I');

-- name: InspectVersionTable :one
-- Whether the schema's version is recorded, and may be read. It uses the catalogs, because to_regclass fails without the right to
-- use the schema.
SELECT coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')), false)::boolean AS readable
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname::text = @schema::text AND c.relname = 'schema_version';

-- name: InspectViews :many
-- The schemas whose view updates reads this schema's table updates.
SELECT DISTINCT n.nspname::text AS name
FROM pg_catalog.pg_depend d
JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid
JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relname = 'updates' AND v.relkind = 'v'
JOIN pg_catalog.pg_namespace n ON n.oid = v.relnamespace
JOIN pg_catalog.pg_class t ON d.refclassid = 'pg_catalog.pg_class'::regclass AND t.oid = d.refobjid AND t.relname = 'updates'
JOIN pg_catalog.pg_namespace o ON o.oid = t.relnamespace AND o.nspname::text = @schema::text;

-- name: InspectPairs :many
-- The schemas in which tables of an indexer lie.
SELECT n.nspname::text AS name
FROM pg_catalog.pg_namespace n
WHERE (SELECT count(*) FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname IN ('schema_version', 'leadership', 'updates')) = 3
ORDER BY 1;
