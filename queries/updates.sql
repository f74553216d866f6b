-- name: UpdatesCopy :copyfrom
INSERT INTO indexer.updates (ledger_offset, update_id, kind, synchronizer_ref, record_time, effective_at, command_id, workflow_id,
    trace_parent, trace_state, external_transaction_hash, transaction_hash, paid_traffic_cost, extra)
VALUES (@ledger_offset, @update_id, @kind, @synchronizer_ref, @record_time, @effective_at, @command_id, @workflow_id,
    @trace_parent, @trace_state, @external_transaction_hash, @transaction_hash, @paid_traffic_cost, @extra);

-- name: UpdateLast :one
-- The last update at or below an offset, and not one of history that was filled in below the floor: something that is not stored
-- may follow that.
SELECT ledger_offset, coalesce(update_id, '')::text AS update_id FROM indexer.updates
WHERE ledger_offset <= @up_to AND ledger_offset > coalesce((SELECT f.history_floor FROM indexer.floors f WHERE f.stream = 'updates'), 0)
ORDER BY ledger_offset DESC LIMIT 1;

-- name: UpdateRecordTime :one
-- An update of an unknown kind may have none.
SELECT record_time FROM indexer.updates WHERE ledger_offset <= @up_to AND record_time IS NOT NULL ORDER BY ledger_offset DESC LIMIT 1;
