-- The analysts' views. Names, columns and meaning are a contract: they do not change.
-- A column that needs a look-up elsewhere (update_id, payload of an active contract) is a scalar subquery, so that
-- only queries that name it pay for it. It stands outside of unions: what is in a branch is planned with every query, whether that names
-- it or not, and updates can have many partitions. Rows of a snapshot have no update, also where one lies at the offset of a resync.
-- Conditions on the watermark are true of almost every row, and the planner takes "btint8cmp(x, y) <> 1",
-- which is x <= y, as that: of "<=" with a value that it doesn't know it expects a third of the rows, and so nested loops where there are
-- many. Nor does it combine a scan of the whole primary key with the selective index.
-- For a condition inside a union PostgreSQL would read the whole table even if a join needs few rows. So conditions are outside of unions,
-- on shown_at, which is NULL for rows that are not shown. There the watermark is read from its table: the function would be planned again
-- in each query.
-- A joined list of parties is shown only if it is the event's. A condition on the column then depends on both rows, so that no function of
-- a reader gets a list before the event is known to be visible to him (docs/access.md).

-- +goose Up

-- Where the data stands ------------------------------------------------------------------------------------------

-- SECURITY DEFINER: like views they read with their owner's rights, so analysts need none in schema indexer. PL/pgSQL: a session plans
-- such a function once. One in SQL is planned again with each query that calls it, since one with its owner's rights can't be inlined.

CREATE FUNCTION ledger.latest_offset() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');
END
$$;
COMMENT ON FUNCTION ledger.latest_offset() IS 'The watermark: everything up to this offset is complete, and nothing after it is shown. NULL: nothing has been indexed.';

CREATE FUNCTION ledger.oldest_offset() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT x.history_floor FROM floors x WHERE x.stream = 'updates');
END
$$;
COMMENT ON FUNCTION ledger.oldest_offset() IS 'Events with a greater offset are complete up to latest_offset(). 0: since the beginning of the ledger. Pruning raises it.';

CREATE FUNCTION ledger.state_floor() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT x.state_floor FROM floors x WHERE x.stream = 'updates');
END
$$;
COMMENT ON FUNCTION ledger.state_floor() IS 'The active set is known at every offset from this one on. NULL: at none, because indexing began in the middle without a snapshot. Pruning raises it.';

CREATE VIEW ledger.coverage AS
SELECT c.stream, c.scope, c.from_exclusive, least(c.to_inclusive, ledger.latest_offset()) AS to_inclusive,
       c.scope = coalesce((SELECT f.changed_to FROM floors f WHERE f.stream = 'updates'), c.scope) AS in_force
FROM coverage c
WHERE c.from_exclusive < ledger.latest_offset();
COMMENT ON VIEW ledger.coverage IS 'Offset ranges whose events are complete, up to latest_offset(). The first begins at oldest_offset(). Each is of one scope.';
COMMENT ON COLUMN ledger.coverage.stream IS 'updates.';
COMMENT ON COLUMN ledger.coverage.scope IS 'Hash of the scope: parties, templates, interfaces, shape and so on.';
COMMENT ON COLUMN ledger.coverage.from_exclusive IS 'The range begins after this offset.';
COMMENT ON COLUMN ledger.coverage.to_inclusive IS 'The range ends with this offset.';

-- Creation events for look-ups -----------------------------------------------------------------------------------
-- Few columns, because each look-up in a query is planned with all of them.

CREATE VIEW creations AS
SELECT c.ledger_offset, c.node_id, c.contract_id, c.template_ref, c.created_at, c.payload, c.contract_key, c.contract_key_hash,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.signatories_ref) AS signatories,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.observers_ref) AS observers,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.witness_parties_ref) AS witness_parties
FROM created c;

-- Where contracts that have moved, or were taken in by a resync, were created: at the creation event, or at the first activation in a snapshot.
CREATE VIEW first_creations AS
SELECT c.contract_id, coalesce(c.served_offset, c.ledger_offset) AS ledger_offset FROM created c
WHERE c.origin = 'transaction' OR c.reassignment_counter = 0
UNION ALL
SELECT r.contract_id, r.created_offset FROM reassignments r
WHERE r.created_offset IS NOT NULL AND r.kind = 'unassigned' AND r.reassignment_counter = 1;

-- Ledger ---------------------------------------------------------------------------------------------------------

CREATE VIEW ledger.updates AS
SELECT u.ledger_offset, u.update_id, u.kind, s.synchronizer_id, u.record_time, u.effective_at, u.workflow_id,
       u.command_id, u.trace_parent, u.trace_state, u.external_transaction_hash, u.paid_traffic_cost,
       u.transaction_hash, u.extra
