-- name: LeadershipHold :one
-- Keeps the epoch from being raised until the transaction ends. No row: another process leads. Row locks have no queue: writers that
-- share one would keep a repair waiting for ever. So each takes the advisory lock first, which has a queue.
WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(@turn_class::int, @role_number::int))
SELECT l.epoch FROM turn, leadership l WHERE l.role = @role AND l.epoch = @epoch FOR SHARE OF l;

-- name: LeadershipRaise :one
UPDATE leadership SET epoch = epoch + 1, holder = @holder, led_since = now() WHERE role = @role RETURNING epoch;

-- name: LeadershipGet :one
SELECT epoch, holder, led_since FROM leadership WHERE role = @role;

-- name: LeadershipEndOlder :many
-- Ends the sessions of earlier leaders, one of which may be paused in the middle of a transaction. The caller holds the role's lock,
-- so none of them leads any more.
SELECT pg_terminate_backend(a.pid) AS ended FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database() AND starts_with(a.application_name, @application_name_prefix::text) AND a.pid <> pg_backend_pid();

-- name: LeadershipEndAbandoned :many
-- Ends the sessions of a role's leader that has lost its lock. It holds the lock meanwhile, so that no other process takes it.
SELECT pg_terminate_backend(a.pid) AS ended FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database()
  AND CASE WHEN starts_with(a.application_name, @application_name_prefix::text) THEN pg_try_advisory_xact_lock(@class::int, @role_number::int) ELSE false END;

-- name: LeadershipTryLock :one
SELECT pg_try_advisory_lock(@class::int, @role_number::int) AS locked;

-- name: LeadershipLockSession :one
-- The session's process id as in pg_locks. A pooler may have reported another one to the client.
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
-- Waits for the transactions of the role's leader, and keeps later ones waiting until this transaction ends. Those that read in one
-- snapshot then fail and are repeated, because the snapshot may be older than what this transaction writes.
WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(@turn_class::int, @role_number::int))
UPDATE leadership l SET epoch = l.epoch FROM turn WHERE l.role = @role RETURNING l.epoch;

-- name: LeadershipMark :one
-- A mark that changes with each repair that concerns the role, and with each change of its leader.
SELECT xmin::text AS mark FROM leadership WHERE role = @role;

-- name: LeadershipEndTerm :exec
-- Ends the leader's term: no process leads until the next one raises the epoch.
UPDATE leadership SET epoch = epoch + 1, holder = NULL, led_since = NULL WHERE role = @role;
