-- Pruning: the contracts active at an offset become the entries of a snapshot there, and everything else up to there is removed.

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
SELECT l.activated_offset, l.activated_node_id, true, l.deactivated_offset FROM lifetimes l;
COMMENT ON VIEW needed_creations IS 'The creation events of contracts from where they are active on.';
