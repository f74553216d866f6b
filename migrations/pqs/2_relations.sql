-- The relations of the Participant Query Store, and what its functions read: views of the tables of the indexer, with the rights of the reader.
-- What a contract's row needs of its creation or of its archival is looked up in a LEFT JOIN of at most one row: the planner leaves it
-- out where no column of it is asked for, and makes it once where several are. Conditions on templates and offsets reach the tables; those that
-- name no column of a table would keep the planner from leaving a join out, so a row says with its own_ref or its shown_ref which of both it
-- is: a contract by its template, or by an interface view. OFFSET 0 has views looked up for contracts, and not the other way round.

-- Creations. What an entry of a snapshot says began at the floor, as far as is known: those are one partition, and the others are not read in
-- their branch. In that of the others the floor is compared in a form that has no index: a condition on the offset would be preferred to others.
-- A contract that a change of the scope took in has a node above those of all events, at the offset of an update: its key is negative.
CREATE OR REPLACE FUNCTION pqs.__event_pk(ledger_offset bigint, node_id integer) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN node_id < 1073741824 THEN (ledger_offset << 21) + 2 * node_id::bigint
            ELSE -(ledger_offset << 21) - 2 * (node_id - 1073741824)::bigint END;
COMMENT ON FUNCTION pqs.__event_pk(bigint, integer) IS 'The number of a creation or an exercise; that of an archival is one more.';

CREATE OR REPLACE VIEW pqs.__creations WITH (security_invoker = true) AS
SELECT c.ledger_offset, c.node_id, c.ledger_offset AS created_offset, c.origin, c.contract_id, c.template_ref, c.created_at, c.acs_delta, c.payload,
       c.contract_key, c.contract_key_hash, c.created_event_blob, c.signatories_ref, c.observers_ref, c.witness_parties_ref
FROM created c
WHERE btint8cmp((SELECT ledger.oldest_offset()) + 1, c.ledger_offset) <> 1
UNION ALL
SELECT c.ledger_offset, c.node_id, (SELECT ledger.oldest_offset()), c.origin, c.contract_id, c.template_ref, c.created_at, c.acs_delta, c.payload,
       c.contract_key, c.contract_key_hash, c.created_event_blob, c.signatories_ref, c.observers_ref, c.witness_parties_ref
FROM created c
WHERE c.ledger_offset <= (SELECT ledger.oldest_offset());
COMMENT ON VIEW pqs.__creations IS 'Creation events, to be looked up.';

CREATE OR REPLACE VIEW pqs.__archivals WITH (security_invoker = true) AS
SELECT a.ledger_offset, a.node_id, a.contract_id, a.template_ref, a.witness_parties_ref FROM archived a
UNION ALL
SELECT e.ledger_offset, e.node_id, e.contract_id, e.template_ref, e.witness_parties_ref FROM exercised e WHERE e.consuming;
COMMENT ON VIEW pqs.__archivals IS 'Archivals, from archived events and consuming exercises, to be looked up.';

CREATE OR REPLACE VIEW pqs.__views WITH (security_invoker = true) AS
SELECT v.ledger_offset, v.node_id, v.interface_id, v.view_value FROM interface_views v WHERE coalesce(v.status_code, 0) = 0;
-- Names of interfaces are joined behind OFFSET 0: else they would be worked out again for each row.
COMMENT ON VIEW pqs.__views IS 'Interface views of creation events, to be looked up.';

CREATE OR REPLACE VIEW pqs.__assignments WITH (security_invoker = true) AS
SELECT r.contract_id, r.ledger_offset FROM reassignments r WHERE r.kind = 'assigned' AND r.created_offset IS NULL
UNION ALL
SELECT c.contract_id, c.ledger_offset FROM created c
WHERE c.reassignment_counter > 0;
COMMENT ON VIEW pqs.__assignments IS 'Where contracts were assigned: a contract that is active on two synchronizers is shown once, where it came last.';

-- Types ----------------------------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW pqs.__contract_tpe WITH (security_invoker = true) AS
SELECT pqs.__key(x.template_fqn) AS pk, x.payload_type,
       ARRAY[x.template_fqn, x.module_name || ':' || x.entity_name, x.entity_name] AS aliases,
       x.package_name, x.module_name, x.entity_name, x.template_fqn
