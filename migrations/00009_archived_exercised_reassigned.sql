-- The other events of contracts: archivals, exercises and reassignments.

-- +goose Up

CREATE TABLE archived (
    ledger_offset          bigint  NOT NULL,
    record_time            timestamptz,
    node_id                integer NOT NULL,
    template_ref           integer NOT NULL,
    synchronizer_ref       integer,
    witness_parties_ref    integer,
    contract_id            text    NOT NULL,
    implemented_interfaces text[],
    extra                  jsonb,
    exact                  jsonb,
    PRIMARY KEY (ledger_offset, node_id)
) PARTITION BY RANGE (ledger_offset);
CREATE INDEX archived_exact ON archived (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX archived_contract_id ON archived USING hash (contract_id);
CREATE INDEX archived_record_time ON archived USING brin (record_time);
COMMENT ON TABLE archived IS 'Facts: archived events. Shown, with the consuming rows of exercised, as ledger.archived_events.';

CREATE TABLE exercised (
    ledger_offset           bigint  NOT NULL,
    node_id                 integer NOT NULL,
    template_ref            integer NOT NULL,
    record_time             timestamptz,
    synchronizer_ref        integer,
    acting_parties_ref      integer,
    witness_parties_ref     integer,
    last_descendant_node_id integer NOT NULL,
    consuming               boolean NOT NULL,
    acs_delta               boolean,
    choice                  text    NOT NULL,
    contract_id             text    NOT NULL,
    interface_id            text,
    choice_argument         jsonb,
    exercise_result         jsonb,
    implemented_interfaces  text[],
    extra                   jsonb,
    exact                   jsonb,
    PRIMARY KEY (ledger_offset, node_id)
) PARTITION BY RANGE (ledger_offset);
CREATE INDEX exercised_exact ON exercised (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX exercised_contract_id ON exercised (contract_id);
CREATE INDEX exercised_record_time ON exercised USING brin (record_time);
COMMENT ON TABLE exercised IS 'Facts: exercised events. Shown as ledger.exercised_events.';

CREATE VIEW ledger.archived_events WITH (security_invoker = true) AS
SELECT a.ledger_offset, a.node_id, a.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, a.choice,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = a.acting_parties_ref) AS acting_parties,
       CASE WHEN wi.party_list_ref = a.witness_parties_ref THEN wi.parties END AS witness_parties, a.acs_delta, a.implemented_interfaces,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = a.ledger_offset) AS update_id,
       (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = a.synchronizer_ref) AS synchronizer_id, a.record_time, a.extra
FROM (
    SELECT x.ledger_offset, x.node_id, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           NULL::text AS choice, NULL::integer AS acting_parties_ref, x.witness_parties_ref, true AS acs_delta,
           x.implemented_interfaces, x.extra, x.ledger_offset AS shown_at
    FROM archived x
    UNION ALL
    SELECT x.ledger_offset, x.node_id, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           x.choice, x.acting_parties_ref, x.witness_parties_ref, x.acs_delta, x.implemented_interfaces, x.extra,
           CASE WHEN x.consuming THEN x.ledger_offset END
    FROM exercised x
) a
LEFT JOIN templates t ON t.template_ref = a.template_ref
LEFT JOIN party_lists wi ON wi.party_list_ref = a.witness_parties_ref
WHERE btint8cmp(a.shown_at, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;
COMMENT ON VIEW ledger.archived_events IS 'One row per archival of a contract, from an archived event (shape acs-delta) or a consuming exercise (shape ledger-effects). Join it to creations by contract_id alone. A contract can have an archival here and no creation: it was created before indexing began, or never shown.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["ledger_offset"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.archived_events.ledger_offset IS 'Offset of the event. Indexed.';
COMMENT ON COLUMN ledger.archived_events.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.archived_events.contract_id IS 'The contract that ended. Indexed.';
COMMENT ON COLUMN ledger.archived_events.template_id IS 'Template as the server sent it. It may name another package than the contract''s creation did: never join by it.';
COMMENT ON COLUMN ledger.archived_events.package_id IS 'The part of template_id before the first colon; may differ from that of the creation.';
COMMENT ON COLUMN ledger.archived_events.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.archived_events.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.archived_events.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.archived_events.choice IS 'The consuming choice that ended the contract, as in ledger.exercised_events. NULL: an archived event, which does not name it (shape acs-delta).';
COMMENT ON COLUMN ledger.archived_events.acting_parties IS 'Parties that exercised the choice. NULL where choice is NULL. Costs a look-up per row.';
COMMENT ON COLUMN ledger.archived_events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event.';
COMMENT ON COLUMN ledger.archived_events.acs_delta IS 'true: the contract was active for the reading parties until here; always so for archived events. false: they only witnessed it, or the same transaction created it. NULL: a consuming exercise of a server that does not say (release 3.3).';
COMMENT ON COLUMN ledger.archived_events.implemented_interfaces IS 'The interfaces named by --interfaces that the template implements. NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.archived_events.update_id IS 'Id of the event''s update. Costs a look-up per row.';
COMMENT ON COLUMN ledger.archived_events.synchronizer_id IS 'Synchronizer on which the contract was archived.';
COMMENT ON COLUMN ledger.archived_events.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.archived_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

CREATE VIEW ledger.exercised_events WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, e.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, e.interface_id, e.choice, e.choice_argument, e.exercise_result,
       CASE WHEN ac.party_list_ref = e.acting_parties_ref THEN ac.parties END AS acting_parties, e.consuming, e.last_descendant_node_id,
       CASE WHEN wi.party_list_ref = e.witness_parties_ref THEN wi.parties END AS witness_parties, e.acs_delta, e.implemented_interfaces,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = e.synchronizer_ref) AS synchronizer_id, e.record_time, e.extra
