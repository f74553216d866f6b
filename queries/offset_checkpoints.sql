-- name: OffsetCheckpointsUpsert :exec
-- Keeps the latest record time if a checkpoint repeats an offset. The arrays hold each offset and synchronizer once.
INSERT INTO offset_checkpoints AS o (ledger_offset, synchronizer_ref, record_time, ordinal, extra, exact)
SELECT unnest(@ledger_offsets::bigint[]), unnest(@synchronizer_refs::integer[]), unnest(@record_times::timestamptz[]), unnest(@ordinals::integer[]),
    unnest(@extras::jsonb[]), unnest(@exacts::jsonb[])
ON CONFLICT (ledger_offset, synchronizer_ref) DO UPDATE SET record_time = excluded.record_time, ordinal = excluded.ordinal, extra = excluded.extra,
    exact = excluded.exact
WHERE o.record_time < excluded.record_time;