FROM updates u
LEFT JOIN synchronizers s ON s.synchronizer_ref = u.synchronizer_ref
WHERE btint8cmp(u.ledger_offset, (SELECT ledger.latest_offset())) <> 1;

CREATE VIEW ledger.created_events AS
SELECT c.ledger_offset, c.node_id, c.origin, c.contract_id, t.template_id, t.package_id, t.package_name, t.module_name,
       t.entity_name, t.representative_package_id, c.payload, c.contract_key, c.contract_key_hash,
       CASE WHEN si.party_list_ref = c.signatories_ref THEN si.parties END AS signatories,
       CASE WHEN ob.party_list_ref = c.observers_ref THEN ob.parties END AS observers,
       CASE WHEN wi.party_list_ref = c.witness_parties_ref THEN wi.parties END AS witness_parties, c.created_at, c.acs_delta, c.created_event_blob,
       coalesce(c.workflow_id, (SELECT u.workflow_id FROM updates u WHERE u.ledger_offset = c.ledger_offset AND c.origin <> 'snapshot')) AS workflow_id,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = c.ledger_offset AND c.origin <> 'snapshot') AS update_id,
       (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = c.synchronizer_ref) AS synchronizer_id, c.record_time, c.extra, c.template_ref AS template_number
FROM created c
LEFT JOIN templates t ON t.template_ref = c.template_ref
LEFT JOIN party_lists si ON si.party_list_ref = c.signatories_ref
LEFT JOIN party_lists ob ON ob.party_list_ref = c.observers_ref
LEFT JOIN party_lists wi ON wi.party_list_ref = c.witness_parties_ref
WHERE btint8cmp(c.ledger_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;

CREATE VIEW ledger.archived_events AS
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

CREATE VIEW ledger.exercised_events AS
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

CREATE VIEW ledger.reassignments AS
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

CREATE VIEW ledger.topology_events AS
SELECT e.ledger_offset, e.node_id, e.kind, e.party_id, e.participant_id, e.permission,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       s.synchronizer_id, e.record_time, e.extra
FROM topology_events e
LEFT JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;

CREATE VIEW ledger.active_contracts AS
SELECT a.contract_id, s.synchronizer_id, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name,
       (SELECT c.payload FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS payload,
       (SELECT c.contract_key FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS contract_key,
       (SELECT c.signatories FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS signatories,
       (SELECT c.observers FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS observers,
       (SELECT c.witness_parties FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS witness_parties,
       (SELECT c.created_at FROM creations c WHERE c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id) AS created_at,
       CASE WHEN a.reassignment_counter = 0 AND a.activated_node_id < 1073741824 THEN a.activated_offset
            ELSE (SELECT c.ledger_offset FROM first_creations c WHERE c.contract_id = a.contract_id LIMIT 1) END AS created_offset,
       a.activated_offset, a.activated_node_id, a.reassignment_counter
FROM active_contracts a
LEFT JOIN templates t ON t.template_ref = a.template_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = a.synchronizer_ref
WHERE btint8cmp(a.activated_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;

-- Typed views join this with their events. It has no joins, which would be planned with each query.
CREATE VIEW ledger.active_events AS
SELECT a.activated_offset AS ledger_offset, a.activated_node_id AS node_id, a.template_ref AS template_number
FROM active_contracts a
WHERE btint8cmp(a.activated_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;

CREATE VIEW ledger.active_counts AS
SELECT t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, sum(a.contracts)::bigint AS contracts
FROM (
    SELECT x.template_ref, count(*) AS contracts FROM active_contracts x
    WHERE btint8cmp(x.activated_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1
    GROUP BY x.template_ref
) a
JOIN templates t ON t.template_ref = a.template_ref
GROUP BY t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name;

-- The names of what was counted or summed by number: to group many rows by names takes a third as long again.
CREATE VIEW ledger.template_numbers AS
SELECT t.template_ref AS template_number, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name FROM templates t;

CREATE VIEW ledger.offset_checkpoints AS
SELECT o.ledger_offset, s.synchronizer_id, o.record_time, o.extra
FROM offset_checkpoints o
JOIN synchronizers s ON s.synchronizer_ref = o.synchronizer_ref
WHERE btint8cmp(o.ledger_offset, (SELECT ledger.latest_offset())) <> 1;

CREATE VIEW ledger.unknown_updates AS
SELECT e.ledger_offset, e.node_id, e.kind, e.raw,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       s.synchronizer_id, e.record_time
FROM unknown_elements e
LEFT JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
