-- The snapshot that is to lower the state floor.

-- name: FillSnapshotGet :one
-- In the columns of snapshots.
SELECT snapshot_offset, scope, token_kind, token, entries, started_at, finished_at FROM fill_snapshot;

-- name: FillSnapshotStart :exec
INSERT INTO fill_snapshot (snapshot_offset, scope, token_kind, token, entries) VALUES (@snapshot_offset, @scope, '', '', 0);

-- name: FillSnapshotAdvance :execrows
-- Moves the token by compare-and-swap, with the rows of the page that ends there.
UPDATE fill_snapshot SET token_kind = @token_kind, token = @token, entries = entries + @added::bigint,
    finished_at = CASE WHEN @last::boolean THEN now() END
WHERE snapshot_offset = @snapshot_offset AND finished_at IS NULL AND entries = @entries_before::bigint AND token = @token_before::text;

-- name: FillSnapshotDrop :execrows
-- Removes it with its rows.
WITH created AS (
    DELETE FROM fill_carried_created
), views AS (
    DELETE FROM fill_carried_interface_views
), reassignments AS (
    DELETE FROM fill_carried_reassignments
), unknown AS (
    DELETE FROM fill_carried_unknown_elements
), exact AS (
    DELETE FROM fill_carried_exact_payloads
)
DELETE FROM fill_snapshot;

-- name: FillCarriedCreatedExists :one
SELECT EXISTS (SELECT FROM fill_carried_created WHERE ledger_offset = @ledger_offset AND node_id = @node_id);

-- name: FillSnapshotActivate :exec
-- Begins with what is active there.
INSERT INTO fill_active (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
SELECT c.contract_id, coalesce(c.synchronizer_ref, 0), c.template_ref, c.ledger_offset, c.node_id, c.reassignment_counter
FROM fill_carried_created c WHERE c.reassignment_counter IS NOT NULL;

-- name: FillSnapshotContradicted :many
-- One contract, if there is any, that the snapshot has as active and the updates of its activation don't show (lacking is false), or
-- that a later snapshot has as active since before this one, which lacks it.
SELECT c.contract_id, c.ledger_offset, c.node_id, false AS lacking
FROM fill_carried_created c
WHERE c.reassignment_counter IS NOT NULL
  AND EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < c.ledger_offset AND v.to_inclusive >= c.ledger_offset)
  AND NOT EXISTS (SELECT FROM created x WHERE x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id)
UNION ALL
SELECT c.contract_id, c.ledger_offset, c.node_id, true
FROM carried_created c
WHERE c.reassignment_counter IS NOT NULL AND c.ledger_offset <= @snapshot_offset
  AND NOT EXISTS (
      SELECT FROM fill_carried_created x
      WHERE x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id AND x.reassignment_counter IS NOT NULL)
LIMIT 1;

-- name: FillSnapshotForgetLookups :exec
-- Forgets look-ups of contracts whose creation it brings, with the exact values that they had.
WITH gone AS (
    DELETE FROM lookups l USING fill_carried_created c WHERE c.contract_id = l.contract_id RETURNING l.ledger_offset, l.node_id
)
DELETE FROM lookup_exact_payloads x USING gone g
WHERE x.ledger_offset = g.ledger_offset AND x.node_id = g.node_id;

-- name: CarriedForgetAll :exec
-- Removes what a snapshot brought.
WITH created AS (
    DELETE FROM carried_created
), views AS (
    DELETE FROM carried_interface_views
), reassignments AS (
    DELETE FROM carried_reassignments
), unknown AS (
    DELETE FROM carried_unknown_elements
)
DELETE FROM carried_exact_payloads;

-- name: FillSnapshotCarry :exec
-- Makes it the snapshot that is carried, but for the rows that the events themselves have taken the place of.
WITH created AS (
    INSERT INTO carried_created SELECT x.* FROM fill_carried_created x
    WHERE NOT EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), views AS (
    INSERT INTO carried_interface_views SELECT x.* FROM fill_carried_interface_views x
    WHERE NOT EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), reassignments AS (
    INSERT INTO carried_reassignments SELECT x.* FROM fill_carried_reassignments x
    WHERE NOT EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), unknown AS (
    INSERT INTO carried_unknown_elements SELECT x.* FROM fill_carried_unknown_elements x
    WHERE NOT EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), exact AS (
    INSERT INTO carried_exact_payloads SELECT x.* FROM fill_carried_exact_payloads x
    WHERE NOT EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
)
INSERT INTO snapshots (snapshot_offset, scope, token_kind, token, entries, started_at, finished_at)
SELECT f.snapshot_offset, f.scope, f.token_kind, f.token, f.entries, f.started_at, f.finished_at FROM fill_snapshot f;
