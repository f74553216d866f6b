-- name: TaskSucceeded :exec
INSERT INTO tasks (task, succeeded_at) VALUES (@task, now())
ON CONFLICT (task) DO UPDATE SET succeeded_at = excluded.succeeded_at;

-- name: TaskFailed :exec
INSERT INTO tasks (task, failed_at, failure) VALUES (@task, now(), @failure)
ON CONFLICT (task) DO UPDATE SET failed_at = excluded.failed_at, failure = excluded.failure;

-- name: TaskList :many
SELECT task, succeeded_at, failed_at, failure FROM tasks ORDER BY task;

-- name: TasksClear :exec
-- Removes what the background tasks stored. There are no look-ups to remove: it runs before updates are indexed.
TRUNCATE tasks, packages, vetting_states, vetted_packages, vetting_changes;
