-- name: SnapshotUnfinished :one
SELECT * FROM snapshots WHERE finished_at IS NULL;

-- name: SnapshotStart :exec
INSERT INTO snapshots (snapshot_offset, scope, token_kind, token, entries) VALUES (@snapshot_offset, @scope, '', '', 0);

-- name: SnapshotAdvance :execrows
-- Moves the token by compare-and-swap, with the rows of the page that ends there.
UPDATE snapshots SET token_kind = @token_kind, token = @token, entries = entries + @added::bigint
WHERE snapshot_offset = @snapshot_offset AND finished_at IS NULL AND entries = @entries_before::bigint AND token = @token_before::text;

-- name: SnapshotClose :exec
UPDATE snapshots SET finished_at = now() WHERE snapshot_offset = @snapshot_offset;

-- name: SnapshotAtWatermark :one
SELECT * FROM snapshots
WHERE finished_at IS NOT NULL AND snapshot_offset = (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');

-- name: SnapshotDiscard :exec
DELETE FROM snapshots WHERE finished_at IS NULL;

-- name: CarriedClear :exec
TRUNCATE carried_created, carried_interface_views, carried_reassignments, active_contracts,
    carried_unknown_elements, carried_exact_payloads;

-- name: TimeoutsOff :exec
-- Lets what follows in the transaction take as long as it takes, whatever the user's limits are.
SELECT set_config(s.name, '0', true) FROM pg_catalog.pg_settings s WHERE s.name IN ('statement_timeout', 'transaction_timeout');
