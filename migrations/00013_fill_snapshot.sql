-- A snapshot at the lower end of filled history, so that what was active is known from there on. Its rows wait in tables of
-- their own, which have the columns of those that they will go to, until all is there that leads from it to what is known.

-- +goose Up

CREATE TABLE indexer.fill_snapshot (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    snapshot_offset bigint NOT NULL,
    scope           text   NOT NULL,
    token_kind      text   NOT NULL,
    token           text   NOT NULL,
    entries         bigint NOT NULL,
    started_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz
);
COMMENT ON TABLE indexer.fill_snapshot IS 'The snapshot that is to lower the state floor, which is being read, or was and waits for history up to where what is active is known: token is where the next page starts. Its rows are in the tables fill_carried_created to fill_carried_exact_payloads. Empty: there is none.';

CREATE TABLE indexer.fill_carried_created (LIKE indexer.carried_created);
ALTER TABLE indexer.fill_carried_created ADD PRIMARY KEY (ledger_offset, node_id);
COMMENT ON TABLE indexer.fill_carried_created IS 'What goes to carried_created when the state floor is lowered to fill_snapshot.';
CREATE TABLE indexer.fill_carried_interface_views (LIKE indexer.carried_interface_views);
ALTER TABLE indexer.fill_carried_interface_views ADD PRIMARY KEY (ledger_offset, node_id, ordinal);
COMMENT ON TABLE indexer.fill_carried_interface_views IS 'What goes to carried_interface_views.';
CREATE TABLE indexer.fill_carried_reassignments (LIKE indexer.carried_reassignments);
ALTER TABLE indexer.fill_carried_reassignments ADD PRIMARY KEY (ledger_offset, node_id);
COMMENT ON TABLE indexer.fill_carried_reassignments IS 'What goes to carried_reassignments.';
CREATE TABLE indexer.fill_carried_unknown_elements (LIKE indexer.carried_unknown_elements);
ALTER TABLE indexer.fill_carried_unknown_elements ADD PRIMARY KEY (ledger_offset, ordinal);
COMMENT ON TABLE indexer.fill_carried_unknown_elements IS 'What goes to carried_unknown_elements.';
CREATE TABLE indexer.fill_carried_exact_payloads (LIKE indexer.carried_exact_payloads);
COMMENT ON TABLE indexer.fill_carried_exact_payloads IS 'What goes to carried_exact_payloads.';

-- As active_contracts, so that the same statements serve both.
ALTER TABLE indexer.fill_active DROP CONSTRAINT fill_active_pkey, ADD PRIMARY KEY (activated_offset, activated_node_id);
CREATE INDEX fill_active_contract_id ON indexer.fill_active USING hash (contract_id);

COMMENT ON COLUMN indexer.fill.lifetimes_to IS 'Up to where lifetimes were worked out, from the beginning of the ledger or from fill_snapshot on, so that the state floor can be lowered to there. NULL: that is not under way.';
COMMENT ON FUNCTION ledger.state_floor() IS 'The active set is known at every offset from this one on. NULL: at none, because indexing began in the middle without a snapshot. Filling in history lowers it to 0 with the beginning of the ledger, and to where it begins with a snapshot of there.';

-- +goose Down
COMMENT ON FUNCTION ledger.state_floor() IS 'The active set is known at every offset from this one on. NULL: at none, because indexing began in the middle without a snapshot. Filling in history to the beginning of the ledger makes it 0.';
COMMENT ON COLUMN indexer.fill.lifetimes_to IS 'Up to where the lifetimes from the beginning of the ledger on were worked out, so that the state floor can be lowered. NULL: that is not under way.';
-- Lifetimes that come of it can't be gone on with.
DELETE FROM indexer.fill_active;
DELETE FROM indexer.lifetimes l USING indexer.fill x WHERE x.lifetimes_to IS NOT NULL AND l.activated_offset <= x.projected_from AND (
    l.deactivated_offset <= x.projected_from OR EXISTS (SELECT FROM indexer.floors f WHERE f.stream = 'updates' AND f.state_floor IS NULL));
UPDATE indexer.fill SET lifetimes_to = NULL;
DROP INDEX indexer.fill_active_contract_id;
ALTER TABLE indexer.fill_active DROP CONSTRAINT fill_active_pkey, ADD PRIMARY KEY (contract_id, synchronizer_ref);
DROP TABLE indexer.fill_carried_exact_payloads, indexer.fill_carried_unknown_elements, indexer.fill_carried_reassignments, indexer.fill_carried_interface_views,
    indexer.fill_carried_created, indexer.fill_snapshot;
