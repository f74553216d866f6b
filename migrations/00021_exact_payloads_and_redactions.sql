-- Content that is elsewhere than in its column: what a column can't hold, and what was erased for good, and must not come back.

-- +goose Up

CREATE VIEW ledger.exact_payloads WITH (security_invoker = true) AS
SELECT x.stream, x.ledger_offset, x.node_id, x.interface_id, x.seq, v.field || x.of AS field, convert_to(v.value, 'UTF8') AS exact
FROM (
    SELECT 'updates' AS stream, e.ledger_offset, NULL::integer AS node_id, NULL::text AS interface_id, NULL::bigint AS seq, '' AS of, e.exact
    FROM updates e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, NULL, NULL, '', e.exact FROM created e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, NULL, NULL, '', e.exact FROM archived e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, NULL, NULL, '', e.exact FROM exercised e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, e.interface_id, e.ordinal, '', e.exact FROM interface_views e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, NULL, NULL, '', e.exact FROM reassignments e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, NULL, NULL, '', e.exact FROM topology_events e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, e.node_id, NULL, e.ordinal, '', e.exact FROM unknown_elements e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'updates', e.ledger_offset, NULL, NULL, NULL, ' ' || s.synchronizer_id, e.exact
    FROM offset_checkpoints e JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'lookups', e.ledger_offset, e.node_id, NULL, NULL, '', e.exact FROM lookups e WHERE e.exact IS NOT NULL
    UNION ALL
    SELECT 'transactions', NULL, NULL, NULL, e.seq, '', e.exact FROM transactions e
    WHERE e.exact IS NOT NULL
) x
CROSS JOIN LATERAL jsonb_each_text(x.exact) v (field, value)
WHERE btint8cmp(x.ledger_offset, (SELECT ledger.latest_offset())) <> 1 OR x.ledger_offset IS NULL;
COMMENT ON VIEW ledger.exact_payloads IS 'One row per value that its own column cannot hold as the server sent it: JSON that jsonb refuses (a NUL, half of a surrogate pair, a number or a nesting beyond its limits), times finer than a microsecond, and descriptions with a character that no text can hold. Empty in the usual case.';
COMMENT ON COLUMN ledger.exact_payloads.stream IS 'updates: the value belongs to the event relations. lookups: it belongs to the row of ledger.looked_up_contracts with the same (ledger_offset, node_id). transactions: it belongs to the record of the transaction history with the same seq.';
COMMENT ON COLUMN ledger.exact_payloads.ledger_offset IS 'Offset of the row whose value this is. NULL in the stream transactions.';
COMMENT ON COLUMN ledger.exact_payloads.node_id IS 'Node id of that row. NULL where the value belongs to a whole update.';
COMMENT ON COLUMN ledger.exact_payloads.interface_id IS 'The interface, where the value belongs to an interface view. Else NULL.';
COMMENT ON COLUMN ledger.exact_payloads.seq IS 'In the stream updates: place, from 0, of the interface view among those of its event, or of the unknown element among those of its update or snapshot; else NULL. In the stream transactions: the record''s seq.';
COMMENT ON COLUMN ledger.exact_payloads.field IS 'In the streams updates and lookups the column whose value this is: payload, contract_key, choice_argument, exercise_result, view_value, status_details, raw, extra (assignment_extra: that of a reassignments row; entry_extra and assignment_entry_extra: of the entry around a snapshot''s event). Of a time the server''s name: recordTime, effectiveAt, createdAt, assignmentExclusivity. Of an offset checkpoint: checkpoint_extra and checkpoint_time, followed by the synchronizer. In the stream transactions the path of the value in the record as the service sent it, such as transfer.description; raw for the whole record, and extra behind the path of an object (alone: of the record) for the fields of it that are not known.';
COMMENT ON COLUMN ledger.exact_payloads.exact IS 'The JSON as the server sent it, UTF-8. convert_from(exact, ''UTF8'') shows it; casting that to jsonb fails, which is why it is here.';

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
