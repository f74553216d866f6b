-- Numbers of names and lists of parties. If a row is damaged its copy says what the number means: a name never gets another number.

-- name: TemplateList :many
SELECT DISTINCT ON (t.template_ref) t.template_ref, t.template_id, t.package_name, t.representative_package_id
FROM templates_both t WHERE is_intact(t) ORDER BY t.template_ref;

-- name: TemplateInsert :exec
-- Gives a new template a number. The caller holds the dictionaries' lock.
INSERT INTO templates_both (template_ref, template_id, package_id, package_name, module_name, entity_name, representative_package_id, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (
    SELECT coalesce(max(t.template_ref), 0) + 1 AS template_ref, @template_id::text AS template_id, @package_id::text AS package_id,
        @package_name::text AS package_name, @module_name::text AS module_name, @entity_name::text AS entity_name,
        sqlc.narg('representative_package_id')::text AS representative_package_id
    FROM templates_both t
) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT DO NOTHING;

-- name: SynchronizerList :many
SELECT DISTINCT ON (s.synchronizer_ref) s.synchronizer_ref, s.synchronizer_id
FROM synchronizers_both s WHERE is_intact(s) ORDER BY s.synchronizer_ref;

-- name: SynchronizerInsert :exec
-- Gives a new synchronizer a number. The caller holds the dictionaries' lock.
INSERT INTO synchronizers_both (synchronizer_ref, synchronizer_id, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (
    SELECT coalesce(max(s.synchronizer_ref), 0) + 1 AS synchronizer_ref, @synchronizer_id::text AS synchronizer_id FROM synchronizers_both s
) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT DO NOTHING;

-- name: DictionariesLock :exec
LOCK TABLE templates, synchronizers IN SHARE ROW EXCLUSIVE MODE;

-- name: PartyListsFind :many
-- The numbers of lists of parties, which are passed as texts of arrays, in the same order. 0: a list has none yet. Each list is
-- looked up on its own, so that the planner uses the index whatever its statistics. Without + 0 it would search for the lowest number
-- among all of them, in their order.
SELECT w.place::integer AS place,
    coalesce((SELECT p.party_list_ref FROM party_lists p WHERE p.parties = w.list::text[]),
        (SELECT min(p.party_list_ref + 0) FROM party_lists_copy p WHERE p.parties = w.list::text[] AND is_intact(p)), 0)::integer AS party_list_ref
FROM (SELECT unnest(@places::integer[]) AS place, unnest(@lists::text[]) AS list) w;

-- name: PartyListsAdd :many
-- Gives numbers, in order, to those lists of parties that have none, and returns these. The caller holds the lock for adding.
WITH numbered AS (
    SELECT w.place, w.list::text[] AS parties,
        ((SELECT coalesce(max(x.party_list_ref), 0) FROM party_lists_both x) + row_number() OVER (ORDER BY w.place))::integer AS party_list_ref
    FROM (SELECT unnest(@places::integer[]) AS place, unnest(@lists::text[]) AS list) w
    WHERE NOT EXISTS (SELECT FROM party_lists p WHERE p.parties = w.list::text[] OFFSET 0)
      AND NOT EXISTS (SELECT FROM party_lists_copy p WHERE p.parties = w.list::text[] AND is_intact(p) OFFSET 0)
), digested AS MATERIALIZED (
    SELECT r.party_list_ref, r.parties, row_digest(r) AS digest FROM (SELECT n.party_list_ref, n.parties FROM numbered n) r
), added AS (
    INSERT INTO party_lists_both (party_list_ref, parties, is_copy, digest)
    SELECT d.party_list_ref, d.parties, c.is_copy, d.digest FROM digested d, unnest('{f,t}'::boolean[]) c (is_copy)
)
SELECT n.place::integer AS place, n.party_list_ref FROM numbered n;
