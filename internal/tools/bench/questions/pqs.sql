-- The layout of the Participant Query Store, with the same data. A contract is a row with its payload, parties and the int8range of its life, in a
-- partition for each type; so is each interface view. Its indexes are those of PQS, and on transactions those that favour it. The number of
-- a transaction (ix) is its offset, and its time is the record time, so that answers can be compared.

CREATE SCHEMA pqs_layout;
SET LOCAL search_path = pqs_layout;
SET LOCAL work_mem = '256MB';
SET LOCAL maintenance_work_mem = '512MB';

CREATE TABLE transactions AS
SELECT u.ledger_offset AS ix, u.ledger_offset AS "offset", u.update_id AS transaction_id, u.record_time AS effective_at, u.workflow_id, u.synchronizer_ref, u.trace_parent,
       u.trace_state, u.paid_traffic_cost
FROM indexer.updates u WHERE u.kind <> 'topology';
ALTER TABLE transactions ADD PRIMARY KEY (ix);
CREATE UNIQUE INDEX ON transactions ("offset");
CREATE INDEX ON transactions (effective_at);
CREATE INDEX ON transactions USING hash (transaction_id);

CREATE TABLE interface_names AS SELECT * FROM indexer.interface_names; -- a view, and slow
ANALYZE interface_names;

CREATE TABLE packages AS
SELECT row_number() OVER ()::bigint AS pk, p.* FROM (SELECT DISTINCT package_id, package_name FROM indexer.templates) p;
CREATE TABLE contract_tpe AS
SELECT row_number() OVER (ORDER BY t.payload_type, t.module_name, t.entity_name)::bigint AS pk, t.*
FROM (
    SELECT DISTINCT 'template' AS payload_type, package_name, module_name, entity_name FROM indexer.templates
    UNION
    SELECT DISTINCT 'interface', package_name, module_name, entity_name FROM interface_names
) t;

CREATE TABLE contracts (
    tpe_pk bigint, create_event_pk bigint, created_at_ix bigint, archive_event_pk bigint, archived_at_ix bigint,
    life_ix int8range GENERATED ALWAYS AS (int8range(created_at_ix, archived_at_ix)) STORED,
    contract_id text, payload jsonb, contract_key jsonb, metadata bytea, redaction_id text, package_pk bigint,
    signatories text[], observers text[], witnesses text[], divulged_only boolean, creation_package_id text, contract_key_hash bytea
) PARTITION BY LIST (tpe_pk);
DO $$
DECLARE
    pk bigint;
BEGIN
    FOR pk IN SELECT t.pk FROM pqs_layout.contract_tpe t LOOP
        EXECUTE format('CREATE TABLE contracts_%s PARTITION OF contracts FOR VALUES IN (%s)', pk, pk);
    END LOOP;
END
$$;

-- An event's number is its offset and node.
CREATE TABLE creations AS
SELECT c.ledger_offset, c.node_id, c.ledger_offset * 1000 + c.node_id AS create_event_pk, coalesce(l.ended, x.ledger_offset) AS archived_at_ix, c.contract_id,
       c.template_ref, k.pk AS package_pk, si.parties AS signatories, ob.parties AS observers, wi.parties AS witnesses, c.acs_delta IS FALSE AS divulged_only,
       c.contract_key, c.contract_key_hash, c.payload
FROM indexer.created c
JOIN indexer.templates t ON t.template_ref = c.template_ref
JOIN packages k ON k.package_id = t.package_id AND k.package_name = t.package_name
LEFT JOIN (
    SELECT activated_offset, activated_node_id, deactivated_offset AS ended FROM indexer.lifetimes
) l ON l.activated_offset = c.ledger_offset AND l.activated_node_id = c.node_id
LEFT JOIN indexer.exercised x ON x.contract_id = c.contract_id AND x.consuming AND c.acs_delta IS FALSE
LEFT JOIN indexer.party_lists si ON si.party_list_ref = c.signatories_ref
LEFT JOIN indexer.party_lists ob ON ob.party_list_ref = c.observers_ref
LEFT JOIN indexer.party_lists wi ON wi.party_list_ref = c.witness_parties_ref;
CREATE UNIQUE INDEX ON creations (ledger_offset, node_id);
ANALYZE creations;

INSERT INTO contracts (tpe_pk, create_event_pk, created_at_ix, archived_at_ix, contract_id, payload, contract_key, package_pk, signatories, observers, witnesses,
    divulged_only, contract_key_hash)
SELECT p.pk, c.create_event_pk, c.ledger_offset, c.archived_at_ix, c.contract_id, c.payload, c.contract_key, c.package_pk, c.signatories, c.observers, c.witnesses,
       c.divulged_only, c.contract_key_hash
