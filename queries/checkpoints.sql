-- name: CheckpointGet :one
SELECT ledger_offset, event_id, updated_at FROM checkpoints WHERE stream = @stream;

-- name: CheckpointStart :execrows
-- Sets a stream's first checkpoint. 0: it has one already.
INSERT INTO checkpoints (stream, ledger_offset) VALUES (@stream, @ledger_offset::bigint)
ON CONFLICT DO NOTHING;

-- name: CheckpointAdvance :execrows
-- Moves the watermark by compare-and-swap. 0: it is not where the writer expected it, or would not move forward.
UPDATE checkpoints c SET ledger_offset = @to_offset::bigint, updated_at = now()
WHERE c.stream = @stream AND c.ledger_offset = @from_offset::bigint AND c.ledger_offset < @to_offset::bigint;

-- name: CheckpointSet :exec
INSERT INTO checkpoints (stream, ledger_offset) VALUES (@stream, @ledger_offset::bigint)
ON CONFLICT (stream) DO UPDATE SET ledger_offset = excluded.ledger_offset, event_id = NULL, updated_at = excluded.updated_at;