FROM exercised e
LEFT JOIN templates t ON t.template_ref = e.template_ref
LEFT JOIN party_lists ac ON ac.party_list_ref = e.acting_parties_ref
LEFT JOIN party_lists wi ON wi.party_list_ref = e.witness_parties_ref
WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.exercised_events IS 'One row per exercise of a choice. Empty with the shape acs-delta: only --shape ledger-effects brings exercises.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["ledger_offset"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.exercised_events.ledger_offset IS 'Offset of the event. Indexed.';
COMMENT ON COLUMN ledger.exercised_events.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.exercised_events.contract_id IS 'The contract on which the choice was exercised. Indexed.';
COMMENT ON COLUMN ledger.exercised_events.template_id IS 'Template as the server sent it. It may name another package than the contract''s creation did: never join by it.';
COMMENT ON COLUMN ledger.exercised_events.package_id IS 'The part of template_id before the first colon; may differ from that of the creation.';
COMMENT ON COLUMN ledger.exercised_events.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.exercised_events.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.exercised_events.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.exercised_events.interface_id IS 'The interface that defines the choice, package-id:Module:Entity. NULL: the template itself defines it.';
COMMENT ON COLUMN ledger.exercised_events.choice IS 'Name of the choice.';
COMMENT ON COLUMN ledger.exercised_events.choice_argument IS 'The choice''s arguments. NULL: they were redacted, see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.exercised_events.exercise_result IS 'What the choice returned; NULL where the server sent null, or it was redacted. Can be a stand-in with the key $exact.';
COMMENT ON COLUMN ledger.exercised_events.acting_parties IS 'Parties that exercised the choice.';
COMMENT ON COLUMN ledger.exercised_events.consuming IS 'true: the exercise archived the contract, and it is in ledger.archived_events too.';
COMMENT ON COLUMN ledger.exercised_events.last_descendant_node_id IS 'Events of the same update with node ids above node_id, up to this one, are consequences of this exercise. Equal to node_id where there are none.';
COMMENT ON COLUMN ledger.exercised_events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event.';
COMMENT ON COLUMN ledger.exercised_events.acs_delta IS 'true: the exercise archived a contract that was active for the reading parties. false: it did not. NULL: the server does not say (release 3.3).';
COMMENT ON COLUMN ledger.exercised_events.implemented_interfaces IS 'The interfaces named by --interfaces that the template implements. NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.exercised_events.update_id IS 'Id of the event''s update. Costs a look-up per row.';
COMMENT ON COLUMN ledger.exercised_events.synchronizer_id IS 'Synchronizer of the transaction.';
COMMENT ON COLUMN ledger.exercised_events.record_time IS 'When the synchronizer recorded the update. Microseconds, UTC.';
COMMENT ON COLUMN ledger.exercised_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- What is archived is known by its creation. A contract that was assigned has several creation events, which say the same. A
-- reassignment changes what is held where the contract is then active nowhere, or was not before. "+ 0" has PostgreSQL find a contract's
-- events by its id: by offset, which it prefers where nothing was analyzed yet, it would read all events before.
CREATE VIEW archivals WITH (security_invoker = true) AS
SELECT a.ledger_offset, a.node_id, a.contract_id FROM archived a
UNION ALL
SELECT e.ledger_offset, e.node_id, e.contract_id FROM exercised e WHERE e.consuming;
COMMENT ON VIEW archivals IS 'The events that archive contracts.';

-- Reassignments ----------------------------------------------------------------------------------------------------

