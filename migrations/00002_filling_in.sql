-- History that is filled in below where indexing began, while the indexer goes on above.

-- +goose Up

CREATE TABLE fill (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    began_at       bigint NOT NULL,
    projected_from bigint NOT NULL,
    lifetimes_to   bigint
);
COMMENT ON TABLE fill IS 'How far history was filled in below where indexing began. Which offsets are there stands in coverage. Empty: nothing was filled in.';
COMMENT ON COLUMN fill.began_at IS 'Where indexing began: history at and below this offset was filled in later.';
COMMENT ON COLUMN fill.projected_from IS 'active_contracts and lifetimes follow from what is after this offset, and from what was active there as far as that is known.';
COMMENT ON COLUMN fill.lifetimes_to IS 'Up to where lifetimes were worked out, from the beginning of the ledger or from fill_snapshot on, so that the state floor can be lowered to there. NULL: that is not under way.';

CREATE TABLE fill_active (
    contract_id          text    NOT NULL,
    synchronizer_ref     integer NOT NULL,
    template_ref         integer NOT NULL,
    activated_offset     bigint  NOT NULL,
    activated_node_id    integer NOT NULL,
    reassignment_counter bigint  NOT NULL,
    PRIMARY KEY (activated_offset, activated_node_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX fill_active_contract_id ON fill_active USING hash (contract_id);
COMMENT ON TABLE fill_active IS 'What is active at fill.lifetimes_to, as active_contracts has it at the watermark. Empty unless that is under way.';

-- A snapshot at the lower end of filled history, so that what was active is known from there on. Its rows wait in tables of
-- their own, which have the columns of those that they will go to, until all is there that leads from it to what is known.
CREATE TABLE fill_snapshot (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    snapshot_offset bigint NOT NULL,
    scope           text   NOT NULL,
    token_kind      text   NOT NULL,
    token           text   NOT NULL,
    entries         bigint NOT NULL,
    started_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz
);
COMMENT ON TABLE fill_snapshot IS 'The snapshot that is to lower the state floor, which is being read, or was and waits for history up to where what is active is known: token is where the next page starts. Its rows are in the tables fill_carried_created to fill_carried_exact_payloads. Empty: there is none.';

CREATE TABLE fill_carried_created (LIKE carried_created);
ALTER TABLE fill_carried_created ADD PRIMARY KEY (ledger_offset, node_id);
COMMENT ON TABLE fill_carried_created IS 'What goes to carried_created when the state floor is lowered to fill_snapshot.';
CREATE TABLE fill_carried_interface_views (LIKE carried_interface_views);
ALTER TABLE fill_carried_interface_views ADD PRIMARY KEY (ledger_offset, node_id, ordinal);
COMMENT ON TABLE fill_carried_interface_views IS 'What goes to carried_interface_views.';
CREATE TABLE fill_carried_reassignments (LIKE carried_reassignments);
ALTER TABLE fill_carried_reassignments ADD PRIMARY KEY (ledger_offset, node_id);
COMMENT ON TABLE fill_carried_reassignments IS 'What goes to carried_reassignments.';
CREATE TABLE fill_carried_unknown_elements (LIKE carried_unknown_elements);
ALTER TABLE fill_carried_unknown_elements ADD PRIMARY KEY (ledger_offset, ordinal);
COMMENT ON TABLE fill_carried_unknown_elements IS 'What goes to carried_unknown_elements.';
CREATE TABLE fill_carried_exact_payloads (LIKE carried_exact_payloads);
COMMENT ON TABLE fill_carried_exact_payloads IS 'What goes to carried_exact_payloads.';
