-- Lists of parties that are stored once. A contract's signatories, observers and witnesses are a third of what is stored of
-- it, and mostly the same lists as another one's: facts and carried rows refer to them by their number.

-- +goose Up

CREATE TABLE indexer.party_lists (
    party_list_ref integer PRIMARY KEY CHECK (party_list_ref > 0),
    parties        text[]  NOT NULL,
    -- A unique btree would refuse a list of more than 2.7 kB.
    CONSTRAINT party_lists_once EXCLUDE USING hash (parties WITH =)
);
COMMENT ON TABLE indexer.party_lists IS 'Each list of parties that was served, in the order in which it was. Written before the rows that refer to it, as the other dictionaries are, and kept when they go.';

INSERT INTO indexer.party_lists (party_list_ref, parties)
SELECT row_number() OVER (ORDER BY l.parties), l.parties
FROM (
    SELECT signatories FROM indexer.created
    UNION SELECT observers FROM indexer.created
    UNION SELECT witness_parties FROM indexer.created
    UNION SELECT witness_parties FROM indexer.archived
    UNION SELECT acting_parties FROM indexer.exercised
    UNION SELECT witness_parties FROM indexer.exercised
    UNION SELECT witness_parties FROM indexer.reassignments
    UNION SELECT signatories FROM indexer.carried_created
    UNION SELECT observers FROM indexer.carried_created
    UNION SELECT witness_parties FROM indexer.carried_created
    UNION SELECT witness_parties FROM indexer.carried_reassignments
) l (parties)
WHERE l.parties IS NOT NULL;

CREATE FUNCTION indexer.party_list_number(list text[]) RETURNS integer LANGUAGE sql STABLE
RETURN (SELECT p.party_list_ref FROM indexer.party_lists p WHERE p.parties = list);

-- The views that name the columns let go of them and take them up again: who made views of their own of these, or has rights on
-- them, keeps both.
-- +goose StatementBegin
DO $$
DECLARE
    v record;
BEGIN
    FOR v IN
        SELECT a.attrelid::regclass AS name, string_agg(format('NULL::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname), ', ' ORDER BY a.attnum) AS columns
        FROM pg_attribute a
        WHERE a.attrelid = ANY ('{indexer.creations,ledger.archived_events,ledger.exercised_events,ledger.reassignments}'::regclass[]) AND a.attnum > 0
        GROUP BY a.attrelid
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW %s AS SELECT %s WHERE false', v.name, v.columns);
    END LOOP;
END
$$;
-- +goose StatementEnd

ALTER TABLE indexer.created
    ALTER COLUMN signatories TYPE integer USING indexer.party_list_number(signatories),
    ALTER COLUMN observers TYPE integer USING indexer.party_list_number(observers),
    ALTER COLUMN witness_parties TYPE integer USING indexer.party_list_number(witness_parties);
ALTER TABLE indexer.archived ALTER COLUMN witness_parties TYPE integer USING indexer.party_list_number(witness_parties);
ALTER TABLE indexer.exercised ALTER COLUMN acting_parties TYPE integer USING indexer.party_list_number(acting_parties),
    ALTER COLUMN witness_parties TYPE integer USING indexer.party_list_number(witness_parties);
ALTER TABLE indexer.reassignments ALTER COLUMN witness_parties TYPE integer USING indexer.party_list_number(witness_parties);
ALTER TABLE indexer.carried_created
    ALTER COLUMN signatories TYPE integer USING indexer.party_list_number(signatories),
    ALTER COLUMN observers TYPE integer USING indexer.party_list_number(observers),
    ALTER COLUMN witness_parties TYPE integer USING indexer.party_list_number(witness_parties);
ALTER TABLE indexer.carried_reassignments ALTER COLUMN witness_parties TYPE integer USING indexer.party_list_number(witness_parties);

ALTER TABLE indexer.created RENAME COLUMN signatories TO signatories_ref;
ALTER TABLE indexer.created RENAME COLUMN observers TO observers_ref;
ALTER TABLE indexer.created RENAME COLUMN witness_parties TO witness_parties_ref;
ALTER TABLE indexer.archived RENAME COLUMN witness_parties TO witness_parties_ref;
ALTER TABLE indexer.exercised RENAME COLUMN acting_parties TO acting_parties_ref;
ALTER TABLE indexer.exercised RENAME COLUMN witness_parties TO witness_parties_ref;
ALTER TABLE indexer.reassignments RENAME COLUMN witness_parties TO witness_parties_ref;
ALTER TABLE indexer.carried_created RENAME COLUMN signatories TO signatories_ref;
ALTER TABLE indexer.carried_created RENAME COLUMN observers TO observers_ref;
ALTER TABLE indexer.carried_created RENAME COLUMN witness_parties TO witness_parties_ref;
ALTER TABLE indexer.carried_reassignments RENAME COLUMN witness_parties TO witness_parties_ref;

DROP FUNCTION indexer.party_list_number(text[]);

-- Where the events of many rows are read, lists are joined: a condition on them is then looked at once for each list. Where one
-- event is looked up, so are they. For a query over two relations PostgreSQL looks for the best order of up to 8 tables
-- (join_collapse_limit) and counts those that it leaves out later; with more it reads one of the two relations whole. So the
-- synchronizer is looked up, that active_contracts or archived_events with created_events are no more than 8.
CREATE OR REPLACE VIEW indexer.creations AS
SELECT c.ledger_offset, c.node_id, c.origin, c.contract_id, c.template_ref, c.synchronizer_ref, c.record_time,
       c.created_at, c.acs_delta, c.payload, c.contract_key, c.contract_key_hash,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = c.signatories_ref) AS signatories,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = c.observers_ref) AS observers,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = c.witness_parties_ref) AS witness_parties,
       c.created_event_blob, c.extra,
       (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = c.ledger_offset) AS update_id,
       (SELECT u.workflow_id FROM indexer.updates u WHERE u.ledger_offset = c.ledger_offset) AS workflow_id,
       c.signatories_ref, c.observers_ref, c.witness_parties_ref
