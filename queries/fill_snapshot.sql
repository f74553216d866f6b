-- The snapshot that waits until it lowers the state floor.

-- name: WaitingSnapshot :one
SELECT s.* FROM snapshots s WHERE s.snapshot_offset = (SELECT f.waiting_snapshot FROM floors f WHERE f.stream = 'updates');

-- name: WaitingSnapshotSet :exec
UPDATE floors_both f SET waiting_snapshot = @snapshot_offset::bigint,
    digest = changed_digest(f, jsonb_build_object('waiting_snapshot', @snapshot_offset::bigint))
WHERE f.stream = 'updates';

-- name: WaitingSnapshotDrop :execrows
-- Removes the waiting snapshot. Its rows are removed before.
WITH waiting AS (
    SELECT f.waiting_snapshot AS snapshot_offset FROM floors f WHERE f.stream = 'updates'
), unset AS (
    UPDATE floors_both f SET waiting_snapshot = NULL, digest = changed_digest(f, jsonb_build_object('waiting_snapshot', NULL::bigint))
    WHERE f.waiting_snapshot IS NOT NULL
)
DELETE FROM snapshots_both s WHERE s.snapshot_offset = (SELECT w.snapshot_offset FROM waiting w);

-- name: WaitingSnapshotActivate :exec
-- Makes active what the snapshot has as active, before lifetimes are computed from its offset on.
INSERT INTO fill_active (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter,
    position_id, amount, locked, locked_until, stakeholders_ref)
SELECT c.contract_id, coalesce(c.synchronizer_ref, 0), c.template_ref, c.ledger_offset, c.node_id, c.reassignment_counter,
    e.position_id, e.amount, e.locked, e.locked_until, c.stakeholders_ref
FROM carried_created c
LEFT JOIN LATERAL (
    SELECT h.position_id, h.amount, h.locked, h.locked_until FROM created_holdings h
    WHERE c.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND h.waits AND h.ledger_offset = c.ledger_offset AND h.node_id = c.node_id
    LIMIT 1
) e ON true
WHERE c.snapshot_offset = @snapshot_offset AND c.reassignment_counter IS NOT NULL;

-- name: WaitingSnapshotContradicted :many
-- One contradiction, if there is any: a contract that this snapshot has as active although the stored updates lack its activation
-- (lacking is false), or one that a later snapshot has as active since before this snapshot, which lacks it (lacking is true).
SELECT c.contract_id, c.ledger_offset, c.node_id, false AS lacking
FROM carried_created c
WHERE c.snapshot_offset = @snapshot_offset AND c.reassignment_counter IS NOT NULL
  AND EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < c.ledger_offset AND v.to_inclusive >= c.ledger_offset)
  AND NOT EXISTS (SELECT FROM created x WHERE x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id)
UNION ALL
SELECT c.contract_id, c.ledger_offset, c.node_id, true
FROM carried_created c
WHERE c.snapshot_offset <> @snapshot_offset AND c.reassignment_counter IS NOT NULL AND c.ledger_offset <= @snapshot_offset
  AND NOT EXISTS (
      SELECT FROM carried_created x
      WHERE x.ledger_offset = c.ledger_offset AND x.node_id = c.node_id AND x.snapshot_offset = @snapshot_offset AND x.reassignment_counter IS NOT NULL)
LIMIT 1;

-- name: LookupsForgetCarried :exec
-- Removes look-ups of contracts whose creation is carried.
DELETE FROM lookups l USING shown_created c WHERE c.contract_id = l.contract_id;
