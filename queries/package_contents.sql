-- name: PackageWantedList :many
-- Packages that are named, whose content is not here, and that are due: those of templates, of interfaces, those that are vetted (before their
-- first event, if the participant has them), and what their types refer to. No wait is longer than a day, unless the clock was set back since.
SELECT w.package_id::text FROM (
    SELECT t.package_id FROM templates t
    UNION SELECT t.representative_package_id FROM templates t
    UNION SELECT split_part(i.interface_id, ':', 1) FROM template_interfaces i
    UNION SELECT v.package_id FROM vetted_packages v JOIN packages p ON p.package_id = v.package_id WHERE p.package_name <> ''
    UNION SELECT unnest(c.needs) FROM package_contents c
) w
WHERE w.package_id ~ '^[0-9a-f]{64}$'
    AND NOT EXISTS (SELECT FROM package_contents c WHERE c.package_id = w.package_id)
    AND NOT EXISTS (SELECT FROM package_tries n WHERE n.package_id = w.package_id AND n.next_at > now() AND n.next_at <= now() + interval '1 day')
ORDER BY w.package_id LIMIT sqlc.arg(most);

-- name: PackageCompletableList :many
-- Packages of which something was missing that is here now. What is damaged is as good as missing, and would be found missing again.
SELECT c.package_id FROM package_contents c
WHERE EXISTS (SELECT FROM package_contents o WHERE o.package_id = ANY (c.needs) AND encode(sha256(o.content), 'hex') = o.package_id) ORDER BY c.package_id;

-- name: PackageIsCompletable :one
SELECT EXISTS (
    SELECT FROM package_contents c JOIN package_contents o ON o.package_id = ANY (c.needs) AND encode(sha256(o.content), 'hex') = o.package_id
    WHERE c.package_id = @package_id
);

-- name: PackageContentGet :one
SELECT content FROM package_contents WHERE package_id = @package_id;

-- name: PackageContentList :many
SELECT package_id, package_name, package_version FROM package_contents ORDER BY package_id;

-- name: PackageContentUpsert :exec
INSERT INTO package_contents (package_id, package_name, package_version, language, upgrades, needs, failure, content)
VALUES (@package_id, @package_name, @package_version, @language, @upgrades, @needs, @failure, @content)
ON CONFLICT (package_id) DO UPDATE SET package_name = excluded.package_name, package_version = excluded.package_version, language = excluded.language,
    upgrades = excluded.upgrades, needs = excluded.needs, failure = excluded.failure, content = excluded.content;

-- name: PackageSchemaList :many
-- The other schemas of this database in which an indexer keeps packages that this role may read.
SELECT n.nspname::text AS name
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'package_contents' AND c.relkind = 'r' AND n.nspname <> @own::text
    AND EXISTS (SELECT FROM pg_catalog.pg_class l WHERE l.relnamespace = n.oid AND l.relname = 'leadership')
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1;

-- name: PackageDrop :exec
-- Removes what follows from a package, and that it could not be had. with_content: the package too.
WITH definitions AS (
    DELETE FROM package_definitions d WHERE d.package_id = @package_id
), choices AS (
    DELETE FROM package_choices c WHERE c.package_id = @package_id
), fields AS (
    DELETE FROM package_fields f WHERE f.package_id = @package_id
), tries AS (
    DELETE FROM package_tries t WHERE t.package_id = @package_id
)
DELETE FROM package_contents p WHERE p.package_id = @package_id AND @with_content::boolean;

-- name: PackageDefinitionList :many
SELECT * FROM package_definitions WHERE package_id = @package_id;

-- name: PackageChoiceList :many
SELECT * FROM package_choices WHERE package_id = @package_id;

-- name: PackageFieldList :many
SELECT * FROM package_fields WHERE package_id = @package_id;

-- name: PackageTryUpsert :exec
-- The wait doubles from an hour to a day.
INSERT INTO package_tries (package_id, tries, next_at, failure) VALUES (@package_id, 1, now() + interval '1 hour', @failure)
ON CONFLICT (package_id) DO UPDATE SET tries = package_tries.tries + 1,
    next_at = now() + least(interval '1 day', interval '1 hour' * power(2, least(package_tries.tries, 10))), failure = excluded.failure;

-- name: NamedPackageList :many
-- The packages of which events name templates or interfaces, with the name that a template's events give them.
SELECT n.package_id, max(n.package_name)::text AS package_name FROM (
    SELECT t.package_id, t.package_name FROM templates t WHERE t.package_id NOT LIKE '#%' -- a name instead of an id
    UNION ALL SELECT split_part(i.interface_id, ':', 1), '' FROM template_interfaces i
) n
GROUP BY n.package_id ORDER BY 2, 1;

-- name: TypedViewsLock :exec
-- Lets one command at a time make views.
LOCK TABLE typed_views IN SHARE ROW EXCLUSIVE MODE;

-- name: TypedViewList :many
SELECT * FROM typed_views
WHERE view_schema = coalesce(sqlc.narg('view_schema')::text, view_schema) AND package_name = coalesce(sqlc.narg('package_name')::text, package_name)
    AND module_name = coalesce(sqlc.narg('module_name')::text, module_name) AND entity_name = coalesce(sqlc.narg('entity_name')::text, entity_name)
ORDER BY view_schema, view_name;

-- name: TypedViewUpsert :exec
INSERT INTO typed_views (view_schema, view_name, kind, package_name, module_name, entity_name, choice, columns)
VALUES (@view_schema, @view_name, @kind, @package_name, @module_name, @entity_name, @choice, @columns)
ON CONFLICT (view_schema, view_name) DO UPDATE SET columns = excluded.columns, made_at = now();

-- name: TypedViewDelete :exec
DELETE FROM typed_views WHERE view_schema = @view_schema AND view_name = @view_name;
