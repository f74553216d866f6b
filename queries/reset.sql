-- What a reset does to tables of which it does not just remove the rows after an offset (see package tables). Each query returns or
-- counts the removed rows.

-- name: ResetLifetimes :execrows
-- Lifetimes that began up to the offset become active again.
WITH ended AS (
    DELETE FROM lifetimes l WHERE l.deactivated_offset > @after
    RETURNING l.*
), reopened AS (
    INSERT INTO active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter,
        position_id, amount, locked, locked_until, stakeholders_ref)
    SELECT e.contract_id, e.synchronizer_ref, e.template_ref, e.activated_offset, e.activated_node_id, e.reassignment_counter,
        e.position_id, e.amount, e.locked, e.locked_until, e.stakeholders_ref
    FROM ended e
    WHERE e.activated_offset <= @after
)
SELECT FROM ended;

-- name: ResetCoverage :execrows
-- Removes the coverage above the offset, except for a range that contains it: ResetCoverageCut shortens that.
DELETE FROM coverage c WHERE c.from_exclusive >= @after;

-- name: ResetCoverageCut :exec
UPDATE coverage c SET to_inclusive = @after
WHERE c.from_exclusive < @after AND c.to_inclusive > @after;