FROM (
    SELECT DISTINCT 'template'::pqs.__payload_type AS payload_type, t.package_name, t.module_name, t.entity_name, t.package_name || ':' || t.module_name || ':' || t.entity_name AS template_fqn
    FROM templates t
    UNION ALL
    SELECT DISTINCT 'interface'::pqs.__payload_type, coalesce(n.package_name, split_part(n.interface_id, ':', 1)), n.module_name, n.entity_name,
           coalesce(n.package_name, split_part(n.interface_id, ':', 1)) || ':' || n.module_name || ':' || n.entity_name
    FROM interface_names n
) x;
COMMENT ON VIEW pqs.__contract_tpe IS 'Templates, and interfaces of which there are views, over all releases of their package.';

CREATE OR REPLACE VIEW pqs.__choices WITH (security_invoker = true) AS
SELECT x.template_ref, x.interface_id, x.choice, x.consuming, o.package_name, o.module_name, o.entity_name
FROM (SELECT DISTINCT e.template_ref, e.interface_id, e.choice, e.consuming FROM exercised e WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1) x
CROSS JOIN LATERAL (
    SELECT t.package_name, t.module_name, t.entity_name FROM templates t WHERE t.template_ref = x.template_ref AND x.interface_id IS NULL
    UNION ALL
    SELECT pqs.__interface_package(x.interface_id), split_part(x.interface_id, ':', 2), split_part(x.interface_id, ':', 3)
    WHERE x.interface_id IS NOT NULL
) o;
COMMENT ON VIEW pqs.__choices IS 'Choices that were exercised, by template or interface. Reads every exercise.';

CREATE OR REPLACE VIEW pqs.__exercise_tpe WITH (security_invoker = true) AS
SELECT pqs.__key(y.choice_fqn) AS pk, y.choice, y.consuming,
       ARRAY[y.choice_fqn, y.module_name || ':' || y.entity_name || ':' || y.choice, y.entity_name || ':' || y.choice, y.choice] AS aliases,
       y.package_name, y.module_name, y.entity_name, y.package_name || ':' || y.module_name || ':' || y.entity_name AS template_fqn, y.choice_fqn
FROM (
    SELECT x.package_name, x.module_name, x.entity_name, x.choice, bool_or(x.consuming) AS consuming,
           x.package_name || ':' || x.module_name || ':' || x.entity_name || ':' || x.choice AS choice_fqn
    FROM pqs.__choices x
    GROUP BY x.package_name, x.module_name, x.entity_name, x.choice
) y;
COMMENT ON VIEW pqs.__exercise_tpe IS 'Choices that were exercised: those of an interface under its name. Reads every exercise.';

CREATE OR REPLACE VIEW pqs.__packages WITH (security_invoker = true) AS
SELECT pqs.__key(p.package_id) AS pk, p.package_name AS name, p.package_version AS version, p.package_id AS id FROM ledger.packages p;
COMMENT ON VIEW pqs.__packages IS 'Packages that a template id named, or that were vetted at some time.';

-- Contracts ------------------------------------------------------------------------------------------------------

-- Lifetimes: until_offset is the offset of the end, or beyond every offset.
CREATE OR REPLACE VIEW pqs.__template_lives WITH (security_invoker = true) AS
SELECT a.template_ref, a.active_from, a.node_id, a.until_offset,
       t.package_name || ':' || t.module_name || ':' || t.entity_name AS template_fqn, 'template'::pqs.__payload_type AS payload_type,
       pqs.__event_pk(a.active_from, a.node_id) AS create_event_pk, ROW(a.active_from, a.node_id)::pqs.event_id AS create_event_id,
       greatest(a.active_from, (SELECT ledger.oldest_offset())) AS created_at_ix, greatest(a.active_from, (SELECT ledger.oldest_offset())) AS created_at_offset,
       pqs.__event_pk(x.ledger_offset, x.node_id) + 1 AS archive_event_pk,
       CASE WHEN x.ledger_offset IS NOT NULL THEN ROW(x.ledger_offset, x.node_id)::pqs.event_id END AS archive_event_id,
       x.ledger_offset AS archived_at_ix, x.ledger_offset AS archived_at_offset,
       pqs.__life(greatest(a.active_from, (SELECT ledger.oldest_offset())), x.ledger_offset) AS life_ix, a.contract_id AS contract_id, c.payload, c.contract_key,
       c.created_event_blob AS metadata, c.created_at AS created_effective_at,
       (SELECT u.effective_at FROM updates u WHERE u.ledger_offset = x.ledger_offset) AS archived_effective_at,
       (SELECT r.reason FROM redactions r WHERE r.kind = 'contract' AND r.id = a.contract_id ORDER BY r.redaction LIMIT 1) AS redaction_id,
       t.package_name, (SELECT p.package_version FROM packages p WHERE p.package_id = coalesce(t.representative_package_id, t.package_id)) AS package_version,
       coalesce(t.representative_package_id, t.package_id) AS package_id,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.signatories_ref) AS signatories,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.observers_ref) AS observers,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.witness_parties_ref) AS witnesses,
       false AS divulged_only, t.package_id AS creation_package_id, c.contract_key_hash
