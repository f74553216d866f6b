-- Pruning: the contracts active at an offset become a carried snapshot, and everything else up to there is removed.

-- +goose Up

CREATE TABLE pruned_verifications (
    stream         text   NOT NULL,
    from_exclusive bigint NOT NULL,
    to_inclusive   bigint NOT NULL,
    verified_at    timestamptz NOT NULL,
    result         text   NOT NULL,
    differences    bigint NOT NULL,
    digest         bytea  NOT NULL,
    repaired_at    timestamptz,
    pruned_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream, from_exclusive, verified_at)
);
COMMENT ON TABLE pruned_verifications IS 'The windows of verifications that were pruned, in whole or in part, as they were. A backup that has their rows is proved by the same digests in its ledger.verifications, and these by `indexer verify --offline`.';
COMMENT ON COLUMN pruned_verifications.pruned_at IS 'When the window was pruned (clock of the database). The other columns are those of verifications.';

CREATE VIEW needed_creations WITH (security_invoker = true) AS
SELECT a.activated_offset AS ledger_offset, a.activated_node_id AS node_id, true AS active, NULL::bigint AS active_until FROM active_contracts a
UNION ALL
SELECT l.activated_offset, l.activated_node_id, true, l.deactivated_offset FROM lifetimes l
UNION ALL
SELECT r.created_offset, r.created_node_id, false, NULL::bigint FROM carried_reassignments r;
COMMENT ON VIEW needed_creations IS 'The creation events that a snapshot has: of contracts from where they are active on, and of carried reassignments. One can be there twice.';

CREATE FUNCTION lookups_after_pruning(from_exclusive bigint, to_inclusive bigint, floor bigint) RETURNS TABLE (contract_id text, ledger_offset bigint, node_id integer)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT m.contract_id, m.ledger_offset, m.node_id FROM missing_lookups(from_exclusive, to_inclusive, floor) m
UNION ALL
(SELECT DISTINCT ON (l.ledger_offset, l.node_id) l.contract_id, k.ledger_offset, k.node_id
FROM lookups l
JOIN lookup_events(to_inclusive) k ON k.contract_id = l.contract_id AND k.ledger_offset > from_exclusive
WHERE l.ledger_offset <= floor
ORDER BY l.ledger_offset, l.node_id, k.ledger_offset, k.node_id);
END;
COMMENT ON FUNCTION lookups_after_pruning(bigint, bigint, bigint) IS 'For each contract that has a look-up up to the floor, or will have no stored creation after pruning up to there, its first event in a range.';
