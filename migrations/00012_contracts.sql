-- Contracts and what happened to them, and those that were looked up because their creation was never seen.

-- +goose Up

-- A creation by a transaction is the only one of its contract. Other creation events count if none precedes them. "+ 0" has PostgreSQL find a
-- contract's events by its id: by offset, which it prefers where nothing was analyzed yet, it would read all events for each contract.
CREATE VIEW ledger.contracts WITH (security_invoker = true) AS
SELECT c.contract_id, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, c.payload, c.contract_key, c.contract_key_hash,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.signatories_ref) AS signatories,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.observers_ref) AS observers, c.created_at, c.origin,
       c.ledger_offset AS first_offset, c.node_id AS first_node_id,
       coalesce((SELECT min(a.ledger_offset + 0) FROM archived a WHERE a.contract_id = c.contract_id AND a.ledger_offset + 0 <= (SELECT ledger.latest_offset())),
                (SELECT min(e.ledger_offset + 0) FROM exercised e
                 WHERE e.contract_id = c.contract_id AND e.consuming AND e.ledger_offset + 0 <= (SELECT ledger.latest_offset()))) AS archived_offset,
       ARRAY(SELECT s.synchronizer_id FROM active_contracts a JOIN synchronizers s ON s.synchronizer_ref = a.synchronizer_ref
             WHERE a.contract_id = c.contract_id AND btint8cmp(a.activated_offset, (SELECT ledger.latest_offset())) <> 1
             ORDER BY a.activated_offset, a.activated_node_id) AS synchronizer_ids
FROM created c
LEFT JOIN templates t ON t.template_ref = c.template_ref
WHERE btint8cmp(c.ledger_offset, (SELECT ledger.latest_offset())) <> 1
  AND (c.origin = 'transaction' OR NOT EXISTS (
      SELECT FROM creations f
      WHERE f.contract_id = c.contract_id AND (f.ledger_offset + 0 < c.ledger_offset OR f.ledger_offset + 0 = c.ledger_offset AND f.node_id < c.node_id)));
COMMENT ON VIEW ledger.contracts IS 'One row per contract that was created, assigned, or read from a snapshot: a join by contract_id doubles no rows. The row of a reassigned contract is its first creation event. Contracts that were only exercised or archived here have no row: see ledger.looked_up_contracts.
@graphql({"primary_key_columns": ["contract_id"]})';
COMMENT ON COLUMN ledger.contracts.contract_id IS 'The contract. Unique. Indexed.';
COMMENT ON COLUMN ledger.contracts.template_id IS 'Template, as served: package-id:Module:Entity.';
COMMENT ON COLUMN ledger.contracts.package_id IS 'Package id of the template.';
COMMENT ON COLUMN ledger.contracts.package_name IS 'Package name. NULL: not served.';
COMMENT ON COLUMN ledger.contracts.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.contracts.entity_name IS 'Name of the template.';
COMMENT ON COLUMN ledger.contracts.payload IS 'Create arguments.';
COMMENT ON COLUMN ledger.contracts.contract_key IS 'Contract key. NULL: it has none.';
COMMENT ON COLUMN ledger.contracts.contract_key_hash IS 'Hash of the contract key, as served. NULL: it has none.';
COMMENT ON COLUMN ledger.contracts.signatories IS 'Signatories. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contracts.observers IS 'Observers. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contracts.created_at IS 'Ledger time of its creation.';
COMMENT ON COLUMN ledger.contracts.origin IS 'Its first creation event: transaction (its creation), assignment (the indexed parties did not see its creation), or snapshot.';
COMMENT ON COLUMN ledger.contracts.first_offset IS 'Offset of its first creation event.';
COMMENT ON COLUMN ledger.contracts.first_node_id IS 'Node of its first creation event: (first_offset, first_node_id) is the row in ledger.created_events.';
COMMENT ON COLUMN ledger.contracts.archived_offset IS 'Offset of its archival. NULL: none was seen. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contracts.synchronizer_ids IS 'The synchronizers on which it is active now. Empty: it is archived, or in the middle of a reassignment, or was only witnessed. Costs a look-up per row.';

CREATE VIEW ledger.events WITH (security_invoker = true) AS
SELECT x.ledger_offset, x.node_id,
       (SELECT max(e.node_id) FROM exercised e
        WHERE e.ledger_offset = x.ledger_offset AND e.node_id < x.node_id AND e.last_descendant_node_id >= x.node_id) AS parent_node_id,
       x.kind, x.contract_id, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, x.interface_id, x.choice, x.consuming,
       x.argument, x.result,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = x.acting_parties_ref) AS acting_parties,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = x.witness_parties_ref) AS witness_parties,
       x.acs_delta,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = x.ledger_offset) AS update_id,
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
COMMENT ON VIEW ledger.events IS 'Creations, assignments, exercises, archivals and unassignments with the same columns. A transaction as a tree: WHERE ledger_offset = (SELECT ledger_offset FROM ledger.updates WHERE update_id = ...) ORDER BY node_id, with parent_node_id. A consuming exercise archives its contract and is one row here. The shape acs-delta has no exercises, so events have no parents.
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
COMMENT ON COLUMN ledger.events.update_id IS 'Id of the update. NULL for rows of a snapshot. Costs a look-up per row: to search by it, see the comment of the view.';
COMMENT ON COLUMN ledger.events.synchronizer_id IS 'The synchronizer. NULL: not served.';
COMMENT ON COLUMN ledger.events.record_time IS 'Record time of the update. NULL for rows of a snapshot.';

CREATE FUNCTION ledger.contract_history(contract_id text) RETURNS SETOF ledger.events LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT * FROM ledger.events e WHERE e.contract_id = contract_history.contract_id ORDER BY e.ledger_offset, e.node_id; END;
COMMENT ON FUNCTION ledger.contract_history(text) IS 'What happened to a contract, in the order of the ledger. No rows: nothing is known of it.';

-- Looked-up contracts ----------------------------------------------------------------------------------------------

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
