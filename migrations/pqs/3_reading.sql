-- The functions of the Participant Query Store that read. They are planned as a part of the query that calls them.

CREATE OR REPLACE FUNCTION pqs.active(qname text DEFAULT NULL, "offset" bigint DEFAULT pqs.latest_offset()) RETURNS SETOF pqs.contract
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT l.template_fqn, l.payload_type, l.create_event_pk, l.create_event_id, l.created_at_ix, l.created_at_offset, l.archive_event_pk,
       l.archive_event_id, l.archived_at_ix, l.archived_at_offset, l.life_ix, l.contract_id, l.payload, l.contract_key, l.metadata,
       l.created_effective_at, l.archived_effective_at, l.redaction_id, l.package_name, l.package_version, l.package_id, l.signatories,
       l.observers, l.witnesses, l.divulged_only, l.creation_package_id, l.contract_key_hash
FROM pqs.__lives l
WHERE (active.qname IS NULL OR l.own_ref IS NOT NULL AND l.own_ref = ANY ((SELECT (pqs.__contract_type(active.qname)).template_refs)::integer[])
        OR l.shown_ref IS NOT NULL AND l.shown_ref = ANY ((SELECT (pqs.__contract_type(active.qname)).shown_refs)::integer[])
            AND l.interface_id = ANY ((SELECT (pqs.__contract_type(active.qname)).interface_ids)::text[]))
  AND (active.qname IS NULL OR (SELECT (pqs.__contract_type(active.qname)).template_fqn) IS NOT NULL)
  AND l.active_from <= (SELECT pqs.__state_offset(active."offset")) AND l.until_offset > (SELECT pqs.__state_offset(active."offset"))
  AND (SELECT pqs.__state_offset(active."offset")) IS NOT NULL
  AND ((SELECT NOT EXISTS (SELECT FROM pqs.__assignments)) OR NOT EXISTS (
      SELECT FROM pqs.__assignments r
      WHERE r.contract_id = l.contract_id AND r.ledger_offset > l.active_from AND r.ledger_offset <= (SELECT pqs.__state_offset(active."offset"))));
END;
COMMENT ON FUNCTION pqs.active(text, bigint) IS 'Contracts that are active at an offset: of a template or an interface, or of all.';

