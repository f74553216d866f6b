-- name: FloorsGet :one
SELECT f.history_floor, f.state_floor, coalesce(f.pruned_to, 0)::bigint AS pruned_to, coalesce(f.changed_to, '')::text AS changed_to
FROM floors f WHERE f.stream = @stream;

-- name: FloorsSet :exec
INSERT INTO floors (stream, history_floor, state_floor) VALUES (@stream, @history_floor, sqlc.narg('state_floor'))
ON CONFLICT (stream) DO UPDATE SET history_floor = excluded.history_floor, state_floor = excluded.state_floor, pruned_to = NULL;