FROM (
    SELECT l.contract_id, l.template_ref, l.activated_offset AS active_from, l.activated_node_id AS node_id, 9223372036854775807 AS until_offset
    FROM active_contracts l
    UNION ALL
    SELECT l.contract_id, l.template_ref, l.activated_offset, l.activated_node_id, l.deactivated_offset FROM lifetimes l
) a
LEFT JOIN templates t ON t.template_ref = a.template_ref
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (k.ledger_offset, k.node_id) k.* FROM pqs.__creations k WHERE k.ledger_offset = a.active_from AND k.node_id = a.node_id AND k.created_offset IS NOT NULL
) c ON c.ledger_offset = a.active_from AND c.node_id = a.node_id
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (e.ledger_offset, e.contract_id) e.ledger_offset, e.contract_id, e.node_id
    FROM pqs.__archivals e WHERE e.ledger_offset = a.until_offset AND e.contract_id = a.contract_id
) x ON x.ledger_offset = a.until_offset AND x.contract_id = a.contract_id;
COMMENT ON VIEW pqs.__template_lives IS 'Lifetimes of contracts as their templates show them.';

CREATE OR REPLACE VIEW pqs.__lives WITH (security_invoker = true) AS
SELECT l.template_ref AS own_ref, NULL::integer AS shown_ref, NULL::text AS interface_id, l.active_from, l.until_offset,
       l.template_fqn, l.payload_type, l.create_event_pk, l.create_event_id, l.created_at_ix, l.created_at_offset, l.archive_event_pk,
       l.archive_event_id, l.archived_at_ix, l.archived_at_offset, l.life_ix, l.contract_id, l.payload, l.contract_key, l.metadata,
       l.created_effective_at, l.archived_effective_at, l.redaction_id, l.package_name, l.package_version, l.package_id, l.signatories,
       l.observers, l.witnesses, l.divulged_only, l.creation_package_id, l.contract_key_hash
FROM pqs.__template_lives l
UNION ALL
SELECT NULL, l.template_ref, v.interface_id, l.active_from, l.until_offset,
       coalesce(n.package_name, split_part(n.interface_id, ':', 1)) || ':' || n.module_name || ':' || n.entity_name,
       'interface'::pqs.__payload_type, l.create_event_pk, l.create_event_id, l.created_at_ix, l.created_at_offset, l.archive_event_pk,
       l.archive_event_id, l.archived_at_ix, l.archived_at_offset, l.life_ix, l.contract_id, v.view_value, NULL::jsonb, l.metadata,
       l.created_effective_at, l.archived_effective_at, l.redaction_id, l.package_name, l.package_version, l.package_id, l.signatories,
       l.observers, l.witnesses, l.divulged_only, l.creation_package_id, NULL::bytea
FROM pqs.__template_lives l
CROSS JOIN LATERAL (SELECT * FROM pqs.__views w WHERE w.ledger_offset = l.active_from AND w.node_id = l.node_id OFFSET 0) v
JOIN (SELECT * FROM interface_names OFFSET 0) n ON n.interface_id = v.interface_id;
COMMENT ON VIEW pqs.__lives IS 'Lifetimes of contracts, once for their template and once for each interface view: what active() reads.';

