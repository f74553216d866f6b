-- name: UpdateLast :one
-- The last update up to an offset.
SELECT ledger_offset, coalesce(update_id, '')::text AS update_id FROM updates
WHERE ledger_offset <= @up_to
ORDER BY ledger_offset DESC LIMIT 1;

-- name: UpdateRecordTime :one
-- The last record time up to an offset. An update of an unknown kind may have none.
SELECT (SELECT u.record_time FROM updates u WHERE u.ledger_offset <= @up_to AND u.record_time IS NOT NULL ORDER BY u.ledger_offset DESC LIMIT 1)::timestamptz AS record_time;

-- name: UpdateRefs :many
-- The next updates after an offset up to another one, shown or not.
SELECT u.ledger_offset, coalesce(u.update_id, '')::text AS update_id, coalesce(s.synchronizer_id, '')::text AS synchronizer_id, u.record_time
FROM updates u LEFT JOIN synchronizers s ON s.synchronizer_ref = u.synchronizer_ref
WHERE u.ledger_offset > @after AND u.ledger_offset <= @up_to ORDER BY u.ledger_offset LIMIT @most::bigint;

-- name: UpdateRefsByID :many
-- The updates after an offset that have one of some ids.
SELECT u.ledger_offset, i.update_id::text AS update_id, coalesce(s.synchronizer_id, '')::text AS synchronizer_id, u.record_time
FROM unnest(@update_ids::text[]) i (update_id) JOIN updates u ON u.update_id = i.update_id AND u.ledger_offset > @after
LEFT JOIN synchronizers s ON s.synchronizer_ref = u.synchronizer_ref;

-- name: UpdateOffset :one
-- The offset of an update. No row: it is not stored.
SELECT u.ledger_offset FROM updates u WHERE u.update_id = @update_id::text LIMIT 1;
