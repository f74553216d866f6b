-- name: SnapshotUnfinished :one
-- The one that indexing is to begin with.
SELECT s.* FROM snapshots s
WHERE s.finished_at IS NULL AND s.snapshot_offset IS DISTINCT FROM (SELECT f.waiting_snapshot FROM floors f WHERE f.stream = 'updates');

-- name: SnapshotStart :exec
INSERT INTO snapshots (snapshot_offset, scope, token_kind, token, entries) VALUES (@snapshot_offset, @scope, '', '', 0);

-- name: SnapshotAdvance :execrows
-- Moves the token by compare-and-swap, with the rows of the page that ends there.
UPDATE snapshots SET token_kind = @token_kind, token = @token, entries = entries + @added::bigint,
    finished_at = CASE WHEN @last::boolean THEN now() END
WHERE snapshot_offset = @snapshot_offset AND finished_at IS NULL AND entries = @entries_before::bigint AND token = @token_before::text;

-- name: SnapshotAtWatermark :one
SELECT s.* FROM snapshots s
WHERE s.finished_at IS NOT NULL AND s.snapshot_offset = (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates')
  AND s.snapshot_offset IS DISTINCT FROM (SELECT f.waiting_snapshot FROM floors f WHERE f.stream = 'updates');

-- name: SnapshotDiscard :exec
DELETE FROM snapshots WHERE finished_at IS NULL;

-- name: TimeoutsOff :exec
-- Lets what follows in the transaction take as long as it takes, whatever the user's limits are.
SELECT set_config(s.name, '0', true) FROM pg_catalog.pg_settings s WHERE s.name IN ('statement_timeout', 'transaction_timeout');