CREATE OR REPLACE VIEW pqs.__template_contracts WITH (security_invoker = true) AS
SELECT k.template_ref, k.ledger_offset, k.node_id,
       t.package_name || ':' || t.module_name || ':' || t.entity_name AS template_fqn, 'template'::pqs.__payload_type AS payload_type,
       pqs.__event_pk(k.ledger_offset, k.node_id) AS create_event_pk, ROW(k.ledger_offset, k.node_id)::pqs.event_id AS create_event_id,
       k.created_offset AS created_at_ix, k.created_offset AS created_at_offset,
       pqs.__event_pk(x.ledger_offset, x.node_id) + 1 AS archive_event_pk,
       CASE WHEN x.ledger_offset IS NOT NULL THEN ROW(x.ledger_offset, x.node_id)::pqs.event_id END AS archive_event_id,
       x.ledger_offset AS archived_at_ix, x.ledger_offset AS archived_at_offset,
       pqs.__life(k.created_offset, x.ledger_offset) AS life_ix, k.contract_id AS contract_id, k.payload, k.contract_key,
       k.created_event_blob AS metadata, k.created_at AS created_effective_at,
       (SELECT u.effective_at FROM updates u WHERE u.ledger_offset = x.ledger_offset) AS archived_effective_at,
       (SELECT r.reason FROM redactions r WHERE r.kind = 'contract' AND r.id = k.contract_id ORDER BY r.redaction LIMIT 1) AS redaction_id,
       t.package_name, (SELECT p.package_version FROM packages p WHERE p.package_id = coalesce(t.representative_package_id, t.package_id)) AS package_version,
       coalesce(t.representative_package_id, t.package_id) AS package_id,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.signatories_ref) AS signatories,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.observers_ref) AS observers,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.witness_parties_ref) AS witnesses,
       k.acs_delta IS FALSE AND NOT coalesce((SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.witness_parties_ref) && ((SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.signatories_ref)
           || coalesce((SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.observers_ref), ARRAY[]::text[])), false) AS divulged_only, t.package_id AS creation_package_id, k.contract_key_hash
FROM pqs.__creations k
LEFT JOIN templates t ON t.template_ref = k.template_ref
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (e.contract_id) e.contract_id, e.ledger_offset, e.node_id
    FROM pqs.__archivals e WHERE e.contract_id = k.contract_id AND e.ledger_offset + 0 <= (SELECT ledger.latest_offset())
    ORDER BY e.contract_id, e.ledger_offset, e.node_id
) x ON x.contract_id = k.contract_id
WHERE btint8cmp(k.created_offset, (SELECT ledger.latest_offset())) <> 1
  AND (k.origin = 'transaction' OR NOT EXISTS (
      SELECT FROM pqs.__creations f
      WHERE f.contract_id = k.contract_id AND f.created_offset IS NOT NULL AND (
          f.origin = 'transaction' AND f.ledger_offset + 0 <= (SELECT ledger.latest_offset())
          OR f.ledger_offset + 0 < k.ledger_offset OR f.ledger_offset + 0 = k.ledger_offset AND f.node_id < k.node_id)));
COMMENT ON VIEW pqs.__template_contracts IS 'Contracts as their templates show them: one row each.';

CREATE OR REPLACE VIEW pqs.__all_contracts WITH (security_invoker = true) AS
SELECT c.template_ref AS own_ref, NULL::integer AS shown_ref, NULL::text AS interface_id,
       c.template_fqn, c.payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, c.payload, c.contract_key, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, c.contract_key_hash
FROM pqs.__template_contracts c
UNION ALL
SELECT NULL, c.template_ref, v.interface_id,
       coalesce(n.package_name, split_part(n.interface_id, ':', 1)) || ':' || n.module_name || ':' || n.entity_name,
       'interface'::pqs.__payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, v.view_value, NULL::jsonb, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, NULL::bytea
FROM pqs.__template_contracts c
CROSS JOIN LATERAL (SELECT * FROM pqs.__views w WHERE w.ledger_offset = c.ledger_offset AND w.node_id = c.node_id OFFSET 0) v
JOIN (SELECT * FROM interface_names OFFSET 0) n ON n.interface_id = v.interface_id;
COMMENT ON VIEW pqs.__all_contracts IS 'Contracts, once for their template and once for each interface view: what creates() reads.';

