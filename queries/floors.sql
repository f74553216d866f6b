-- name: FloorsGet :one
SELECT history_floor, state_floor FROM indexer.floors WHERE stream = @stream;

-- name: FloorsSet :exec
INSERT INTO indexer.floors (stream, history_floor, state_floor) VALUES (@stream, @history_floor, sqlc.narg('state_floor'))
ON CONFLICT (stream) DO UPDATE SET history_floor = excluded.history_floor, state_floor = excluded.state_floor;
