-- name: SnapshotUnfinished :one
-- The unfinished snapshot that indexing will begin with.
SELECT s.* FROM snapshots s
WHERE s.finished_at IS NULL;

-- name: SnapshotStart :exec
INSERT INTO snapshots (snapshot_offset, scope, token_kind, token, entries) VALUES (@snapshot_offset, @scope, '', '', 0);

-- name: SnapshotAdvance :execrows
-- Moves the token by compare-and-swap, in the transaction that stores the page before it.
UPDATE snapshots s SET token_kind = @token_kind, token = @token, entries = s.entries + @added::bigint,
    finished_at = CASE WHEN @last::boolean THEN now() END
WHERE s.snapshot_offset = @ledger_offset AND s.finished_at IS NULL AND s.entries = @entries_before::bigint AND s.token = @token_before::text;

-- name: SnapshotAtWatermark :one
SELECT s.* FROM snapshots s
WHERE s.finished_at IS NOT NULL AND s.snapshot_offset = (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');

-- name: SnapshotCreated :one
-- Whether a creation event of the snapshot that is being read is stored.
SELECT EXISTS (SELECT FROM created WHERE ledger_offset = @ledger_offset AND node_id = @node_id);

-- name: SnapshotClear :exec
-- Removes what lies in no partition of a snapshot that is not finished.
TRUNCATE unknown_elements, active_contracts;

-- name: SnapshotDiscard :many
DELETE FROM snapshots WHERE finished_at IS NULL RETURNING snapshot_offset;

-- name: TimeoutsOff :exec
-- Removes the user's time limits for the rest of the transaction.
SELECT set_config(s.name, '0', true) FROM pg_catalog.pg_settings s WHERE s.name IN ('statement_timeout', 'transaction_timeout');