FROM creations c
JOIN indexer.templates t ON t.template_ref = c.template_ref
JOIN contract_tpe p ON p.payload_type = 'template' AND p.package_name = t.package_name AND p.module_name = t.module_name AND p.entity_name = t.entity_name;
INSERT INTO contracts (tpe_pk, create_event_pk, created_at_ix, archived_at_ix, contract_id, payload, package_pk, signatories, observers, witnesses, divulged_only)
SELECT p.pk, c.create_event_pk, c.ledger_offset, c.archived_at_ix, c.contract_id, coalesce(v.view_value, h.view_value), c.package_pk, c.signatories, c.observers,
       c.witnesses, c.divulged_only
FROM indexer.interface_views v
JOIN creations c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
JOIN interface_names n ON n.interface_id = v.interface_id
JOIN contract_tpe p ON p.payload_type = 'interface' AND p.package_name = n.package_name AND p.module_name = n.module_name AND p.entity_name = n.entity_name
LEFT JOIN LATERAL (
    -- PQS has no view that the participant could not compute; ours reads an amulet's payload then.
    SELECT jsonb_build_object('owner', o.owner, 'amount', o.amount::text, 'instrumentId', jsonb_build_object('id', o.instrument, 'admin', o.instrument_admin),
                              'lock', CASE WHEN o.locked THEN c.payload -> 'lock' END) AS view_value
    FROM indexer.holding_events o
    WHERE v.status_code <> 0 AND n.module_name = 'Splice.Api.Token.HoldingV1' AND o.ledger_offset = c.ledger_offset AND o.node_id = c.node_id
    LIMIT 1
) h ON true
WHERE coalesce(v.status_code, 0) = 0 OR h.view_value IS NOT NULL;
DROP TABLE creations;
CREATE INDEX ON contracts (created_at_ix) INCLUDE (tpe_pk);
CREATE INDEX ON contracts (archived_at_ix) INCLUDE (tpe_pk);
CREATE INDEX ON contracts (create_event_pk);
CREATE INDEX ON contracts USING hash (contract_id);
CREATE INDEX ON contracts USING gist (life_ix) WHERE NOT divulged_only;

CREATE TABLE exercise_tpe AS
SELECT row_number() OVER (ORDER BY x.entity_name, x.choice)::bigint AS pk, x.*
FROM (
    SELECT DISTINCT e.choice, e.consuming, coalesce(n.package_name, t.package_name) AS package_name, coalesce(n.module_name, t.module_name) AS module_name,
           coalesce(n.entity_name, t.entity_name) AS entity_name
    FROM (SELECT DISTINCT template_ref, interface_id, choice, consuming FROM indexer.exercised) e
    JOIN indexer.templates t ON t.template_ref = e.template_ref
    LEFT JOIN interface_names n ON n.interface_id = e.interface_id
) x;
CREATE TABLE exercises (
    tpe_pk bigint, contract_tpe_pk bigint, exercise_event_pk bigint, exercised_at_ix bigint, contract_id text, argument jsonb, result jsonb, redaction_id text,
    package_pk bigint, controllers text[], last_descendant_node_id integer, witnesses text[]
) PARTITION BY LIST (tpe_pk);
DO $$
DECLARE
    pk bigint;
BEGIN
    FOR pk IN SELECT t.pk FROM pqs_layout.exercise_tpe t LOOP
        EXECUTE format('CREATE TABLE exercises_%s PARTITION OF exercises FOR VALUES IN (%s)', pk, pk);
    END LOOP;
END
$$;
INSERT INTO exercises
SELECT p.pk, c.pk, e.ledger_offset * 1000 + e.node_id, e.ledger_offset, e.contract_id, e.choice_argument, e.exercise_result, NULL, k.pk, ac.parties,
       e.last_descendant_node_id, wi.parties
FROM indexer.exercised e
JOIN indexer.templates t ON t.template_ref = e.template_ref
JOIN packages k ON k.package_id = t.package_id AND k.package_name = t.package_name
JOIN contract_tpe c ON c.payload_type = 'template' AND c.package_name = t.package_name AND c.module_name = t.module_name AND c.entity_name = t.entity_name
LEFT JOIN interface_names n ON n.interface_id = e.interface_id
JOIN exercise_tpe p ON p.choice = e.choice AND p.package_name = coalesce(n.package_name, t.package_name) AND p.module_name = coalesce(n.module_name, t.module_name)
    AND p.entity_name = coalesce(n.entity_name, t.entity_name)
LEFT JOIN indexer.party_lists ac ON ac.party_list_ref = e.acting_parties_ref
LEFT JOIN indexer.party_lists wi ON wi.party_list_ref = e.witness_parties_ref;
CREATE INDEX ON exercises (exercised_at_ix) INCLUDE (tpe_pk);
CREATE INDEX ON exercises (exercise_event_pk);
CREATE INDEX ON exercises USING hash (contract_id);
