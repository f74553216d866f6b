-- name: FloorsGet :one
SELECT f.history_floor, f.state_floor, coalesce(f.pruned_to, 0)::bigint AS pruned_to, coalesce(f.changed_to, '')::text AS changed_to
FROM floors f WHERE f.stream = @stream;

-- name: FloorsSet :exec
INSERT INTO floors_both AS f (stream, history_floor, state_floor, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT @stream::text AS stream, @history_floor::bigint AS history_floor, sqlc.narg('state_floor')::bigint AS state_floor) r,
    unnest('{f,t}'::boolean[]) c (is_copy)
ON CONFLICT (stream, is_copy) DO UPDATE SET history_floor = excluded.history_floor, state_floor = excluded.state_floor, pruned_to = NULL,
    digest = excluded.digest;
