-- name: OffsetCheckpointUpsert :execrows
-- A checkpoint may repeat an offset: the latest record time stays.
INSERT INTO indexer.offset_checkpoints AS o (ledger_offset, synchronizer_ref, record_time, ordinal, extra)
VALUES (@ledger_offset, @synchronizer_ref, @record_time, @ordinal, @extra)
ON CONFLICT (ledger_offset, synchronizer_ref) DO UPDATE SET record_time = excluded.record_time, ordinal = excluded.ordinal, extra = excluded.extra
WHERE o.record_time < excluded.record_time;
