-- What was erased for good, and must not come back.

-- +goose Up

CREATE TABLE redactions (
    redaction   bigint NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('contract', 'update')),
    id          text NOT NULL,
    of_update   text,
    redacted_at timestamptz NOT NULL,
    redacted_by text NOT NULL,
    reason      text NOT NULL,
    erased      jsonb NOT NULL,
    PRIMARY KEY (redaction)
);
COMMENT ON TABLE redactions IS 'Contracts and updates whose content was erased. Whoever writes rows leaves this content out, and whoever compares them with their source does without it. Rows are never removed. Shown as ledger.redactions.';

CREATE VIEW ledger.redactions WITH (security_invoker = true) AS
SELECT r.redaction, r.kind, r.id, r.of_update, r.redacted_at, r.redacted_by, r.reason, r.erased
FROM redactions r;
COMMENT ON VIEW ledger.redactions IS 'One row per contract or update whose content was erased by indexer redact: payload, key and its hash, blob, interface views, arguments, results, unknown fields and raw copies are NULL wherever they were, and what the contract held is not known any more. Ids, parties, templates, choices, times and offsets stay. What is read again is stored without this content.
@graphql({"primary_key_columns": ["redaction"]})';
COMMENT ON COLUMN ledger.redactions.redaction IS 'Number of the row, in the order of redaction. Unique.';
COMMENT ON COLUMN ledger.redactions.kind IS 'contract: its creation events, interface views, look-up, and the exercises and archival of it. update: everything that happened in it; the contracts that it created have rows of their own.';
COMMENT ON COLUMN ledger.redactions.id IS 'The contract''s id, or the update''s. Not indexed: there are few rows.';
COMMENT ON COLUMN ledger.redactions.of_update IS 'Of a contract that was redacted because an update that created it was: the update''s id. NULL: it was redacted by itself, or the row is an update''s.';
COMMENT ON COLUMN ledger.redactions.redacted_at IS 'When (clock of the database).';
COMMENT ON COLUMN ledger.redactions.redacted_by IS 'By which database role.';
COMMENT ON COLUMN ledger.redactions.reason IS 'The reason that the operator gave.';
COMMENT ON COLUMN ledger.redactions.erased IS 'From how many rows content was erased, by table. Of an update and its contracts together, in the update''s row.';

CREATE TABLE redacted_records (
    update_id text NOT NULL,
    records   jsonb NOT NULL,
    PRIMARY KEY (update_id)
);
-- Records that were noted may be redacted further.
ALTER TABLE redacted_records ALTER COLUMN records SET STATISTICS 0;
COMMENT ON TABLE redacted_records IS 'The records of the transaction history that followed from updates of a network before something of these was redacted, without what was. They are what follows from these updates from then on. Rows are never removed.';
