-- name: CarriedCreatedExists :one
SELECT EXISTS (SELECT FROM carried_created WHERE ledger_offset = @ledger_offset AND node_id = @node_id);