FROM indexer.created c
UNION ALL
SELECT c.ledger_offset, c.node_id, 'snapshot', c.contract_id, c.template_ref, c.synchronizer_ref, NULL::timestamptz,
       c.created_at, c.acs_delta, c.payload, c.contract_key, c.contract_key_hash,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = c.signatories_ref) AS signatories,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = c.observers_ref) AS observers,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = c.witness_parties_ref) AS witness_parties,
       c.created_event_blob, c.extra, NULL::text, c.workflow_id,
       c.signatories_ref, c.observers_ref, c.witness_parties_ref
FROM indexer.carried_created c;

CREATE OR REPLACE VIEW ledger.created_events AS
SELECT c.ledger_offset, c.node_id, c.origin, c.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, t.representative_package_id, c.payload, c.contract_key, c.contract_key_hash, si.parties AS signatories,
       ob.parties AS observers, wi.parties AS witness_parties, c.created_at, c.acs_delta, c.created_event_blob, c.workflow_id, c.update_id,
       (SELECT s.synchronizer_id FROM indexer.synchronizers s WHERE s.synchronizer_ref = c.synchronizer_ref) AS synchronizer_id, c.record_time, c.extra
FROM indexer.creations c
LEFT JOIN indexer.templates t ON t.template_ref = c.template_ref
LEFT JOIN indexer.party_lists si ON si.party_list_ref = c.signatories_ref
LEFT JOIN indexer.party_lists ob ON ob.party_list_ref = c.observers_ref
LEFT JOIN indexer.party_lists wi ON wi.party_list_ref = c.witness_parties_ref
WHERE c.ledger_offset + 0 <= (SELECT ledger.latest_offset());

CREATE OR REPLACE VIEW ledger.archived_events AS
SELECT a.ledger_offset, a.node_id, a.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, a.choice,
       (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = a.acting_parties_ref) AS acting_parties,
       wi.parties AS witness_parties, a.acs_delta, a.implemented_interfaces,
       (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = a.ledger_offset) AS update_id,
       (SELECT s.synchronizer_id FROM indexer.synchronizers s WHERE s.synchronizer_ref = a.synchronizer_ref) AS synchronizer_id, a.record_time, a.extra
