-- What an export has beside the relations, and what an import makes of it.

-- name: ExportSeals :many
-- The windows of a stream that have a part of a range, and in the first range of the updates the snapshot's. What of a window was repaired since waits to be compared.
SELECT * FROM verifications v
WHERE (v.stream = @stream AND v.from_exclusive < @to_inclusive AND v.to_inclusive > @from_exclusive::bigint
       OR v.stream = 'snapshot' AND @stream = 'updates' AND @from_exclusive::bigint = 0)
  AND (v.repaired_at IS NULL OR v.repaired_at <= v.verified_at)
ORDER BY v.stream, v.from_exclusive;

-- name: ExportRedactions :many
SELECT r.redaction, r.kind, r.id, r.of_update, r.redacted_at, r.redacted_by, r.reason, r.erased FROM redactions r ORDER BY r.redaction;

-- name: ImportRedaction :exec
INSERT INTO redactions_both (redaction, kind, id, of_update, redacted_at, redacted_by, reason, erased, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (
    SELECT @redaction::bigint AS redaction, @kind::text AS kind, @id::text AS id, sqlc.narg('of_update')::text AS of_update,
        @redacted_at::timestamptz AS redacted_at, @redacted_by::text AS redacted_by, @reason::text AS reason, @erased::jsonb AS erased
) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT DO NOTHING;

-- name: ImportPrunedSnapshot :exec
-- Says of the snapshot that is carried that pruning made its rows.
UPDATE snapshots_both s SET pruned = true, mixed = sqlc.narg('mixed')::boolean,
    digest = changed_digest(s, jsonb_build_object('pruned', true, 'mixed', sqlc.narg('mixed')::boolean))
WHERE s.snapshot_offset = @snapshot_offset AND s.finished_at IS NOT NULL;

-- name: ImportPrunedFloors :exec
UPDATE floors_both f SET pruned_to = @pruned_to::bigint, digest = changed_digest(f, jsonb_build_object('pruned_to', @pruned_to::bigint))
WHERE f.stream = 'updates';
