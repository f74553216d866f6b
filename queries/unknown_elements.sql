-- name: UnknownElementsCopy :copyfrom
INSERT INTO indexer.unknown_elements (ledger_offset, ordinal, carried, node_id, kind, synchronizer_ref, record_time, raw,
    workflow_id, entry_extra)
VALUES (@ledger_offset, @ordinal, @carried, @node_id, @kind, @synchronizer_ref, @record_time, @raw,
    @workflow_id, @entry_extra);