FROM (
    SELECT x.ledger_offset, x.node_id, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           NULL::text AS choice, NULL::integer AS acting_parties_ref, x.witness_parties_ref, true AS acs_delta,
           x.implemented_interfaces, x.extra
    FROM indexer.archived x
    UNION ALL
    SELECT x.ledger_offset, x.node_id, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           x.choice, x.acting_parties_ref, x.witness_parties_ref, x.acs_delta, x.implemented_interfaces, x.extra
    FROM indexer.exercised x
    WHERE x.consuming
) a
LEFT JOIN indexer.templates t ON t.template_ref = a.template_ref
LEFT JOIN indexer.party_lists wi ON wi.party_list_ref = a.witness_parties_ref
WHERE a.ledger_offset + 0 <= (SELECT ledger.latest_offset());

CREATE OR REPLACE VIEW ledger.exercised_events AS
SELECT e.ledger_offset, e.node_id, e.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, e.interface_id, e.choice, e.choice_argument, e.exercise_result, ac.parties AS acting_parties, e.consuming,
       e.last_descendant_node_id, wi.parties AS witness_parties, e.acs_delta, e.implemented_interfaces,
       (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       (SELECT s.synchronizer_id FROM indexer.synchronizers s WHERE s.synchronizer_ref = e.synchronizer_ref) AS synchronizer_id, e.record_time, e.extra
FROM indexer.exercised e
LEFT JOIN indexer.templates t ON t.template_ref = e.template_ref
LEFT JOIN indexer.party_lists ac ON ac.party_list_ref = e.acting_parties_ref
LEFT JOIN indexer.party_lists wi ON wi.party_list_ref = e.witness_parties_ref
WHERE e.ledger_offset + 0 <= (SELECT ledger.latest_offset());

CREATE OR REPLACE VIEW ledger.reassignments AS
SELECT r.ledger_offset, r.node_id, r.kind, r.contract_id, t.template_id, t.package_name, t.module_name, t.entity_name, r.reassignment_id,
       so.synchronizer_id AS source_synchronizer_id, ta.synchronizer_id AS target_synchronizer_id, r.submitter,
       r.reassignment_counter, r.assignment_exclusivity, wi.parties AS witness_parties, r.update_id,
       (SELECT s.synchronizer_id FROM indexer.synchronizers s WHERE s.synchronizer_ref = r.synchronizer_ref) AS synchronizer_id,
       r.record_time, r.extra
FROM (
    SELECT x.ledger_offset, x.node_id, x.kind, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           x.reassignment_id, x.source_ref, x.target_ref, x.submitter, x.reassignment_counter, x.assignment_exclusivity,
           x.witness_parties_ref, x.extra,
           (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = x.ledger_offset) AS update_id
    FROM indexer.reassignments x
    UNION ALL
    SELECT x.ledger_offset, x.node_id, x.kind, x.contract_id, x.template_ref, x.synchronizer_ref, NULL::timestamptz,
           x.reassignment_id, x.source_ref, x.target_ref, x.submitter, x.reassignment_counter, x.assignment_exclusivity,
           x.witness_parties_ref, x.extra, NULL::text
    FROM indexer.carried_reassignments x
) r
LEFT JOIN indexer.templates t ON t.template_ref = r.template_ref
LEFT JOIN indexer.synchronizers so ON so.synchronizer_ref = r.source_ref
LEFT JOIN indexer.synchronizers ta ON ta.synchronizer_ref = r.target_ref
LEFT JOIN indexer.party_lists wi ON wi.party_list_ref = r.witness_parties_ref
WHERE r.ledger_offset + 0 <= (SELECT ledger.latest_offset());

-- +goose Down

-- The views that are made of indexer.creations are kept while it is made anew, with fewer columns.
CREATE TEMPORARY TABLE kept_views AS
SELECT v.name, pg_get_viewdef(v.name) AS definition FROM unnest('{ledger.active_contracts,indexer.holding_events}'::regclass[]) v (name);

-- +goose StatementBegin
DO $$
DECLARE
    v record;
BEGIN
    FOR v IN
        SELECT a.attrelid::regclass AS name, string_agg(format('NULL::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname), ', ' ORDER BY a.attnum) AS columns
        FROM pg_attribute a
        WHERE a.attrelid = ANY ('{ledger.created_events,ledger.archived_events,ledger.exercised_events,ledger.reassignments,ledger.active_contracts,indexer.holding_events}'::regclass[]) AND a.attnum > 0
        GROUP BY a.attrelid
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW %s AS SELECT %s WHERE false', v.name, v.columns);
    END LOOP;
END
$$;
-- +goose StatementEnd

DROP VIEW indexer.creations;

CREATE FUNCTION indexer.party_list(ref integer) RETURNS text[] LANGUAGE sql STABLE
RETURN (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = ref);

ALTER TABLE indexer.created
    ALTER COLUMN signatories_ref TYPE text[] USING indexer.party_list(signatories_ref),
    ALTER COLUMN observers_ref TYPE text[] USING indexer.party_list(observers_ref),
    ALTER COLUMN witness_parties_ref TYPE text[] USING indexer.party_list(witness_parties_ref);
ALTER TABLE indexer.archived ALTER COLUMN witness_parties_ref TYPE text[] USING indexer.party_list(witness_parties_ref);
ALTER TABLE indexer.exercised ALTER COLUMN acting_parties_ref TYPE text[] USING indexer.party_list(acting_parties_ref),
    ALTER COLUMN witness_parties_ref TYPE text[] USING indexer.party_list(witness_parties_ref);
ALTER TABLE indexer.reassignments ALTER COLUMN witness_parties_ref TYPE text[] USING indexer.party_list(witness_parties_ref);
ALTER TABLE indexer.carried_created
    ALTER COLUMN signatories_ref TYPE text[] USING indexer.party_list(signatories_ref),
    ALTER COLUMN observers_ref TYPE text[] USING indexer.party_list(observers_ref),
    ALTER COLUMN witness_parties_ref TYPE text[] USING indexer.party_list(witness_parties_ref);
ALTER TABLE indexer.carried_reassignments ALTER COLUMN witness_parties_ref TYPE text[] USING indexer.party_list(witness_parties_ref);

ALTER TABLE indexer.created RENAME COLUMN signatories_ref TO signatories;
ALTER TABLE indexer.created RENAME COLUMN observers_ref TO observers;
ALTER TABLE indexer.created RENAME COLUMN witness_parties_ref TO witness_parties;
ALTER TABLE indexer.archived RENAME COLUMN witness_parties_ref TO witness_parties;
ALTER TABLE indexer.exercised RENAME COLUMN acting_parties_ref TO acting_parties;
ALTER TABLE indexer.exercised RENAME COLUMN witness_parties_ref TO witness_parties;
ALTER TABLE indexer.reassignments RENAME COLUMN witness_parties_ref TO witness_parties;
ALTER TABLE indexer.carried_created RENAME COLUMN signatories_ref TO signatories;
ALTER TABLE indexer.carried_created RENAME COLUMN observers_ref TO observers;
ALTER TABLE indexer.carried_created RENAME COLUMN witness_parties_ref TO witness_parties;
ALTER TABLE indexer.carried_reassignments RENAME COLUMN witness_parties_ref TO witness_parties;

DROP FUNCTION indexer.party_list(integer);
DROP TABLE indexer.party_lists;

CREATE OR REPLACE VIEW indexer.creations AS
SELECT c.ledger_offset, c.node_id, c.origin, c.contract_id, c.template_ref, c.synchronizer_ref, c.record_time,
       c.created_at, c.acs_delta, c.payload, c.contract_key, c.contract_key_hash, c.signatories, c.observers,
       c.witness_parties, c.created_event_blob, c.extra,
       (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = c.ledger_offset) AS update_id,
       (SELECT u.workflow_id FROM indexer.updates u WHERE u.ledger_offset = c.ledger_offset) AS workflow_id
FROM indexer.created c
UNION ALL
SELECT c.ledger_offset, c.node_id, 'snapshot', c.contract_id, c.template_ref, c.synchronizer_ref, NULL::timestamptz,
       c.created_at, c.acs_delta, c.payload, c.contract_key, c.contract_key_hash, c.signatories, c.observers,
       c.witness_parties, c.created_event_blob, c.extra, NULL::text, c.workflow_id
FROM indexer.carried_created c;

CREATE OR REPLACE VIEW ledger.created_events AS
SELECT c.ledger_offset, c.node_id, c.origin, c.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, t.representative_package_id, c.payload, c.contract_key, c.contract_key_hash, c.signatories,
       c.observers, c.witness_parties, c.created_at, c.acs_delta, c.created_event_blob, c.workflow_id, c.update_id,
       s.synchronizer_id, c.record_time, c.extra
FROM indexer.creations c
LEFT JOIN indexer.templates t ON t.template_ref = c.template_ref
LEFT JOIN indexer.synchronizers s ON s.synchronizer_ref = c.synchronizer_ref
WHERE c.ledger_offset + 0 <= (SELECT ledger.latest_offset());

CREATE OR REPLACE VIEW ledger.archived_events AS
SELECT a.ledger_offset, a.node_id, a.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, a.choice, a.acting_parties, a.witness_parties, a.acs_delta, a.implemented_interfaces,
       (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = a.ledger_offset) AS update_id,
       s.synchronizer_id, a.record_time, a.extra
FROM (
    SELECT x.ledger_offset, x.node_id, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           NULL::text AS choice, NULL::text[] AS acting_parties, x.witness_parties, true AS acs_delta, x.implemented_interfaces, x.extra
    FROM indexer.archived x
    UNION ALL
    SELECT x.ledger_offset, x.node_id, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           x.choice, x.acting_parties, x.witness_parties, x.acs_delta, x.implemented_interfaces, x.extra
    FROM indexer.exercised x
    WHERE x.consuming
) a
LEFT JOIN indexer.templates t ON t.template_ref = a.template_ref
LEFT JOIN indexer.synchronizers s ON s.synchronizer_ref = a.synchronizer_ref
WHERE a.ledger_offset + 0 <= (SELECT ledger.latest_offset());

CREATE OR REPLACE VIEW ledger.exercised_events AS
SELECT e.ledger_offset, e.node_id, e.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, e.interface_id, e.choice, e.choice_argument, e.exercise_result, e.acting_parties, e.consuming,
       e.last_descendant_node_id, e.witness_parties, e.acs_delta, e.implemented_interfaces,
       (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       s.synchronizer_id, e.record_time, e.extra
FROM indexer.exercised e
LEFT JOIN indexer.templates t ON t.template_ref = e.template_ref
LEFT JOIN indexer.synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
WHERE e.ledger_offset + 0 <= (SELECT ledger.latest_offset());

CREATE OR REPLACE VIEW ledger.reassignments AS
SELECT r.ledger_offset, r.node_id, r.kind, r.contract_id, t.template_id, t.package_name, t.module_name, t.entity_name, r.reassignment_id,
       so.synchronizer_id AS source_synchronizer_id, ta.synchronizer_id AS target_synchronizer_id, r.submitter,
       r.reassignment_counter, r.assignment_exclusivity, r.witness_parties, r.update_id, s.synchronizer_id,
       r.record_time, r.extra
FROM (
    SELECT x.ledger_offset, x.node_id, x.kind, x.contract_id, x.template_ref, x.synchronizer_ref, x.record_time,
           x.reassignment_id, x.source_ref, x.target_ref, x.submitter, x.reassignment_counter, x.assignment_exclusivity,
           x.witness_parties, x.extra,
           (SELECT u.update_id FROM indexer.updates u WHERE u.ledger_offset = x.ledger_offset) AS update_id
    FROM indexer.reassignments x
    UNION ALL
    SELECT x.ledger_offset, x.node_id, x.kind, x.contract_id, x.template_ref, x.synchronizer_ref, NULL::timestamptz,
           x.reassignment_id, x.source_ref, x.target_ref, x.submitter, x.reassignment_counter, x.assignment_exclusivity,
           x.witness_parties, x.extra, NULL::text
    FROM indexer.carried_reassignments x
) r
LEFT JOIN indexer.templates t ON t.template_ref = r.template_ref
LEFT JOIN indexer.synchronizers so ON so.synchronizer_ref = r.source_ref
LEFT JOIN indexer.synchronizers ta ON ta.synchronizer_ref = r.target_ref
LEFT JOIN indexer.synchronizers s ON s.synchronizer_ref = r.synchronizer_ref
WHERE r.ledger_offset + 0 <= (SELECT ledger.latest_offset());

COMMENT ON VIEW indexer.creations IS 'Creation events of facts and carried rows together, with references instead of long names: what the views of schema ledger are made of.';

-- +goose StatementBegin
DO $$
DECLARE
    v record;
BEGIN
    FOR v IN SELECT k.name, k.definition FROM kept_views k LOOP
        EXECUTE format('CREATE OR REPLACE VIEW %s AS %s', v.name, v.definition);
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP TABLE kept_views;
