-- name: UnknownElementsCopy :copyfrom
INSERT INTO indexer.unknown_elements (ledger_offset, ordinal, carried, node_id, kind, synchronizer_ref, record_time, raw)
VALUES (@ledger_offset, @ordinal, @carried, @node_id, @kind, @synchronizer_ref, @record_time, @raw);