CREATE OR REPLACE VIEW pqs.__ends WITH (security_invoker = true) AS
SELECT z.ended_offset, c.template_ref, c.ledger_offset, c.node_id,
       c.template_fqn, c.payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, pqs.__event_pk(z.ended_offset,
       z.ended_node_id) + 1 AS archive_event_pk, ROW(z.ended_offset, z.ended_node_id)::pqs.event_id AS archive_event_id,
       z.ended_offset AS archived_at_ix, z.ended_offset AS archived_at_offset, pqs.__life(c.created_at_offset, z.ended_offset) AS life_ix,
       c.contract_id, c.payload, c.contract_key, c.metadata, c.created_effective_at, (SELECT u.effective_at FROM updates u WHERE
       u.ledger_offset = z.ended_offset) AS archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id,
       c.signatories, c.observers, '{}'::text[] AS witnesses, c.divulged_only, c.creation_package_id, c.contract_key_hash
FROM (SELECT e.ledger_offset AS ended_offset, e.node_id AS ended_node_id, e.contract_id FROM pqs.__archivals e) z
JOIN pqs.__template_contracts c ON c.contract_id = z.contract_id;
COMMENT ON VIEW pqs.__ends IS 'Contracts by their archival, as their templates show them.';

CREATE OR REPLACE VIEW pqs.__all_ends WITH (security_invoker = true) AS
SELECT c.template_ref AS own_ref, NULL::integer AS shown_ref, NULL::text AS interface_id, c.ended_offset,
       c.template_fqn, c.payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, c.payload, c.contract_key, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, c.contract_key_hash
FROM pqs.__ends c
UNION ALL
SELECT NULL, c.template_ref, v.interface_id, c.ended_offset,
       coalesce(n.package_name, split_part(n.interface_id, ':', 1)) || ':' || n.module_name || ':' || n.entity_name,
       'interface'::pqs.__payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, v.view_value, NULL::jsonb, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, NULL::bytea
FROM pqs.__ends c
CROSS JOIN LATERAL (SELECT * FROM pqs.__views w WHERE w.ledger_offset = c.ledger_offset AND w.node_id = c.node_id OFFSET 0) v
JOIN (SELECT * FROM interface_names OFFSET 0) n ON n.interface_id = v.interface_id;
COMMENT ON VIEW pqs.__all_ends IS 'Contracts by their archival, once for their template and once for each interface view: what archives() reads.';

CREATE OR REPLACE VIEW pqs.__contracts WITH (security_invoker = true) AS
SELECT pqs.__key(c.template_fqn) AS tpe_pk, c.create_event_pk, c.created_at_ix, c.archive_event_pk, c.archived_at_ix, c.life_ix, c.contract_id, c.payload,
       c.contract_key, c.metadata, c.redaction_id, pqs.__key(c.package_id) AS package_pk, c.signatories, c.observers, c.witnesses, c.divulged_only,
       c.creation_package_id, c.contract_key_hash
FROM pqs.__all_contracts c;
COMMENT ON VIEW pqs.__contracts IS 'Contracts, once for their template and once for each interface view, as the table of this name of the Participant Query Store has them.';

-- Exercises ------------------------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW pqs.__all_exercises WITH (security_invoker = true) AS
SELECT e.template_ref, e.interface_id,
       t.package_name || ':' || t.module_name || ':' || t.entity_name AS template_fqn,
       CASE WHEN e.interface_id IS NULL THEN t.package_name || ':' || t.module_name || ':' || t.entity_name || ':' || e.choice
            ELSE pqs.__interface_package(e.interface_id) || ':' || split_part(e.interface_id, ':', 2) || ':' || split_part(e.interface_id, ':', 3) || ':' || e.choice
       END AS choice_fqn,
       e.choice, e.consuming, pqs.__event_pk(e.ledger_offset, e.node_id) AS exercise_event_pk,
       ROW(e.ledger_offset, e.node_id)::pqs.event_id AS exercise_event_id, e.ledger_offset AS exercised_at_ix, e.ledger_offset AS exercised_at_offset,
       e.contract_id, e.choice_argument AS argument, e.exercise_result AS result,
       (SELECT u.effective_at FROM updates u WHERE u.ledger_offset = e.ledger_offset) AS exercised_effective_at,
       (SELECT r.reason FROM redactions r
        WHERE r.kind = 'contract' AND r.id = e.contract_id
           OR r.kind = 'update' AND r.id = (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset)
        ORDER BY r.redaction LIMIT 1) AS redaction_id,
       t.package_name, (SELECT p.package_version FROM packages p WHERE p.package_id = coalesce(t.representative_package_id, t.package_id)) AS package_version,
       coalesce(t.representative_package_id, t.package_id) AS package_id,
       coalesce((SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.signatories_ref),
                (SELECT l.signatories FROM lookups l WHERE l.contract_id = e.contract_id AND l.status = 'found')) AS signatories,
       coalesce((SELECT p.parties FROM party_lists p WHERE p.party_list_ref = k.observers_ref),
                (SELECT l.observers FROM lookups l WHERE l.contract_id = e.contract_id AND l.status = 'found')) AS observers,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = e.acting_parties_ref) AS controllers, e.last_descendant_node_id,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = e.witness_parties_ref) AS witnesses
