-- name: CarriedCreatedExists :one
SELECT EXISTS (
    SELECT FROM carried_created
    WHERE ledger_offset = @ledger_offset AND node_id = @node_id AND snapshot_offset = @snapshot_offset);

-- name: CarriedKeep :exec
-- Removes all carried rows but those of one snapshot, and of these the ones whose events are stored as facts.
WITH created AS (
    DELETE FROM carried_created x WHERE x.snapshot_offset <> @snapshot_offset
        OR EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), views AS (
    DELETE FROM carried_interface_views x WHERE x.snapshot_offset <> @snapshot_offset
        OR EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), reassignments AS (
    DELETE FROM carried_reassignments x WHERE x.snapshot_offset <> @snapshot_offset
        OR EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), unknown AS (
    DELETE FROM carried_unknown_elements x WHERE x.ledger_offset <> @snapshot_offset
        OR EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
), exact AS (
    DELETE FROM carried_exact_payloads x WHERE x.snapshot_offset <> @snapshot_offset
        OR EXISTS (SELECT FROM coverage v WHERE v.from_exclusive < x.ledger_offset AND v.to_inclusive >= x.ledger_offset)
)
DELETE FROM snapshots_both s WHERE s.snapshot_offset <> @snapshot_offset;

-- name: CarriedClear :exec
TRUNCATE carried_created, carried_interface_views, carried_reassignments, active_contracts,
    carried_unknown_elements, carried_exact_payloads;
