-- name: SnapshotUnfinished :one
-- The unfinished snapshot that indexing will begin with.
SELECT s.* FROM snapshots s
WHERE s.finished_at IS NULL;

-- name: SnapshotStart :exec
INSERT INTO snapshots_both (snapshot_offset, scope, token_kind, token, entries, started_at, is_copy, digest)
SELECT r.*, c.is_copy, row_digest(r)
FROM (SELECT @snapshot_offset::bigint AS snapshot_offset, @scope::text AS scope, '' AS token_kind, '' AS token, 0 AS entries, now() AS started_at) r,
    unnest('{f,t}'::boolean[]) c (is_copy);

-- name: SnapshotAdvance :one
-- Moves the token by compare-and-swap, in the transaction that stores the page before it.
WITH moved AS (
    UPDATE snapshots_both s SET token_kind = @token_kind, token = @token, entries = s.entries + @added::bigint,
        finished_at = CASE WHEN @last::boolean THEN now() END,
        digest = changed_digest(s, jsonb_build_object('token_kind', @token_kind::text, 'token', @token::text, 'entries', s.entries + @added::bigint,
            'finished_at', CASE WHEN @last::boolean THEN now() END))
    WHERE s.snapshot_offset = @snapshot_offset AND s.finished_at IS NULL AND s.entries = @entries_before::bigint AND s.token = @token_before::text
    RETURNING s.is_copy
)
SELECT count(*) FROM moved WHERE NOT is_copy;

-- name: SnapshotAtWatermark :one
SELECT s.* FROM snapshots s
WHERE s.finished_at IS NOT NULL AND s.snapshot_offset = (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');

-- name: SnapshotDiscard :exec
DELETE FROM snapshots_both WHERE finished_at IS NULL;

-- name: TimeoutsOff :exec
-- Removes the user's time limits for the rest of the transaction.
SELECT set_config(s.name, '0', true) FROM pg_catalog.pg_settings s WHERE s.name IN ('statement_timeout', 'transaction_timeout');
