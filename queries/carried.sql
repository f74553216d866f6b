-- name: CarriedCreatedCopy :copyfrom
INSERT INTO indexer.carried_created (ledger_offset, node_id, snapshot_offset, contract_id, template_ref, synchronizer_ref, workflow_id,
    reassignment_counter, created_at, acs_delta, payload, contract_key, contract_key_hash, signatories_ref, observers_ref,
    witness_parties_ref, created_event_blob, extra, entry_extra)
VALUES (@ledger_offset, @node_id, @snapshot_offset, @contract_id, @template_ref, @synchronizer_ref, @workflow_id,
    @reassignment_counter, @created_at, @acs_delta, @payload, @contract_key, @contract_key_hash, @signatories_ref, @observers_ref,
    @witness_parties_ref, @created_event_blob, @extra, @entry_extra);

-- name: CarriedCreatedExists :one
SELECT EXISTS (SELECT FROM indexer.carried_created WHERE ledger_offset = @ledger_offset AND node_id = @node_id);

-- name: CarriedInterfaceViewsCopy :copyfrom
INSERT INTO indexer.carried_interface_views (ledger_offset, node_id, ordinal, snapshot_offset, contract_id, interface_id, synchronizer_ref,
    view_value, status_code, status_message, status_details, implementation_package_id, extra)
VALUES (@ledger_offset, @node_id, @ordinal, @snapshot_offset, @contract_id, @interface_id, @synchronizer_ref,
    @view_value, @status_code, @status_message, @status_details, @implementation_package_id, @extra);

-- name: CarriedReassignmentsCopy :copyfrom
INSERT INTO indexer.carried_reassignments (ledger_offset, node_id, snapshot_offset, kind, contract_id, template_ref, synchronizer_ref,
    workflow_id, reassignment_id, source_ref, target_ref, submitter, reassignment_counter, assignment_exclusivity,
    witness_parties_ref, created_offset, created_node_id, extra, entry_extra)
VALUES (@ledger_offset, @node_id, @snapshot_offset, @kind, @contract_id, @template_ref, @synchronizer_ref,
    @workflow_id, @reassignment_id, @source_ref, @target_ref, @submitter, @reassignment_counter, @assignment_exclusivity,
    @witness_parties_ref, @created_offset, @created_node_id, @extra, @entry_extra);
