-- name: LeadershipHold :one
-- Keeps the epoch from being raised until the transaction ends. No row: somebody else leads. A row's lock is not queued for:
-- those who share it would pass by the repair that waits for it. So all wait for their turn first.
WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(@turn_class::int, @role_number::int))
SELECT l.epoch FROM turn, leadership l WHERE l.role = @role AND l.epoch = @epoch FOR SHARE OF l;

-- name: LeadershipRaise :one
UPDATE leadership SET epoch = epoch + 1, holder = @holder, led_since = now() WHERE role = @role RETURNING epoch;

-- name: LeadershipGet :one
SELECT epoch, holder, led_since FROM leadership WHERE role = @role;

-- name: LeadershipEndOlder :many
-- Ends the sessions of earlier leaders: one may be paused in the middle of a transaction. The caller holds the
-- role's lock, so that none of them leads any more.
SELECT pg_terminate_backend(a.pid) AS ended FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database() AND starts_with(a.application_name, @application_name_prefix::text) AND a.pid <> pg_backend_pid();

-- name: LeadershipEndAbandoned :many
-- Ends the sessions of a role's leader that has lost its lock, while which nobody takes it.
SELECT pg_terminate_backend(a.pid) AS ended FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database()
  AND CASE WHEN starts_with(a.application_name, @application_name_prefix::text) THEN pg_try_advisory_xact_lock(@class::int, @role_number::int) ELSE false END;

-- name: LeadershipTryLock :one
SELECT pg_try_advisory_lock(@class::int, @role_number::int) AS locked;

-- name: LeadershipLockSession :one
-- The session itself, as the list of locks names it. A pooler between may have told the client another number.
SELECT pg_backend_pid()::int AS pid;

-- name: LeadershipLocked :one
-- Whether a session still holds the role's lock, which has two keys.
SELECT count(*) > 0 AS locked FROM pg_catalog.pg_locks k
WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 2 AND k.pid = @pid::int
  AND k.classid::bigint = @class::bigint AND k.objid::bigint = @role_number::bigint
  AND k.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database());

-- name: LeadershipUnlock :one
SELECT pg_advisory_unlock(@class::int, @role_number::int) AS unlocked;

-- name: LeadershipExclude :one
-- Waits for the transactions of the role's leader, and keeps further ones waiting until this transaction ends. They begin
-- again then where they read in one snapshot: it may be older than what this one writes.
WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(@turn_class::int, @role_number::int))
UPDATE leadership l SET epoch = l.epoch FROM turn WHERE l.role = @role RETURNING l.epoch;

-- name: LeadershipMark :one
-- Another one after each repair that concerns the role, and after each change of its leader.
SELECT xmin::text AS mark FROM leadership WHERE role = @role;

-- name: LeadershipEndTerm :exec
-- Nobody leads then, until the next leader raises the epoch.
UPDATE leadership SET epoch = epoch + 1, holder = NULL, led_since = NULL WHERE role = @role;
