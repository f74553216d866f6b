-- name: CreatedCopy :copyfrom
INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, synchronizer_ref, record_time, created_at,
    acs_delta, payload, contract_key, contract_key_hash, signatories_ref, observers_ref, witness_parties_ref, created_event_blob, extra)
VALUES (@ledger_offset, @node_id, @origin, @contract_id, @template_ref, @synchronizer_ref, @record_time, @created_at,
    @acs_delta, @payload, @contract_key, @contract_key_hash, @signatories_ref, @observers_ref, @witness_parties_ref, @created_event_blob, @extra);
