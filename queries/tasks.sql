-- name: TaskSucceeded :exec
-- Which of both times is later says whether the task works, also where the clock was set back in between.
INSERT INTO tasks (task, succeeded_at) VALUES (@task, now())
ON CONFLICT (task) DO UPDATE SET succeeded_at = greatest(excluded.succeeded_at, tasks.failed_at + interval '1 microsecond');

-- name: TaskFailed :exec
INSERT INTO tasks (task, failed_at, failure) VALUES (@task, now(), @failure)
ON CONFLICT (task) DO UPDATE SET failed_at = greatest(excluded.failed_at, tasks.succeeded_at + interval '1 microsecond'), failure = excluded.failure;

-- name: TaskList :many
SELECT task, succeeded_at, failed_at, failure FROM tasks ORDER BY task;

-- name: TasksClear :exec
-- Removes what the background tasks stored. There are no look-ups to remove: it runs before updates are indexed.
TRUNCATE tasks, packages, vetting_states, vetted_packages, vetting_changes, hosting;
