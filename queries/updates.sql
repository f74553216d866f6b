-- name: UpdateLast :one
-- The last update at or below an offset, and not one of history that was filled in below the floor: something that is not stored
-- may follow that.
SELECT ledger_offset, coalesce(update_id, '')::text AS update_id FROM updates
WHERE ledger_offset <= @up_to AND ledger_offset > coalesce((SELECT f.history_floor FROM floors f WHERE f.stream = 'updates'), 0)
ORDER BY ledger_offset DESC LIMIT 1;

-- name: UpdateRecordTime :one
-- An update of an unknown kind may have none.
SELECT record_time FROM updates WHERE ledger_offset <= @up_to AND record_time IS NOT NULL ORDER BY ledger_offset DESC LIMIT 1;
