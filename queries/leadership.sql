-- name: LeadershipHold :one
-- Keeps the epoch from being raised until the transaction ends. No row: another process leads. Row locks have no queue: writers that
-- share one would keep a repair waiting for ever. So each takes its turn first, which has a queue.
SELECT l.epoch FROM leadership l WHERE l.lease = @lease AND l.epoch = @epoch FOR SHARE;

-- name: LeadershipRaise :one
UPDATE leadership SET epoch = epoch + 1, holder = @holder, led_since = now() WHERE lease = @lease RETURNING epoch;

-- name: LeadershipGet :one
-- Who had a lease last, and whether anybody has it now.
SELECT l.epoch, l.holder, l.led_since, EXISTS (SELECT FROM lock_holders(CAST('lead_' || l.lease AS regclass)))::boolean AS leads
FROM leadership l WHERE l.lease = @lease;

-- name: LeadershipSessions :one
-- Whether a lease has sessions of leaders. Those of other users don't count, who may give theirs any name.
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_stat_activity a
    WHERE a.datname = current_database() AND a.usename = session_user AND starts_with(a.application_name, @application_name_prefix::text)
);

-- name: LeadershipEndOlder :many
-- Ends the sessions of earlier leaders, one of which may be paused in the middle of a transaction. The caller holds the lease's lock,
-- so none of them leads any more.
SELECT pg_terminate_backend(a.pid) AS ended FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database() AND a.usename = session_user AND starts_with(a.application_name, @application_name_prefix::text)
    AND a.pid <> pg_backend_pid();

-- name: LeadershipLockSession :one
-- The session's process id as in pg_locks. A pooler may have reported another one to the client.
SELECT pg_backend_pid()::int AS pid;

-- name: LeadershipLocked :one
-- Whether a session still holds the lease's lock.
SELECT EXISTS (SELECT FROM lock_holders(CAST(@lock::text AS regclass)) h WHERE h.pid = @pid::int) AS locked;

-- name: LockHolders :many
-- The sessions that have locked a view against all others. Before the first migration there is no function of it.
SELECT k.pid::int AS pid, coalesce(a.application_name, '')::text AS application_name
FROM pg_catalog.pg_locks k LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = k.pid
WHERE k.locktype = 'relation' AND k.granted AND k.mode = 'ExclusiveLock' AND k.relation = CAST(@lock::text AS regclass)
    AND k.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database());

-- name: LeadershipExclude :one
-- Waits for the transactions of the lease's leader, and keeps later ones waiting until this transaction ends. Those that read in one
-- snapshot then fail and are repeated, because the snapshot may be older than what this transaction writes.
UPDATE leadership l SET epoch = l.epoch WHERE l.lease = @lease RETURNING l.epoch;

-- name: LeadershipMark :one
-- A mark that changes with each repair that concerns the lease, and with each change of its leader.
SELECT xmin::text AS mark FROM leadership WHERE lease = @lease;

-- name: LeadershipEndTerm :exec
-- Ends the leader's term: no process leads until the next one raises the epoch.
UPDATE leadership SET epoch = epoch + 1, holder = NULL, led_since = NULL WHERE lease = @lease;
