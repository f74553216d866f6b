-- name: CreatedCopy :copyfrom
INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, synchronizer_ref, record_time, created_at,
    acs_delta, payload, contract_key, contract_key_hash, signatories, observers, witness_parties, created_event_blob, extra)
VALUES (@ledger_offset, @node_id, @origin, @contract_id, @template_ref, @synchronizer_ref, @record_time, @created_at,
    @acs_delta, @payload, @contract_key, @contract_key_hash, @signatories, @observers, @witness_parties, @created_event_blob, @extra);
