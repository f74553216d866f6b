-- name: CheckpointGet :one
SELECT ledger_offset, event_id, updated_at FROM checkpoints WHERE stream = @stream;

-- name: CheckpointStart :execrows
-- Gives a stream its first checkpoint. No row: it has one already.
INSERT INTO checkpoints (stream, ledger_offset) VALUES (@stream, @ledger_offset::bigint) ON CONFLICT DO NOTHING;

-- name: CheckpointAdvance :execrows
-- Moves the watermark by compare-and-swap. No row: it is not where the writer saw it, or would not move forward.
UPDATE checkpoints SET ledger_offset = @to_offset::bigint, updated_at = now()
WHERE stream = @stream AND ledger_offset = @from_offset::bigint AND ledger_offset < @to_offset::bigint;
