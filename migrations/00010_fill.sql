-- History that is filled in below where indexing began, while the indexer goes on above.

-- +goose Up

CREATE TABLE indexer.fill (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    began_at       bigint NOT NULL,
    projected_from bigint NOT NULL,
    lifetimes_to   bigint
);
COMMENT ON TABLE indexer.fill IS 'How far history was filled in below where indexing began. Which offsets are there stands in coverage. Empty: nothing was filled in.';
COMMENT ON COLUMN indexer.fill.began_at IS 'Where indexing began: history at and below this offset was filled in later.';
COMMENT ON COLUMN indexer.fill.projected_from IS 'active_contracts and lifetimes follow from what is after this offset, and from what was active there as far as that is known.';
COMMENT ON COLUMN indexer.fill.lifetimes_to IS 'Up to where the lifetimes from the beginning of the ledger on were worked out, so that the state floor can be lowered. NULL: that is not under way.';

CREATE TABLE indexer.fill_active (
    contract_id          text    NOT NULL,
    synchronizer_ref     integer NOT NULL,
    template_ref         integer NOT NULL,
    activated_offset     bigint  NOT NULL,
    activated_node_id    integer NOT NULL,
    reassignment_counter bigint  NOT NULL,
    PRIMARY KEY (contract_id, synchronizer_ref)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
COMMENT ON TABLE indexer.fill_active IS 'What is active at fill.lifetimes_to, as active_contracts has it at the watermark. Empty unless that is under way.';

COMMENT ON VIEW ledger.coverage IS 'Offset ranges whose events are complete, up to latest_offset(). One begins at oldest_offset(); those below it were filled in and do not reach up to it yet.';
COMMENT ON FUNCTION ledger.oldest_offset() IS 'Events with a greater offset are complete up to latest_offset(). 0: since the beginning of the ledger. Filling in history lowers it.';
COMMENT ON FUNCTION ledger.state_floor() IS 'The active set is known at every offset from this one on. NULL: at none, because indexing began in the middle without a snapshot. Filling in history to the beginning of the ledger makes it 0.';

-- +goose Down
COMMENT ON VIEW ledger.coverage IS 'Offset ranges whose events are complete, up to latest_offset().';
COMMENT ON FUNCTION ledger.oldest_offset() IS 'Events with a greater offset are complete up to latest_offset(). 0: since the beginning of the ledger.';
COMMENT ON FUNCTION ledger.state_floor() IS 'The active set is known at every offset from this one on. NULL: at none, because indexing began in the middle without a snapshot.';
DROP TABLE indexer.fill, indexer.fill_active;
