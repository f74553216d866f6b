-- name: CheckpointGet :one
SELECT ledger_offset, event_id, updated_at FROM checkpoints WHERE stream = @stream;

-- name: CheckpointStart :one
-- Sets a stream's first checkpoint. 0: it has one already.
WITH started AS (
    INSERT INTO checkpoints_both (stream, ledger_offset, updated_at, is_copy, digest)
    SELECT r.*, c.is_copy, row_digest(r)
    FROM (SELECT @stream::text AS stream, @ledger_offset::bigint AS ledger_offset, now() AS updated_at) r, unnest('{f,t}'::boolean[]) c (is_copy)
    ON CONFLICT DO NOTHING RETURNING is_copy
)
SELECT count(*) FROM started WHERE NOT is_copy;

-- name: CheckpointAdvance :one
-- Moves the watermark by compare-and-swap. 0: it is not where the writer expected it, or would not move forward.
WITH moved AS (
    UPDATE checkpoints_both c SET ledger_offset = @to_offset::bigint, updated_at = now(),
        digest = changed_digest(c, jsonb_build_object('ledger_offset', @to_offset::bigint, 'updated_at', now()))
    WHERE c.stream = @stream AND c.ledger_offset = @from_offset::bigint AND c.ledger_offset < @to_offset::bigint RETURNING c.is_copy
)
SELECT count(*) FROM moved WHERE NOT is_copy;

-- name: CheckpointSet :exec
INSERT INTO checkpoints_both AS k (stream, ledger_offset, updated_at, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT @stream::text AS stream, @ledger_offset::bigint AS ledger_offset, now() AS updated_at) r, unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT (stream, is_copy) DO UPDATE
SET ledger_offset = excluded.ledger_offset, event_id = NULL, updated_at = excluded.updated_at, digest = excluded.digest;