CREATE TABLE reassignments (
    ledger_offset          bigint  NOT NULL,
    record_time            timestamptz,
    reassignment_counter   bigint  NOT NULL,
    assignment_exclusivity timestamptz,
    node_id                integer NOT NULL,
    template_ref           integer NOT NULL,
    synchronizer_ref       integer,
    source_ref             integer NOT NULL,
    target_ref             integer NOT NULL,
    witness_parties_ref    integer,
    kind                   text    NOT NULL,
    contract_id            text    NOT NULL,
    reassignment_id        text    NOT NULL,
    submitter              text,
    extra                  jsonb,
    exact                  jsonb,
    -- Of a snapshot only:
    created_offset         bigint, -- the creation event of the contract
    created_node_id        integer,
    workflow_id            text,
    entry_extra            jsonb,
    PRIMARY KEY (ledger_offset, node_id)
) PARTITION BY RANGE (ledger_offset);
CREATE INDEX reassignments_exact ON reassignments (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX reassignments_contract_id ON reassignments USING hash (contract_id);
CREATE INDEX reassignments_record_time ON reassignments USING brin (record_time);
COMMENT ON TABLE reassignments IS 'Facts: assigned and unassigned events, and those that were in flight at a snapshot (created_offset). Shown as ledger.reassignments.';

CREATE VIEW ledger.reassignments WITH (security_invoker = true) AS
SELECT r.ledger_offset, r.node_id, r.kind, r.contract_id, t.template_id, t.package_name, t.module_name, t.entity_name, r.reassignment_id,
       so.synchronizer_id AS source_synchronizer_id, ta.synchronizer_id AS target_synchronizer_id, r.submitter,
       r.reassignment_counter, r.assignment_exclusivity,
       CASE WHEN wi.party_list_ref = r.witness_parties_ref THEN wi.parties END AS witness_parties,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = r.ledger_offset) AS update_id,
       (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = r.synchronizer_ref) AS synchronizer_id,
       r.record_time, r.extra
FROM reassignments r
LEFT JOIN templates t ON t.template_ref = r.template_ref
LEFT JOIN synchronizers so ON so.synchronizer_ref = r.source_ref
LEFT JOIN synchronizers ta ON ta.synchronizer_ref = r.target_ref
LEFT JOIN party_lists wi ON wi.party_list_ref = r.witness_parties_ref
WHERE btint8cmp(r.ledger_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;
COMMENT ON VIEW ledger.reassignments IS 'One row per assigned or unassigned event: a contract moves between synchronizers by an unassignment from the source and an assignment to the target, which share reassignment_id. Reassignments that were in flight at the snapshot are here too.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["ledger_offset"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.reassignments.ledger_offset IS 'Offset of the event. Of a reassignment that was in flight at the snapshot it can lie below ledger.oldest_offset(). Indexed.';
COMMENT ON COLUMN ledger.reassignments.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.reassignments.kind IS 'unassigned: the contract left the source. assigned: it arrived on the target. An assignment that was in flight at a snapshot is a row here, but the contract is not active on the target because of it.';
COMMENT ON COLUMN ledger.reassignments.contract_id IS 'The contract that moves; its id stays. Indexed.';
COMMENT ON COLUMN ledger.reassignments.template_id IS 'Template as the server sent it, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.reassignments.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.reassignments.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.reassignments.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.reassignments.reassignment_id IS 'Id that the two events of one move share.';
COMMENT ON COLUMN ledger.reassignments.source_synchronizer_id IS 'The synchronizer that the contract leaves.';
COMMENT ON COLUMN ledger.reassignments.target_synchronizer_id IS 'The synchronizer that the contract goes to.';
COMMENT ON COLUMN ledger.reassignments.submitter IS 'Party that submitted the event. An empty text where none did (repairs); NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.reassignments.reassignment_counter IS 'How often the contract has moved: 1 for its first move. The two events of one move share it.';
COMMENT ON COLUMN ledger.reassignments.assignment_exclusivity IS 'Until this time, on the target, only the submitter may assign the contract. NULL for assignments, and where the server did not say.';
COMMENT ON COLUMN ledger.reassignments.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event.';
COMMENT ON COLUMN ledger.reassignments.update_id IS 'Id of the event''s update. Costs a look-up per row. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.reassignments.synchronizer_id IS 'Synchronizer of the event: the source of an unassignment, the target of an assignment.';
COMMENT ON COLUMN ledger.reassignments.record_time IS 'When the synchronizer recorded the update. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.reassignments.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- Where contracts that have moved, or were taken in by a resync, were created: at the creation event, or at the first activation in a snapshot.
CREATE VIEW first_creations WITH (security_invoker = true) AS
SELECT c.contract_id, coalesce(c.served_offset, c.ledger_offset) AS ledger_offset FROM created c
WHERE c.origin = 'transaction' OR c.reassignment_counter = 0
UNION ALL
SELECT r.contract_id, r.created_offset FROM reassignments r
WHERE r.created_offset IS NOT NULL AND r.kind = 'unassigned' AND r.reassignment_counter = 1;
COMMENT ON VIEW first_creations IS 'Offsets of contracts'' creations, for look-ups by contract_id. A contract can have two rows, with the same offset.';
