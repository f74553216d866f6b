-- name: UpdateLast :one
-- The last update up to an offset, but none below the history floor: updates that are not stored may follow one that was filled in
-- there.
SELECT ledger_offset, coalesce(update_id, '')::text AS update_id FROM updates
WHERE ledger_offset <= @up_to AND ledger_offset > coalesce((SELECT f.history_floor FROM floors f WHERE f.stream = 'updates'), 0)
ORDER BY ledger_offset DESC LIMIT 1;

-- name: UpdateRecordTime :one
-- The last record time up to an offset. An update of an unknown kind may have none.
SELECT record_time FROM updates WHERE ledger_offset <= @up_to AND record_time IS NOT NULL ORDER BY ledger_offset DESC LIMIT 1;