CREATE OR REPLACE FUNCTION pqs.creates(qname text DEFAULT NULL, from_offset bigint DEFAULT pqs.oldest_offset(), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS SETOF pqs.contract LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_fqn, c.payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, c.payload, c.contract_key, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, c.contract_key_hash
FROM pqs.__all_contracts c
WHERE (creates.qname IS NULL OR c.own_ref IS NOT NULL AND c.own_ref = ANY ((SELECT (pqs.__contract_type(creates.qname)).template_refs)::integer[])
        OR c.shown_ref IS NOT NULL AND c.shown_ref = ANY ((SELECT (pqs.__contract_type(creates.qname)).shown_refs)::integer[])
            AND c.interface_id = ANY ((SELECT (pqs.__contract_type(creates.qname)).interface_ids)::text[]))
  AND (creates.qname IS NULL OR (SELECT (pqs.__contract_type(creates.qname)).template_fqn) IS NOT NULL)
  AND c.created_at_offset >= (SELECT pqs.__from_offset(creates.from_offset)) AND c.created_at_offset <= (SELECT pqs.__to_offset(creates.to_offset))
  AND (SELECT pqs.__from_offset(creates.from_offset)) IS NOT NULL;
END;
COMMENT ON FUNCTION pqs.creates(text, bigint, bigint) IS 'Contracts that were created in a range of offsets, both ends included. What was active where the database begins was created there.';

CREATE OR REPLACE FUNCTION pqs.archives(qname text DEFAULT NULL, from_offset bigint DEFAULT COALESCE(pqs.pruned_offset(), pqs.oldest_offset()), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS SETOF pqs.contract LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_fqn, c.payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, c.payload, c.contract_key, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, c.contract_key_hash
FROM pqs.__all_ends c
WHERE (archives.qname IS NULL OR c.own_ref IS NOT NULL AND c.own_ref = ANY ((SELECT (pqs.__contract_type(archives.qname)).template_refs)::integer[])
        OR c.shown_ref IS NOT NULL AND c.shown_ref = ANY ((SELECT (pqs.__contract_type(archives.qname)).shown_refs)::integer[])
            AND c.interface_id = ANY ((SELECT (pqs.__contract_type(archives.qname)).interface_ids)::text[]))
  AND (archives.qname IS NULL OR (SELECT (pqs.__contract_type(archives.qname)).template_fqn) IS NOT NULL)
  AND c.ended_offset >= (SELECT pqs.__from_offset(archives.from_offset)) AND c.ended_offset <= (SELECT pqs.__to_offset(archives.to_offset))
  AND (SELECT pqs.__from_offset(archives.from_offset)) IS NOT NULL;
END;
COMMENT ON FUNCTION pqs.archives(text, bigint, bigint) IS 'Contracts that were archived in a range of offsets, both ends included. A contract whose creation is not known is not among them.';

CREATE OR REPLACE FUNCTION pqs.exercises(qname text DEFAULT NULL, from_offset bigint DEFAULT COALESCE(pqs.pruned_offset(), pqs.oldest_offset()), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS SETOF pqs.exercise LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT e.template_fqn, e.choice_fqn, e.choice, e.consuming, e.exercise_event_pk, e.exercise_event_id, e.exercised_at_ix,
       e.exercised_at_offset, e.contract_id, e.argument, e.result, e.exercised_effective_at, e.redaction_id, e.package_name,
       e.package_version, e.package_id, e.signatories, e.observers, e.controllers, e.last_descendant_node_id, e.witnesses
FROM pqs.__all_exercises e
WHERE (exercises.qname IS NULL OR e.choice = (SELECT (pqs.__choice_type(exercises.qname)).choice)
        AND (e.interface_id IS NULL AND e.template_ref = ANY ((SELECT (pqs.__choice_type(exercises.qname)).template_refs)::integer[])
             OR e.interface_id = ANY ((SELECT (pqs.__choice_type(exercises.qname)).interface_ids)::text[])))
  AND (exercises.qname IS NULL OR (SELECT (pqs.__choice_type(exercises.qname)).choice_fqn) IS NOT NULL)
  AND e.exercised_at_offset >= (SELECT pqs.__from_offset(exercises.from_offset)) AND e.exercised_at_offset <= (SELECT pqs.__to_offset(exercises.to_offset))
  AND (SELECT pqs.__from_offset(exercises.from_offset)) IS NOT NULL;
END;
COMMENT ON FUNCTION pqs.exercises(text, bigint, bigint) IS 'Exercises in a range of offsets, both ends included: of a choice, or of all.';

CREATE OR REPLACE FUNCTION pqs.lookup_contract(contract_id text, qname text DEFAULT NULL) RETURNS SETOF pqs.contract LANGUAGE sql STABLE
BEGIN ATOMIC
SELECT c.template_fqn, c.payload_type, c.create_event_pk, c.create_event_id, c.created_at_ix, c.created_at_offset, c.archive_event_pk,
       c.archive_event_id, c.archived_at_ix, c.archived_at_offset, c.life_ix, c.contract_id, c.payload, c.contract_key, c.metadata,
       c.created_effective_at, c.archived_effective_at, c.redaction_id, c.package_name, c.package_version, c.package_id, c.signatories,
       c.observers, c.witnesses, c.divulged_only, c.creation_package_id, c.contract_key_hash
FROM pqs.__all_contracts c
WHERE c.contract_id = lookup_contract.contract_id
  AND (lookup_contract.qname IS NULL OR c.own_ref IS NOT NULL AND c.own_ref = ANY ((SELECT (pqs.__contract_type(lookup_contract.qname)).template_refs)::integer[])
        OR c.shown_ref IS NOT NULL AND c.shown_ref = ANY ((SELECT (pqs.__contract_type(lookup_contract.qname)).shown_refs)::integer[])
            AND c.interface_id = ANY ((SELECT (pqs.__contract_type(lookup_contract.qname)).interface_ids)::text[]))
  AND (lookup_contract.qname IS NULL OR (SELECT (pqs.__contract_type(lookup_contract.qname)).template_fqn) IS NOT NULL)
  AND c.created_at_offset >= (SELECT pqs.oldest_offset()) AND c.created_at_offset <= (SELECT pqs.latest_offset());
END;
COMMENT ON FUNCTION pqs.lookup_contract(text, text) IS 'A contract: once for its template, and once for each interface view.';

CREATE OR REPLACE FUNCTION pqs.lookup_exercises(contract_id text, qname text DEFAULT NULL) RETURNS SETOF pqs.exercise LANGUAGE sql STABLE
BEGIN ATOMIC
SELECT e.template_fqn, e.choice_fqn, e.choice, e.consuming, e.exercise_event_pk, e.exercise_event_id, e.exercised_at_ix,
       e.exercised_at_offset, e.contract_id, e.argument, e.result, e.exercised_effective_at, e.redaction_id, e.package_name,
       e.package_version, e.package_id, e.signatories, e.observers, e.controllers, e.last_descendant_node_id, e.witnesses
FROM pqs.exercises(lookup_exercises.qname) e
WHERE e.contract_id = lookup_exercises.contract_id;
END;
COMMENT ON FUNCTION pqs.lookup_exercises(text, text) IS 'The exercises of a contract.';

-- Counts ---------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pqs.summary_active("offset" bigint DEFAULT pqs.latest_offset()) RETURNS SETOF pqs.contract_summary
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT a.template_fqn, a.payload_type, count(*) FROM pqs.active(NULL, summary_active."offset") a GROUP BY a.template_fqn, a.payload_type;
END;
COMMENT ON FUNCTION pqs.summary_active(bigint) IS 'How many contracts are active at an offset, by type.';

CREATE OR REPLACE FUNCTION pqs.summary_creates(from_offset bigint DEFAULT pqs.oldest_offset(), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS SETOF pqs.contract_summary LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_fqn, c.payload_type, count(*) FROM pqs.creates(NULL, summary_creates.from_offset, summary_creates.to_offset) c
GROUP BY c.template_fqn, c.payload_type;
END;
COMMENT ON FUNCTION pqs.summary_creates(bigint, bigint) IS 'How many contracts were created in a range, by type.';

CREATE OR REPLACE FUNCTION pqs.summary_archives(from_offset bigint DEFAULT COALESCE(pqs.pruned_offset(), pqs.oldest_offset()), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS SETOF pqs.contract_summary LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_fqn, c.payload_type, count(*) FROM pqs.archives(NULL, summary_archives.from_offset, summary_archives.to_offset) c
GROUP BY c.template_fqn, c.payload_type;
END;
COMMENT ON FUNCTION pqs.summary_archives(bigint, bigint) IS 'How many contracts were archived in a range, by type.';

CREATE OR REPLACE FUNCTION pqs.summary_transients(from_offset bigint DEFAULT COALESCE(pqs.pruned_offset(), pqs.oldest_offset()), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS SETOF pqs.contract_summary LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_fqn, c.payload_type, count(*) FROM pqs.archives(NULL, summary_transients.from_offset, summary_transients.to_offset) c
WHERE c.created_at_offset >= (SELECT pqs.__from_offset(summary_transients.from_offset))
GROUP BY c.template_fqn, c.payload_type;
END;
COMMENT ON FUNCTION pqs.summary_transients(bigint, bigint) IS 'How many contracts were both created and archived in a range, by type.';

CREATE OR REPLACE FUNCTION pqs.summary_updates(from_offset bigint DEFAULT pqs.oldest_offset(), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS TABLE (template_fqn text, payload_type pqs.__payload_type, creates bigint, archives bigint) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT x.template_fqn, x.payload_type, sum(x.created)::bigint, sum(x.archived)::bigint
FROM (
    SELECT c.template_fqn, c.payload_type, c.count AS created, 0 AS archived
    FROM pqs.summary_creates(summary_updates.from_offset, summary_updates.to_offset) c
    UNION ALL
    SELECT c.template_fqn, c.payload_type, 0, c.count FROM pqs.summary_archives(summary_updates.from_offset, summary_updates.to_offset) c
) x
GROUP BY x.template_fqn, x.payload_type;
END;
COMMENT ON FUNCTION pqs.summary_updates(bigint, bigint) IS 'How many contracts were created and archived in a range, by type.';

CREATE OR REPLACE FUNCTION pqs.summary_exercises(from_offset bigint DEFAULT COALESCE(pqs.pruned_offset(), pqs.oldest_offset()), to_offset bigint DEFAULT pqs.latest_offset())
RETURNS TABLE (template_fqn text, choice_fqn text, choice text, consuming boolean, count bigint) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT e.template_fqn, e.choice_fqn, e.choice, e.consuming, count(*)
FROM pqs.exercises(NULL, summary_exercises.from_offset, summary_exercises.to_offset) e
GROUP BY e.template_fqn, e.choice_fqn, e.choice, e.consuming;
END;
COMMENT ON FUNCTION pqs.summary_exercises(bigint, bigint) IS 'How many exercises there were in a range, by choice.';

-- Parties --------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pqs.stakeholders(c pqs.contract) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT DISTINCT p FROM unnest((c).signatories || (c).observers) p ORDER BY p);
COMMENT ON FUNCTION pqs.stakeholders(pqs.contract) IS 'Signatories and observers, each once.';

CREATE OR REPLACE FUNCTION pqs.stakeholders(e pqs.exercise) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT DISTINCT p FROM unnest((e).signatories || (e).observers) p ORDER BY p);
COMMENT ON FUNCTION pqs.stakeholders(pqs.exercise) IS 'Signatories and observers of the contract, each once.';

-- By the names of the tables -------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pqs.__contracts(qname text) RETURNS SETOF pqs.__contracts LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT pqs.__key(c.template_fqn), c.create_event_pk, c.created_at_ix, c.archive_event_pk, c.archived_at_ix, c.life_ix, c.contract_id, c.payload,
       c.contract_key, c.metadata, c.redaction_id, pqs.__key(c.package_id), c.signatories, c.observers, c.witnesses, c.divulged_only,
       c.creation_package_id, c.contract_key_hash
FROM pqs.__all_contracts c
WHERE (__contracts.qname IS NULL OR c.own_ref IS NOT NULL AND c.own_ref = ANY ((SELECT (pqs.__contract_type(__contracts.qname)).template_refs)::integer[])
        OR c.shown_ref IS NOT NULL AND c.shown_ref = ANY ((SELECT (pqs.__contract_type(__contracts.qname)).shown_refs)::integer[])
            AND c.interface_id = ANY ((SELECT (pqs.__contract_type(__contracts.qname)).interface_ids)::text[]))
  AND (__contracts.qname IS NULL OR (SELECT (pqs.__contract_type(__contracts.qname)).template_fqn) IS NOT NULL);
END;
COMMENT ON FUNCTION pqs.__contracts(text) IS 'The rows of __contracts of a template or an interface.';

CREATE OR REPLACE FUNCTION pqs.__exercises(qname text) RETURNS SETOF pqs.__exercises LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT pqs.__key(e.choice_fqn), pqs.__key(e.template_fqn), e.exercise_event_pk, e.exercised_at_ix, e.contract_id, e.argument,
       e.result, e.redaction_id, pqs.__key(e.package_id), e.controllers, e.last_descendant_node_id, e.witnesses
FROM pqs.__all_exercises e
WHERE (__exercises.qname IS NULL OR e.choice = (SELECT (pqs.__choice_type(__exercises.qname)).choice)
        AND (e.interface_id IS NULL AND e.template_ref = ANY ((SELECT (pqs.__choice_type(__exercises.qname)).template_refs)::integer[])
             OR e.interface_id = ANY ((SELECT (pqs.__choice_type(__exercises.qname)).interface_ids)::text[])))
  AND (__exercises.qname IS NULL OR (SELECT (pqs.__choice_type(__exercises.qname)).choice_fqn) IS NOT NULL);
END;
COMMENT ON FUNCTION pqs.__exercises(text) IS 'The rows of __exercises of a choice.';

-- Relations that PQS's documentation shows and PQS does not have --------------------------------------------------

CREATE OR REPLACE VIEW pqs.active_contracts WITH (security_invoker = true) AS
SELECT t.module_name || ':' || t.entity_name AS template_id, l.contract_id, l.payload, l.payload AS create_arguments,
       ARRAY(SELECT DISTINCT p FROM unnest(l.signatories || l.observers) p ORDER BY p) AS stakeholders, l.template_fqn, l.package_id,
       l.created_at_offset, l.created_effective_at AS created_at, l.signatories, l.observers, l.witnesses
FROM pqs.__template_lives l
LEFT JOIN templates t ON t.template_ref = l.template_ref
WHERE l.active_from <= (SELECT pqs.__state_offset(NULL)) AND l.until_offset > (SELECT pqs.__state_offset(NULL))
  AND ((SELECT NOT EXISTS (SELECT FROM pqs.__assignments)) OR NOT EXISTS (
      SELECT FROM pqs.__assignments r
      WHERE r.contract_id = l.contract_id AND r.ledger_offset > l.active_from AND r.ledger_offset <= (SELECT pqs.__state_offset(NULL))));
COMMENT ON VIEW pqs.active_contracts IS 'Contracts that are active at latest_offset(), by Module:Template.';

CREATE OR REPLACE VIEW pqs.contracts WITH (security_invoker = true) AS
SELECT t.module_name || ':' || t.entity_name AS template_id, c.contract_id, c.payload, c.create_event_id, c.archive_event_id,
       c.created_effective_at AS effective_at, c.created_effective_at AS created_at, c.archived_effective_at AS archived_at, c.template_fqn,
       c.package_id, c.created_at_offset, c.archived_at_offset, c.signatories, c.observers
FROM pqs.__template_contracts c
LEFT JOIN templates t ON t.template_ref = c.template_ref
WHERE c.created_at_offset >= (SELECT pqs.oldest_offset()) AND c.created_at_offset <= (SELECT pqs.latest_offset());
COMMENT ON VIEW pqs.contracts IS 'Contracts, by Module:Template.';

CREATE OR REPLACE FUNCTION pqs.contracts(qname text) RETURNS SETOF pqs.contracts LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT split_part(c.template_fqn, ':', 2) || ':' || split_part(c.template_fqn, ':', 3), c.contract_id, c.payload, c.create_event_id, c.archive_event_id,
       c.created_effective_at, c.created_effective_at, c.archived_effective_at, c.template_fqn, c.package_id, c.created_at_offset,
       c.archived_at_offset, c.signatories, c.observers
FROM pqs.creates(contracts.qname) c;
END;
COMMENT ON FUNCTION pqs.contracts(text) IS 'Contracts of a template or an interface, whether archived or not.';

CREATE OR REPLACE VIEW pqs.events WITH (security_invoker = true) AS
SELECT ROW(x.ledger_offset, x.node_id)::pqs.event_id AS event_id, x.event_type, t.module_name || ':' || t.entity_name AS template_id, x.contract_id,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = x.witness_parties_ref) AS witness_parties,
       (SELECT u.effective_at FROM updates u WHERE u.ledger_offset = x.ledger_offset) AS effective_at, x.choice, x.ledger_offset AS "offset"
FROM (
    SELECT c.ledger_offset, c.node_id, 'create' AS event_type, c.template_ref, c.contract_id, c.witness_parties_ref, NULL::text AS choice FROM created c
    WHERE c.origin <> 'snapshot'
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 'archive', a.template_ref, a.contract_id, a.witness_parties_ref, NULL FROM archived a
    UNION ALL
    SELECT e.ledger_offset, e.node_id, CASE WHEN e.consuming THEN 'archive' ELSE 'exercise' END, e.template_ref, e.contract_id, e.witness_parties_ref,
           e.choice
    FROM exercised e
) x
LEFT JOIN templates t ON t.template_ref = x.template_ref
WHERE x.ledger_offset > (SELECT ledger.oldest_offset()) AND x.ledger_offset >= (SELECT pqs.oldest_offset()) AND x.ledger_offset <= (SELECT pqs.latest_offset());
COMMENT ON VIEW pqs.events IS 'Creations, exercises and archivals by Module:Template, each event once: a consuming exercise is an archive.';
