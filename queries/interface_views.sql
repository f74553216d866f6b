-- name: InterfaceViewsCopy :copyfrom
INSERT INTO indexer.interface_views (ledger_offset, node_id, ordinal, contract_id, interface_id, synchronizer_ref, record_time,
    view_value, status_code, status_message, status_details, implementation_package_id, extra)
VALUES (@ledger_offset, @node_id, @ordinal, @contract_id, @interface_id, @synchronizer_ref, @record_time,
    @view_value, @status_code, @status_message, @status_details, @implementation_package_id, @extra);
