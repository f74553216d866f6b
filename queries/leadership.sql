-- name: LeadershipHold :one
-- Keeps the epoch from being raised until the transaction ends. No row: somebody else leads.
SELECT epoch FROM indexer.leadership WHERE role = @role AND epoch = @epoch FOR SHARE;

-- name: LeadershipRaise :one
UPDATE indexer.leadership SET epoch = epoch + 1, holder = @holder, led_since = now() WHERE role = @role RETURNING epoch;

-- name: LeadershipGet :one
SELECT epoch, holder, led_since FROM indexer.leadership WHERE role = @role;

-- name: LeadershipEndOlder :many
-- Ends the sessions of earlier leaders: one may be paused in the middle of a transaction. The caller holds the
-- role's lock, so that none of them leads any more.
SELECT pg_terminate_backend(a.pid) AS ended FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database() AND a.application_name LIKE @application_name_prefix::text || '%' AND a.pid <> pg_backend_pid();

-- name: LeadershipTryLock :one
SELECT pg_try_advisory_lock(@class::int, @role_number::int) AS locked;

-- name: LeadershipUnlock :one
SELECT pg_advisory_unlock(@class::int, @role_number::int) AS unlocked;
