-- Numbers of names and lists of parties.

-- name: TemplateList :many
SELECT t.template_ref, t.template_id, t.package_name, t.representative_package_id FROM templates t ORDER BY t.template_ref;

-- name: TemplateInsert :exec
-- Gives a new template a number. The caller holds the dictionaries' lock.
INSERT INTO templates (template_ref, template_id, package_id, package_name, module_name, entity_name, representative_package_id)
SELECT coalesce(max(t.template_ref), 0) + 1, @template_id::text, @package_id::text, @package_name::text, @module_name::text, @entity_name::text,
    sqlc.narg('representative_package_id')::text
FROM templates t
ON CONFLICT DO NOTHING;

-- name: SynchronizerList :many
SELECT s.synchronizer_ref, s.synchronizer_id FROM synchronizers s ORDER BY s.synchronizer_ref;

-- name: SynchronizerInsert :exec
-- Gives a new synchronizer a number. The caller holds the dictionaries' lock.
INSERT INTO synchronizers (synchronizer_ref, synchronizer_id)
SELECT coalesce(max(s.synchronizer_ref), 0) + 1, @synchronizer_id::text FROM synchronizers s
ON CONFLICT DO NOTHING;

-- name: DictionariesLock :exec
LOCK TABLE templates, synchronizers IN SHARE ROW EXCLUSIVE MODE;

-- name: PartyListsFind :many
-- The numbers of lists of parties, which are passed as texts of arrays, in the same order. 0: a list has none yet. Each list is
-- looked up on its own, so that the planner uses the index whatever its statistics.
SELECT w.place::integer AS place,
    coalesce((SELECT p.party_list_ref FROM party_lists p WHERE p.parties = w.list::text[]), 0)::integer AS party_list_ref
FROM (SELECT unnest(@places::integer[]) AS place, unnest(@lists::text[]) AS list) w;

-- name: PartyListsAdd :many
-- Gives numbers, in order, to those lists of parties that have none, and returns these. The caller holds the lock for adding.
WITH numbered AS (
    SELECT w.place, w.list::text[] AS parties,
        ((SELECT coalesce(max(x.party_list_ref), 0) FROM party_lists x) + row_number() OVER (ORDER BY w.place))::integer AS party_list_ref
    FROM (SELECT unnest(@places::integer[]) AS place, unnest(@lists::text[]) AS list) w
    WHERE NOT EXISTS (SELECT FROM party_lists p WHERE p.parties = w.list::text[] OFFSET 0)
), added AS (
    INSERT INTO party_lists (party_list_ref, parties) SELECT n.party_list_ref, n.parties FROM numbered n
)
SELECT n.place::integer AS place, n.party_list_ref FROM numbered n;