FROM exercised e
LEFT JOIN templates t ON t.template_ref = e.template_ref
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (c.contract_id) c.contract_id, c.signatories_ref, c.observers_ref
    FROM pqs.__creations c WHERE c.contract_id = e.contract_id AND c.created_offset IS NOT NULL ORDER BY c.contract_id, c.ledger_offset
) k ON k.contract_id = e.contract_id
WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW pqs.__all_exercises IS 'Exercises: what exercises() reads.';

CREATE OR REPLACE VIEW pqs.__exercises WITH (security_invoker = true) AS
SELECT pqs.__key(e.choice_fqn) AS tpe_pk, pqs.__key(e.template_fqn) AS contract_tpe_pk, e.exercise_event_pk, e.exercised_at_ix, e.contract_id, e.argument,
       e.result, e.redaction_id, pqs.__key(e.package_id) AS package_pk, e.controllers, e.last_descendant_node_id, e.witnesses
FROM pqs.__all_exercises e;
COMMENT ON VIEW pqs.__exercises IS 'Exercises, as the table of this name of the Participant Query Store has them.';

-- Transactions ---------------------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW pqs.__transactions WITH (security_invoker = true) AS
SELECT u.ledger_offset AS ix, u.ledger_offset AS "offset", u.update_id AS transaction_id, u.effective_at, u.workflow_id,
       (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = u.synchronizer_ref) AS domain_id,
       CASE WHEN u.trace_parent IS NOT NULL OR u.trace_state IS NOT NULL THEN ROW(u.trace_parent, u.trace_state)::pqs.trace_context END AS trace_context,
       u.external_transaction_hash, u.paid_traffic_cost
FROM updates u
WHERE u.kind IN ('transaction', 'reassignment') AND btint8cmp(u.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW pqs.__transactions IS 'Transactions and reassignments. ix is the offset.';

CREATE OR REPLACE VIEW pqs.transactions WITH (security_invoker = true) AS
SELECT t.ix, t."offset", t.transaction_id, t.effective_at, t.workflow_id, t.trace_context, t.external_transaction_hash, t.paid_traffic_cost
FROM pqs.__transactions t
WHERE t."offset" >= (SELECT pqs.oldest_offset()) AND t."offset" <= (SELECT pqs.latest_offset());
COMMENT ON VIEW pqs.transactions IS 'Transactions and reassignments from oldest_offset() to latest_offset().';

CREATE OR REPLACE VIEW pqs.__watermark WITH (security_invoker = true) AS
SELECT true AS singleton, o AS ix, o AS "offset", (SELECT p.participant_id FROM participant p) AS instance_id
FROM ledger.latest_offset() o
WHERE o IS NOT NULL;
COMMENT ON VIEW pqs.__watermark IS 'How far the database is: ledger.latest_offset().';

CREATE OR REPLACE VIEW pqs.__events WITH (security_invoker = true) AS
SELECT pqs.__event_pk(x.ledger_offset, x.node_id) + CASE x.type WHEN 'archive' THEN 1 ELSE 0 END AS pk, x.tx_ix,
       ROW(x.ledger_offset, x.node_id)::pqs.event_id AS event_id, x.type
FROM (
    SELECT c.ledger_offset, c.node_id, 'create'::pqs.__event_type AS type, c.created_offset AS tx_ix FROM pqs.__creations c WHERE c.created_offset IS NOT NULL
    UNION ALL
    SELECT e.ledger_offset, e.node_id, 'exercise', e.ledger_offset FROM exercised e
    UNION ALL
    SELECT e.ledger_offset, e.node_id, 'archive', e.ledger_offset FROM pqs.__archivals e
) x
WHERE btint8cmp(x.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW pqs.__events IS 'Creations, exercises and archivals. A consuming exercise is two of them.';
