-- name: FloorsGet :one
-- projected_from: active_contracts and lifetimes follow from what was active at this offset and from the events after it.
SELECT f.history_floor, f.state_floor, coalesce(f.pruned_to, 0)::bigint AS pruned_to, coalesce(f.changed_to, '')::text AS changed_to,
    EXISTS (SELECT FROM covered_scopes c WHERE NOT c.complete)::boolean AS incomplete,
    coalesce(f.state_floor, (SELECT x.projected_from FROM fill x), f.history_floor)::bigint AS projected_from
FROM floors f WHERE f.stream = @stream;

-- name: FloorsSet :exec
-- Clears waiting_snapshot unless that snapshot can still lower the state floor.
INSERT INTO floors_both AS f (stream, history_floor, state_floor, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT @stream::text AS stream, @history_floor::bigint AS history_floor, sqlc.narg('state_floor')::bigint AS state_floor) r,
    unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT (stream, is_copy) DO UPDATE SET history_floor = excluded.history_floor, state_floor = excluded.state_floor, pruned_to = NULL,
    waiting_snapshot = CASE WHEN f.waiting_snapshot >= excluded.state_floor THEN NULL ELSE f.waiting_snapshot END,
    digest = CASE WHEN f.waiting_snapshot IS NULL OR f.waiting_snapshot >= excluded.state_floor THEN excluded.digest
        ELSE changed_digest(f, jsonb_build_object('history_floor', excluded.history_floor, 'state_floor', excluded.state_floor, 'pruned_to', NULL::bigint)) END;
