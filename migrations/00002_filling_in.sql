-- Filling in history below where indexing began, while the indexer continues above.

-- +goose Up

CREATE TABLE fill_both (
    only_row       boolean NOT NULL DEFAULT true CHECK (only_row),
    began_at       bigint NOT NULL,
    projected_from bigint NOT NULL,
    lifetimes_to   bigint,
    is_copy        boolean NOT NULL DEFAULT false,
    digest         bytea,
    PRIMARY KEY (only_row, is_copy)
) PARTITION BY LIST (is_copy);
CREATE TABLE fill PARTITION OF fill_both FOR VALUES IN (false);
CREATE TABLE fill_copy PARTITION OF fill_both FOR VALUES IN (true);
COMMENT ON TABLE fill IS 'The state of filling in history below where indexing began. coverage says which offsets are stored. Empty: nothing was filled in.';
COMMENT ON COLUMN fill.began_at IS 'Where indexing began: history at and below this offset was filled in later.';
COMMENT ON COLUMN fill.projected_from IS 'active_contracts and lifetimes follow from the events after this offset, and from what was active at it as far as that is known.';
COMMENT ON COLUMN fill.lifetimes_to IS 'Lifetimes were computed up to this offset, from the beginning of the ledger or from floors.waiting_snapshot on, where the state floor will be. NULL: they are not being computed.';

CREATE TABLE fill_active (
    activated_offset     bigint  NOT NULL,
    reassignment_counter bigint  NOT NULL,
    activated_node_id    integer NOT NULL,
    synchronizer_ref     integer NOT NULL,
    template_ref         integer NOT NULL,
    stakeholders_ref     integer,
    position_id          uuid,
    contract_id          text    NOT NULL,
    amount               numeric,
    locked               boolean,
    locked_until         timestamptz,
    PRIMARY KEY (activated_offset, activated_node_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX fill_active_contract_id ON fill_active USING hash (contract_id);
COMMENT ON TABLE fill_active IS 'The active contracts at fill.lifetimes_to, like active_contracts at the watermark. Empty while no lifetimes are computed.';
