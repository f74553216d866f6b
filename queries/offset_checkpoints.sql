-- name: OffsetCheckpointsUpsert :many
-- Keeps the latest record time if a checkpoint repeats an offset. The arrays hold each offset and synchronizer once. Returns the
-- rows that were written.
INSERT INTO offset_checkpoints AS o (ledger_offset, synchronizer_ref, record_time, ordinal, extra)
SELECT unnest(@ledger_offsets::bigint[]), unnest(@synchronizer_refs::integer[]), unnest(@record_times::timestamptz[]), unnest(@ordinals::integer[]),
    unnest(@extras::jsonb[])
ON CONFLICT (ledger_offset, synchronizer_ref) DO UPDATE SET record_time = excluded.record_time, ordinal = excluded.ordinal, extra = excluded.extra
WHERE o.record_time < excluded.record_time
RETURNING ledger_offset, synchronizer_ref;
