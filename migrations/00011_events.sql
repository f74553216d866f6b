-- Archivals, exercises and reassignments; the events of all kinds in one view; contracts whose creation was never seen; what no column can hold.

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
COMMENT ON COLUMN ledger.archived_events.package_name IS 'Name of the package that the archival was made with, the same over its releases.';
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
COMMENT ON COLUMN ledger.exercised_events.package_name IS 'Name of the package that the exercise was made with, the same over its releases.';
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

-- All of them ------------------------------------------------------------------------------------------------------

CREATE VIEW ledger.events WITH (security_invoker = true) AS
SELECT x.ledger_offset, x.node_id,
       (SELECT max(e.node_id) FROM exercised e
        WHERE e.ledger_offset = x.ledger_offset AND e.node_id < x.node_id AND e.last_descendant_node_id >= x.node_id) AS parent_node_id,
       x.kind, x.contract_id, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, x.interface_id, x.choice, x.consuming,
       x.argument, x.result,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = x.acting_parties_ref) AS acting_parties,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = x.witness_parties_ref) AS witness_parties,
       x.acs_delta,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = x.ledger_offset AND x.node_id < 1073741824) AS update_id,
       (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = x.synchronizer_ref) AS synchronizer_id, x.record_time
FROM (
    SELECT c.ledger_offset, c.node_id, CASE c.origin WHEN 'assignment' THEN 'assigned' ELSE 'created' END AS kind, c.contract_id, c.template_ref,
           c.synchronizer_ref, c.record_time, NULL::text AS interface_id, NULL::text AS choice, NULL::boolean AS consuming, c.payload AS argument,
           NULL::jsonb AS result, NULL::integer AS acting_parties_ref, c.witness_parties_ref, c.acs_delta, c.ledger_offset AS shown_at
    FROM created c
    UNION ALL
    SELECT e.ledger_offset, e.node_id, 'exercised', e.contract_id, e.template_ref, e.synchronizer_ref, e.record_time, e.interface_id, e.choice,
           e.consuming, e.choice_argument, e.exercise_result, e.acting_parties_ref, e.witness_parties_ref, e.acs_delta, e.ledger_offset
    FROM exercised e
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 'archived', a.contract_id, a.template_ref, a.synchronizer_ref, a.record_time, NULL, NULL, NULL, NULL, NULL, NULL,
           a.witness_parties_ref, true, a.ledger_offset
    FROM archived a
    UNION ALL
    SELECT r.ledger_offset, r.node_id, r.kind, r.contract_id, r.template_ref, r.synchronizer_ref, r.record_time, NULL, NULL, NULL, NULL, NULL, NULL,
           r.witness_parties_ref, NULL, CASE r.kind WHEN 'unassigned' THEN r.ledger_offset END
    FROM reassignments r
) x
LEFT JOIN templates t ON t.template_ref = x.template_ref
WHERE btint8cmp(x.shown_at, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;
COMMENT ON VIEW ledger.events IS 'Creations, assignments, exercises, archivals and unassignments with the same columns. A transaction as a tree: WHERE ledger_offset = (SELECT ledger_offset FROM ledger.updates WHERE update_id = ...) AND update_id IS NOT NULL ORDER BY node_id, with parent_node_id. A consuming exercise archives its contract and is one row here. The shape acs-delta has no exercises, so events have no parents.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["ledger_offset"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.events.ledger_offset IS 'Offset of the update. For a row of a snapshot: the event''s offset as the snapshot has it. Indexed.';
COMMENT ON COLUMN ledger.events.node_id IS 'Place in the update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.events.parent_node_id IS 'Node of the innermost stored exercise that this event is a consequence of. NULL: there is none. Costs a look-up per row.';
COMMENT ON COLUMN ledger.events.kind IS 'created, assigned, exercised, archived or unassigned.';
COMMENT ON COLUMN ledger.events.contract_id IS 'The contract. Indexed.';
COMMENT ON COLUMN ledger.events.template_id IS 'Template, as served: package-id:Module:Entity.';
COMMENT ON COLUMN ledger.events.package_id IS 'Package id of the template.';
COMMENT ON COLUMN ledger.events.package_name IS 'Package name. NULL: not served.';
COMMENT ON COLUMN ledger.events.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.events.entity_name IS 'Name of the template.';
COMMENT ON COLUMN ledger.events.interface_id IS 'Of an exercise: the interface whose choice it is. NULL: the template''s own.';
COMMENT ON COLUMN ledger.events.choice IS 'Of an exercise: the choice. NULL otherwise.';
COMMENT ON COLUMN ledger.events.consuming IS 'Of an exercise: whether it archives the contract. NULL otherwise.';
COMMENT ON COLUMN ledger.events.argument IS 'Of a creation or assignment the create arguments, of an exercise the choice argument.';
COMMENT ON COLUMN ledger.events.result IS 'Of an exercise: its result.';
COMMENT ON COLUMN ledger.events.acting_parties IS 'Of an exercise: the parties that exercised the choice. Costs a look-up per row.';
COMMENT ON COLUMN ledger.events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw the event. Costs a look-up per row.';
COMMENT ON COLUMN ledger.events.acs_delta IS 'Whether it changes the active contracts of a stakeholder among the indexed parties; false: it was only witnessed, or one transaction created and archived the contract. NULL: not served.';
COMMENT ON COLUMN ledger.events.update_id IS 'Id of the update. NULL for rows of a snapshot, and for contracts that a change of the scope took in at the offset. Costs a look-up per row: to search by it, see the comment of the view.';
COMMENT ON COLUMN ledger.events.synchronizer_id IS 'The synchronizer. NULL: not served.';
COMMENT ON COLUMN ledger.events.record_time IS 'Record time of the update. NULL for rows of a snapshot.';

CREATE FUNCTION ledger.contract_history(contract_id text) RETURNS SETOF ledger.events LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT * FROM ledger.events e WHERE e.contract_id = contract_history.contract_id ORDER BY e.ledger_offset, e.node_id; END;
COMMENT ON FUNCTION ledger.contract_history(text) IS 'What happened to a contract, in the order of the ledger. No rows: nothing is known of it.';

-- Contracts whose creation was never seen --------------------------------------------------------------------------

CREATE TABLE lookups (
    ledger_offset     bigint  NOT NULL, -- the event that caused the look-up
    node_id           integer NOT NULL,
    contract_id       text    NOT NULL,
    status            text    NOT NULL DEFAULT 'wanted' CHECK (status IN ('wanted', 'found', 'not_found', 'unusable')),
    reason            text,
    looked_up_at      timestamptz,
    template_ref      integer,
    created_at        timestamptz,
    payload           jsonb,
    contract_key      jsonb,
    contract_key_hash bytea,
    signatories       text[],
    observers         text[],
    witness_parties   text[],
    exact             jsonb,
    PRIMARY KEY (ledger_offset, node_id),
    -- Each contract is looked up once. A unique btree would refuse a very long id, and with it the whole batch.
    CONSTRAINT lookups_once EXCLUDE USING hash (contract_id WITH =)
);
CREATE INDEX lookups_exact ON lookups (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX lookups_wanted ON lookups (ledger_offset, node_id) WHERE status = 'wanted';
COMMENT ON TABLE lookups IS 'Contracts that were archived or exercised and whose creation was never seen. Those with the status wanted wait for their look-up. The others are shown as ledger.looked_up_contracts and are not looked up again.';

CREATE FUNCTION lookup_events(to_inclusive bigint) RETURNS TABLE (contract_id text, ledger_offset bigint, node_id integer)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT a.contract_id, a.ledger_offset, a.node_id
FROM archived a
WHERE a.ledger_offset <= to_inclusive
UNION ALL
SELECT e.contract_id, e.ledger_offset, e.node_id
FROM exercised e
WHERE e.ledger_offset <= to_inclusive AND e.acs_delta IS NOT FALSE;
END;
COMMENT ON FUNCTION lookup_events(bigint) IS 'The events up to an offset whose contract should have a creation before them.';

-- "+ 0" has PostgreSQL find a contract's creation by its id: by a range of offsets as well, which it prefers where nothing was analyzed yet, it would
-- read the index of all offsets for each event.
CREATE FUNCTION missing_lookups(from_exclusive bigint, to_inclusive bigint) RETURNS TABLE (contract_id text, ledger_offset bigint, node_id integer)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT DISTINCT ON (k.contract_id COLLATE "C") k.contract_id, k.ledger_offset, k.node_id
FROM lookup_events(to_inclusive) k
WHERE k.ledger_offset > from_exclusive
  AND NOT EXISTS (SELECT FROM created c WHERE c.contract_id = k.contract_id AND c.ledger_offset + 0 <= to_inclusive)
  AND NOT EXISTS (SELECT FROM lookups l WHERE l.contract_id = k.contract_id)
ORDER BY k.contract_id COLLATE "C", k.ledger_offset, k.node_id;
END;
COMMENT ON FUNCTION missing_lookups(bigint, bigint) IS 'For each contract without a creation that is stored, and without a row in lookups, its first event in a range.';

-- A look-up is right if the event at its offset and node id is of its contract. Else it moves to the first event of its contract. If there
-- is none, it takes the contract of the event there, if that has no look-up. Else it is removed. An answer that contradicts itself is
-- dropped.
CREATE FUNCTION wanted_lookups(from_exclusive bigint, to_inclusive bigint) RETURNS SETOF lookups
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH events AS (
    SELECT * FROM lookup_events(to_inclusive)
), missing AS (
    SELECT * FROM missing_lookups(from_exclusive, to_inclusive)
), places AS (
    SELECT l.contract_id, l.ledger_offset, l.node_id,
        EXISTS (SELECT FROM events k WHERE k.contract_id = l.contract_id AND k.ledger_offset = l.ledger_offset AND k.node_id = l.node_id) AS is_right
    FROM lookups l
), firsts AS (
    SELECT DISTINCT ON (k.contract_id COLLATE "C") k.contract_id, k.ledger_offset, k.node_id
    FROM events k
    WHERE k.contract_id IN (SELECT p.contract_id FROM places p WHERE NOT p.is_right)
    ORDER BY k.contract_id COLLATE "C", k.ledger_offset, k.node_id
), moved AS (
    SELECT p.contract_id AS stored_as, coalesce(f.contract_id, h.contract_id) AS contract_id,
        coalesce(f.ledger_offset, h.ledger_offset) AS ledger_offset, coalesce(f.node_id, h.node_id) AS node_id
    FROM places p
    LEFT JOIN firsts f ON f.contract_id = p.contract_id
    LEFT JOIN events h ON f.contract_id IS NULL AND h.ledger_offset = p.ledger_offset AND h.node_id = p.node_id
        AND h.contract_id IN (SELECT m.contract_id FROM missing m)
    WHERE NOT p.is_right AND (f.contract_id IS NOT NULL OR h.contract_id IS NOT NULL)
), wanted AS (
    SELECT p.contract_id AS stored_as, p.contract_id, p.ledger_offset, p.node_id FROM places p WHERE p.is_right
    UNION ALL
    SELECT v.stored_as, v.contract_id, v.ledger_offset, v.node_id FROM moved v
    UNION ALL
    SELECT NULL, m.contract_id, m.ledger_offset, m.node_id FROM missing m
    WHERE NOT EXISTS (SELECT FROM moved v WHERE v.contract_id = m.contract_id)
)
SELECT w.ledger_offset, w.node_id, w.contract_id, coalesce(l.status, 'wanted'), l.reason, l.looked_up_at, l.template_ref, l.created_at, l.payload,
    l.contract_key, l.contract_key_hash, l.signatories, l.observers, l.witness_parties, l.exact
FROM wanted w
LEFT JOIN lookups l ON l.contract_id = w.stored_as
    AND CASE l.status
        WHEN 'wanted' THEN l.looked_up_at IS NULL AND l.reason IS NULL
        WHEN 'unusable' THEN l.looked_up_at IS NOT NULL AND l.reason IS NOT NULL
        ELSE l.looked_up_at IS NOT NULL AND l.reason IS NULL
    END
    AND CASE l.status
        WHEN 'found' THEN l.template_ref IS NOT NULL
        ELSE num_nonnulls(l.template_ref, l.created_at, l.payload, l.contract_key, l.contract_key_hash, l.signatories, l.observers, l.witness_parties, l.exact) = 0
    END;
END;
COMMENT ON FUNCTION wanted_lookups(bigint, bigint) IS 'The rows that lookups should hold: its rows as far as events up to an offset need them, and the missing look-ups of a range.';

CREATE VIEW ledger.looked_up_contracts WITH (security_invoker = true) AS
SELECT l.contract_id, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, l.payload, l.contract_key,
       l.contract_key_hash, l.signatories, l.observers, l.witness_parties, l.created_at, l.looked_up_at, l.status, l.reason,
       l.ledger_offset, l.node_id
FROM lookups l
LEFT JOIN templates t ON t.template_ref = l.template_ref
WHERE l.status <> 'wanted' AND btint8cmp(l.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.looked_up_contracts IS 'One row per contract that has an archival here and no creation (usually because it was created before ledger.oldest_offset()), and that the indexer looked up by its id. Events whose acs_delta is false cause no look-up: those contracts were divulged or lived in one transaction only, and servers send false with every exercise that archives nothing. A row is not a creation event: a look-up returns no offset, node id, blob and interface views, and the contract is not in ledger.created_events. Don''t rely on it for contracts that came to the participant by party replication or by the repair service: for these the server does not know which package represents the contract. Each contract is looked up once: an answer, not_found too, is final.
@graphql({"primary_key_columns": ["contract_id"]})';
COMMENT ON COLUMN ledger.looked_up_contracts.contract_id IS 'The contract. One row each. Indexed.';
COMMENT ON COLUMN ledger.looked_up_contracts.template_id IS 'Template as the server sent it, package-id:Module:Entity. It may name another package than the contract''s archival does. Of a contract that came by party replication or by the repair service don''t rely on it: the server always names the contract''s own package, which need not be the one that represents it. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.package_id IS 'The part of template_id before the first colon. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.package_name IS 'Name of the package, the same over its releases. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.module_name IS 'Module of the template, with dots. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.entity_name IS 'Name of the template within its module. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.payload IS 'The contract''s arguments, as in ledger.created_events; NULL unless status is found. An object with the key $exact stands in for a payload that jsonb cannot hold: see ledger.exact_payloads, stream lookups.';
COMMENT ON COLUMN ledger.looked_up_contracts.contract_key IS 'The contract''s key. NULL: its template has none, or status is not found. Can be a stand-in with the key $exact, as payload can.';
COMMENT ON COLUMN ledger.looked_up_contracts.contract_key_hash IS 'Hash of the key. Empty where there is no key; NULL where the server sent no such field, or status is not found.';
COMMENT ON COLUMN ledger.looked_up_contracts.signatories IS 'Parties that signed the contract. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.observers IS 'Parties that may see the contract beside its signatories. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.witness_parties IS 'The parties that the indexer reads for and that are stakeholders of the contract. Not who saw its creation. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.created_at IS 'Ledger time of the contract''s creation. Microseconds, UTC. NULL unless status is found.';
COMMENT ON COLUMN ledger.looked_up_contracts.looked_up_at IS 'When the participant was asked (clock of the indexer).';
COMMENT ON COLUMN ledger.looked_up_contracts.status IS 'found. not_found: the participant does not know the contract, has pruned it, or none of the parties that the indexer reads for is a stakeholder. unusable: the answer could not be used, see reason.';
COMMENT ON COLUMN ledger.looked_up_contracts.reason IS 'Why the answer could not be used, for people to read. NULL unless status is unusable.';
COMMENT ON COLUMN ledger.looked_up_contracts.ledger_offset IS 'Offset of the archival or exercise that caused the look-up. Not the offset of the contract''s creation, which a look-up does not return.';
COMMENT ON COLUMN ledger.looked_up_contracts.node_id IS 'Node id of that archival or exercise. (ledger_offset, node_id) is unique.';

-- Values that their own column cannot hold, of all streams ---------------------------------------------------------

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
