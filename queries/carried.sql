-- name: CarriedCreatedExists :one
SELECT EXISTS (
    SELECT FROM carried_created
    WHERE ledger_offset = @ledger_offset AND node_id = @node_id AND snapshot_offset = @snapshot_offset);

-- name: CarriedClear :exec
TRUNCATE carried_created, carried_interface_views, carried_reassignments, active_contracts,
    carried_unknown_elements;
