-- name: TemplateList :many
SELECT template_ref, template_id, package_name, representative_package_id FROM templates;

-- name: TemplateInsert :exec
-- Numbers a new template. The caller holds the dictionaries' lock.
INSERT INTO templates (template_ref, template_id, package_id, package_name, module_name, entity_name, representative_package_id)
SELECT coalesce(max(t.template_ref), 0) + 1, @template_id, @package_id, @package_name, @module_name, @entity_name, sqlc.narg('representative_package_id')
FROM templates t
ON CONFLICT DO NOTHING;

-- name: SynchronizerList :many
SELECT synchronizer_ref, synchronizer_id FROM synchronizers;

-- name: SynchronizerInsert :exec
-- Numbers a new synchronizer. The caller holds the dictionaries' lock.
INSERT INTO synchronizers (synchronizer_ref, synchronizer_id)
SELECT coalesce(max(s.synchronizer_ref), 0) + 1, @synchronizer_id FROM synchronizers s
ON CONFLICT DO NOTHING;

-- name: DictionariesLock :exec
LOCK TABLE templates, synchronizers IN SHARE ROW EXCLUSIVE MODE;

-- name: PartyListsFind :many
-- The numbers of lists of parties, which come as texts of arrays, by their places; 0: a list has none yet. Each is looked up by
-- itself, so that the index is used whatever the planner believes of the table.
SELECT w.place::integer AS place,
    coalesce((SELECT p.party_list_ref FROM party_lists p WHERE p.parties = w.list::text[]), 0)::integer AS party_list_ref
FROM (SELECT unnest(@places::integer[]) AS place, unnest(@lists::text[]) AS list) w;

-- name: PartyListsTurn :exec
-- Waits for the turn to add lists of parties, which lasts until the transaction ends. No lock of the table: what vacuums and
-- analyzes it would be interrupted again and again.
SELECT pg_advisory_xact_lock(@class::integer, 0);

-- name: PartyListsAdd :many
-- Numbers lists of parties in the order of their places, but for those that have a number, and tells which it gave. The caller
-- has the turn.
WITH numbered AS (
    SELECT w.place, w.list::text[] AS parties,
        (SELECT coalesce(max(x.party_list_ref), 0) FROM party_lists x) + row_number() OVER (ORDER BY w.place) AS party_list_ref
    FROM (SELECT unnest(@places::integer[]) AS place, unnest(@lists::text[]) AS list) w
    WHERE NOT EXISTS (SELECT FROM party_lists p WHERE p.parties = w.list::text[] OFFSET 0)
), added AS (
    INSERT INTO party_lists (party_list_ref, parties) SELECT n.party_list_ref, n.parties FROM numbered n
)
SELECT n.place::integer AS place, n.party_list_ref::integer AS party_list_ref FROM numbered n;
