-- name: OffsetCheckpointsUpsert :many
-- A checkpoint may repeat an offset: the latest record time stays. No offset and synchronizer stands twice in the lists.
-- Returns what was kept.
INSERT INTO offset_checkpoints AS o (ledger_offset, synchronizer_ref, record_time, ordinal, extra)
SELECT unnest(@ledger_offsets::bigint[]), unnest(@synchronizer_refs::integer[]), unnest(@record_times::timestamptz[]), unnest(@ordinals::integer[]),
    unnest(@extras::jsonb[])
ON CONFLICT (ledger_offset, synchronizer_ref) DO UPDATE SET record_time = excluded.record_time, ordinal = excluded.ordinal, extra = excluded.extra
WHERE o.record_time < excluded.record_time
RETURNING ledger_offset, synchronizer_ref;
