-- name: ArchivedCopy :copyfrom
INSERT INTO indexer.archived (ledger_offset, node_id, contract_id, template_ref, synchronizer_ref, record_time, witness_parties_ref,
    implemented_interfaces, extra)
VALUES (@ledger_offset, @node_id, @contract_id, @template_ref, @synchronizer_ref, @record_time, @witness_parties_ref,
    @implemented_interfaces, @extra);
