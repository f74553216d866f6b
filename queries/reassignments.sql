-- name: ReassignmentsCopy :copyfrom
INSERT INTO indexer.reassignments (ledger_offset, node_id, kind, contract_id, template_ref, synchronizer_ref, record_time,
    reassignment_id, source_ref, target_ref, submitter, reassignment_counter, assignment_exclusivity, witness_parties_ref, extra)
VALUES (@ledger_offset, @node_id, @kind, @contract_id, @template_ref, @synchronizer_ref, @record_time,
    @reassignment_id, @source_ref, @target_ref, @submitter, @reassignment_counter, @assignment_exclusivity, @witness_parties_ref, @extra);
