-- name: TopologyEventsCopy :copyfrom
INSERT INTO indexer.topology_events (ledger_offset, node_id, kind, synchronizer_ref, record_time, party_id, participant_id, permission, extra)
VALUES (@ledger_offset, @node_id, @kind, @synchronizer_ref, @record_time, @party_id, @participant_id, @permission, @extra);
