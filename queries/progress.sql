-- name: ProgressPut :exec
INSERT INTO progress (stream, unit, began_at, from_exclusive, reached, to_inclusive, done, per_second, time_left, updated_at)
VALUES (@stream, @unit, @began_at, @from_exclusive, @reached, sqlc.narg(to_inclusive), @done, (@per_second::float8)::numeric, sqlc.narg(time_left), clock_timestamp())
ON CONFLICT (stream) DO UPDATE SET unit = excluded.unit, began_at = excluded.began_at, from_exclusive = excluded.from_exclusive,
    reached = excluded.reached, to_inclusive = excluded.to_inclusive, done = excluded.done, per_second = excluded.per_second,
    time_left = excluded.time_left, updated_at = excluded.updated_at;

-- name: ProgressRemove :exec
DELETE FROM progress WHERE stream = @stream;

-- name: ProgressList :many
-- The work under way: a row that was not updated for 30 seconds was left behind, as was one from before the clock was set back.
SELECT stream, unit, began_at, from_exclusive, reached, to_inclusive, done, per_second::float8 AS per_second, time_left, updated_at,
    greatest(clock_timestamp() - updated_at, interval '0')::interval AS age
FROM progress
WHERE updated_at BETWEEN clock_timestamp() - interval '30 seconds' AND clock_timestamp() + interval '30 seconds'
ORDER BY stream;
