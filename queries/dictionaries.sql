-- name: TemplateList :many
SELECT template_ref, template_id, package_name, representative_package_id FROM indexer.templates;

-- name: TemplateInsert :exec
-- Numbers a new template. The caller holds the dictionaries' lock.
INSERT INTO indexer.templates (template_ref, template_id, package_id, package_name, module_name, entity_name, representative_package_id)
SELECT coalesce(max(t.template_ref), 0) + 1, @template_id, @package_id, @package_name, @module_name, @entity_name, sqlc.narg('representative_package_id')
FROM indexer.templates t
ON CONFLICT DO NOTHING;

-- name: SynchronizerList :many
SELECT synchronizer_ref, synchronizer_id FROM indexer.synchronizers;

-- name: SynchronizerInsert :exec
-- Numbers a new synchronizer. The caller holds the dictionaries' lock.
INSERT INTO indexer.synchronizers (synchronizer_ref, synchronizer_id)
SELECT coalesce(max(s.synchronizer_ref), 0) + 1, @synchronizer_id FROM indexer.synchronizers s
ON CONFLICT DO NOTHING;

-- name: DictionariesLock :exec
LOCK TABLE indexer.templates, indexer.synchronizers IN SHARE ROW EXCLUSIVE MODE;
