-- Contracts: which are active, now and at any offset (projections, derived from facts in offset order, in the transaction that moves the
-- watermark), what is known of each, and what a resync takes in.

-- +goose Up

CREATE TABLE active_contracts (
    activated_offset     bigint  NOT NULL,
    reassignment_counter bigint  NOT NULL,
    activated_node_id    integer NOT NULL,
    synchronizer_ref     integer NOT NULL,
    template_ref         integer NOT NULL,
    stakeholders_ref     integer,
    position_id          uuid,
    contract_id          text    NOT NULL,
    amount               numeric,
    locked               boolean,
    locked_until         timestamptz, -- last: where it is NULL, as mostly, what is behind it would be found more slowly
    PRIMARY KEY (activated_offset, activated_node_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- A hash index: contract ids are long and random, so in a btree each insert would change another page.
CREATE INDEX active_contracts_contract_id ON active_contracts USING hash (contract_id);
-- For index-only scans: counts by template, the creation events of a template, totals of holdings. Limited roles need the stakeholders in it.
CREATE INDEX active_contracts_template ON active_contracts (template_ref, activated_offset)
    INCLUDE (activated_node_id, synchronizer_ref, stakeholders_ref);
CREATE INDEX active_contracts_position ON active_contracts (position_id)
    INCLUDE (amount, locked, activated_offset, activated_node_id, stakeholders_ref) WHERE position_id IS NOT NULL;
-- Only a contract that has moved can be active on two synchronizers.
CREATE INDEX active_contracts_moved ON active_contracts (activated_offset) INCLUDE (activated_node_id, contract_id)
    WHERE position_id IS NOT NULL AND reassignment_counter > 0;
COMMENT ON TABLE active_contracts IS 'One narrow row per contract and synchronizer, active at the watermark. The key is the event that activated it, which is also its creation event: no event activates twice.';
COMMENT ON COLUMN active_contracts.position_id IS 'What the contract is a holding of. NULL: it is none.';
COMMENT ON COLUMN active_contracts.amount IS 'How much it holds. NULL: not readable, or it is no holding.';
COMMENT ON COLUMN active_contracts.locked IS 'Whether that is locked. NULL: not readable, or it is no holding.';
COMMENT ON COLUMN active_contracts.locked_until IS 'When the lock expires. NULL: no lock, no known end, not readable, or it is no holding.';

CREATE VIEW ledger.active_contracts WITH (security_invoker = true) AS
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
COMMENT ON VIEW ledger.active_contracts IS 'One row per contract and synchronizer that is active at ledger.latest_offset(). A contract that is active on two synchronizers has two rows: count(DISTINCT contract_id) counts contracts. Contracts from before indexing began are missing where ledger.state_floor() is NULL. Counting and grouping by template is cheap; payload, contract_key, parties and created_at cost a look-up per row each.
@graphql({"primary_key_columns": ["activated_offset", "activated_node_id"], "foreign_keys": [{"local_columns": ["activated_offset", "activated_node_id"], "foreign_schema": "ledger", "foreign_table": "created_events", "foreign_columns": ["ledger_offset", "node_id"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.active_contracts.contract_id IS 'Id of the contract. Indexed: equal to one id, or joined to ids.';
COMMENT ON COLUMN ledger.active_contracts.synchronizer_id IS 'Synchronizer on which the contract is active. NULL where the server did not say.';
COMMENT ON COLUMN ledger.active_contracts.template_id IS 'Template as the server sent it with the activation, package-id:Module:Entity. It changes with each release of a package: filter by package_name, module_name and entity_name instead.';
COMMENT ON COLUMN ledger.active_contracts.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.active_contracts.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.active_contracts.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.active_contracts.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.active_contracts.payload IS 'The contract''s arguments, as in ledger.created_events. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.contract_key IS 'The contract''s key; NULL: it has none. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.signatories IS 'Parties that signed the contract. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.observers IS 'Parties that may see the contract beside its signatories. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.witness_parties IS 'The parties that the indexer reads for (its scope) and that see the contract. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.created_at IS 'Ledger time of the contract''s creation, not of its arrival on this synchronizer. Costs a look-up per row.';
COMMENT ON COLUMN ledger.active_contracts.created_offset IS 'Offset of the contract''s creation, on whichever synchronizer. Of a contract that has moved it costs a look-up, and is NULL where its creation is not stored: assignments don''t say it, nor does a snapshot for a contract that had moved before.';
COMMENT ON COLUMN ledger.active_contracts.activated_offset IS 'Offset of the event that made the contract active here: its creation, or its assignment to this synchronizer. Indexed. With activated_node_id it names the row of ledger.created_events, and is unique.';
COMMENT ON COLUMN ledger.active_contracts.activated_node_id IS 'Node id of that event.';
COMMENT ON COLUMN ledger.active_contracts.reassignment_counter IS 'How often the contract had moved when it came to this synchronizer. 0: it was created on it.';

-- Typed views join this with their events. It has no joins, which would be planned with each query.
CREATE VIEW ledger.active_events WITH (security_invoker = true) AS
SELECT a.activated_offset AS ledger_offset, a.activated_node_id AS node_id, a.template_ref AS template_number
FROM active_contracts a
WHERE btint8cmp(a.activated_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;
COMMENT ON VIEW ledger.active_events IS 'The rows of ledger.active_contracts as the creation events since which the contracts are active. For joins with ledger.created_events by all three columns: the planner begins with the active contracts of the template that is asked for, if there are fewer of them.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset", "node_id"], "foreign_schema": "ledger", "foreign_table": "created_events", "foreign_columns": ["ledger_offset", "node_id"]}]})';
COMMENT ON COLUMN ledger.active_events.ledger_offset IS 'Offset of the event: activated_offset in ledger.active_contracts.';
COMMENT ON COLUMN ledger.active_events.node_id IS 'Node id of the event. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.active_events.template_number IS 'As in ledger.created_events.';

CREATE VIEW ledger.active_counts WITH (security_invoker = true) AS
SELECT t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, sum(a.contracts)::bigint AS contracts
FROM (
    SELECT x.template_ref, count(*) AS contracts FROM active_contracts x
    WHERE btint8cmp(x.activated_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1
    GROUP BY x.template_ref
) a
JOIN templates t ON t.template_ref = a.template_ref
GROUP BY t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name;
COMMENT ON VIEW ledger.active_counts IS 'How many rows ledger.active_contracts has, by template id: the fastest way to count by template or by package, because what is added up is one number for each template id.
@graphql({"primary_key_columns": ["template_id", "package_name"]})';
COMMENT ON COLUMN ledger.active_counts.template_id IS 'Template as the server sent it, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.active_counts.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.active_counts.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.active_counts.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.active_counts.entity_name IS 'Name of the template.';
COMMENT ON COLUMN ledger.active_counts.contracts IS 'How many contracts of this template id are active. One that is active on two synchronizers counts twice.';

-- A creation by a transaction is the row of its contract; an assignment to another synchronizer can be processed before it. Other creation
-- events count if there is none and none precedes them. "+ 0" has PostgreSQL find a contract's events by its id: by offset, which it prefers
-- where nothing was analyzed yet, it would read all events for each contract.
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
      SELECT FROM created f
      WHERE f.contract_id = c.contract_id AND (
          f.origin = 'transaction' AND f.ledger_offset + 0 <= (SELECT ledger.latest_offset())
          OR f.ledger_offset + 0 < c.ledger_offset OR f.ledger_offset + 0 = c.ledger_offset AND f.node_id < c.node_id)));
COMMENT ON VIEW ledger.contracts IS 'One row per contract that was created, assigned, or read from a snapshot: a join by contract_id doubles no rows. Its row is that of its creation, or else of its first assignment or entry of a snapshot. Contracts that were only exercised or archived here have no row: see ledger.looked_up_contracts.
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
COMMENT ON COLUMN ledger.contracts.origin IS 'What its row was part of: transaction (its creation), assignment (the indexed parties did not see its creation), or snapshot.';
COMMENT ON COLUMN ledger.contracts.first_offset IS 'Offset of that creation event.';
COMMENT ON COLUMN ledger.contracts.first_node_id IS 'Node of that creation event: (first_offset, first_node_id) is the row in ledger.created_events.';
COMMENT ON COLUMN ledger.contracts.archived_offset IS 'Offset of its archival. NULL: none was seen. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contracts.synchronizer_ids IS 'The synchronizers on which it is active now. Empty: it is archived, or in the middle of a reassignment, or was only witnessed. Costs a look-up per row.';

-- At any offset ----------------------------------------------------------------------------------------------------

CREATE TABLE lifetimes (
    deactivated_offset   bigint  NOT NULL,
    activated_offset     bigint  NOT NULL,
    reassignment_counter bigint  NOT NULL,
    activated_node_id    integer NOT NULL,
    synchronizer_ref     integer NOT NULL,
    template_ref         integer NOT NULL,
    stakeholders_ref     integer,
    position_id          uuid,
    contract_id          text    NOT NULL,
    amount               numeric,
    locked               boolean,
    locked_until         timestamptz,
    PRIMARY KEY (deactivated_offset, activated_offset, activated_node_id)
) PARTITION BY RANGE (deactivated_offset);
CREATE INDEX lifetimes_position ON lifetimes (position_id, deactivated_offset) INCLUDE (activated_offset)
    WHERE position_id IS NOT NULL; -- for a party's movements, and what it held
CREATE INDEX lifetimes_moved ON lifetimes (deactivated_offset) INCLUDE (activated_offset, activated_node_id, contract_id)
    WHERE position_id IS NOT NULL AND reassignment_counter > 0;
COMMENT ON TABLE lifetimes IS 'One row per lifetime that has ended. Active at offset N are the rows of active_contracts with activated_offset <= N, and those of lifetimes with activated_offset <= N < deactivated_offset.';

CREATE VIEW ledger.contract_lifetimes WITH (security_invoker = true) AS
SELECT x.contract_id, (SELECT s.synchronizer_id FROM synchronizers s WHERE s.synchronizer_ref = x.synchronizer_ref) AS synchronizer_id,
       t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name,
       x.active_from, x.active_from_node_id, x.active_until,
       (SELECT c.payload FROM creations c WHERE c.ledger_offset = x.active_from AND c.node_id = x.active_from_node_id) AS payload,
       (SELECT c.contract_key FROM creations c WHERE c.ledger_offset = x.active_from AND c.node_id = x.active_from_node_id) AS contract_key,
       (SELECT c.signatories FROM creations c WHERE c.ledger_offset = x.active_from AND c.node_id = x.active_from_node_id) AS signatories,
       (SELECT c.observers FROM creations c WHERE c.ledger_offset = x.active_from AND c.node_id = x.active_from_node_id) AS observers,
       (SELECT c.witness_parties FROM creations c WHERE c.ledger_offset = x.active_from AND c.node_id = x.active_from_node_id) AS witness_parties,
       (SELECT c.created_at FROM creations c WHERE c.ledger_offset = x.active_from AND c.node_id = x.active_from_node_id) AS created_at,
       (SELECT u.record_time FROM updates u WHERE u.ledger_offset = x.active_until) AS ended_at,
       x.active_before, CASE WHEN st.party_list_ref = x.stakeholders_ref THEN st.parties END AS stakeholders, x.template_ref AS template_number
FROM (
    SELECT a.contract_id, a.synchronizer_ref, a.template_ref, a.stakeholders_ref, a.activated_offset AS active_from, a.activated_node_id AS active_from_node_id,
           NULL::bigint AS active_until, 9223372036854775807::bigint AS active_before, a.activated_offset AS shown_at
    FROM active_contracts a
    UNION ALL
    SELECT l.contract_id, l.synchronizer_ref, l.template_ref, l.stakeholders_ref, l.activated_offset, l.activated_node_id, l.deactivated_offset,
           l.deactivated_offset, l.deactivated_offset
    FROM lifetimes l
) x
LEFT JOIN templates t ON t.template_ref = x.template_ref
LEFT JOIN party_lists st ON st.party_list_ref = x.stakeholders_ref
WHERE btint8cmp(x.shown_at, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;
COMMENT ON VIEW ledger.contract_lifetimes IS 'One row per contract, synchronizer and time in which the contract is active there. Active at offset N: active_from <= N and active_before > N, which is ledger.active_at(N). Lifetimes are complete from ledger.state_floor() on. It has no index on contract_id: for one contract use ledger.contract_history.
@graphql({"primary_key_columns": ["active_from", "active_from_node_id"], "foreign_keys": [{"local_columns": ["template_number"], "foreign_schema": "ledger", "foreign_table": "template_numbers", "foreign_columns": ["template_number"]}, {"local_columns": ["active_from", "active_from_node_id"], "foreign_schema": "ledger", "foreign_table": "created_events", "foreign_columns": ["ledger_offset", "node_id"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.contract_lifetimes.contract_id IS 'The contract.';
COMMENT ON COLUMN ledger.contract_lifetimes.synchronizer_id IS 'The synchronizer on which it is active. NULL: not served. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.template_id IS 'Template, as served: package-id:Module:Entity.';
COMMENT ON COLUMN ledger.contract_lifetimes.package_id IS 'Package id of the template.';
COMMENT ON COLUMN ledger.contract_lifetimes.package_name IS 'Package name. NULL: not served.';
COMMENT ON COLUMN ledger.contract_lifetimes.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.contract_lifetimes.entity_name IS 'Name of the template.';
COMMENT ON COLUMN ledger.contract_lifetimes.active_from IS 'Offset of the creation, or of the assignment to the synchronizer: active from this offset on. Or, without an event, the offset at which the contract''s parties, template or interfaces were added to the scope.';
COMMENT ON COLUMN ledger.contract_lifetimes.active_from_node_id IS 'Its event: (active_from, active_from_node_id) is the row in ledger.created_events, and is unique here.';
COMMENT ON COLUMN ledger.contract_lifetimes.active_until IS 'Offset of the archival, or of the unassignment: not active at this offset any more. Or, without an event, the offset at which the contract''s parties, template or interfaces were taken away from the scope: what became of it is not known. NULL: active now.';
COMMENT ON COLUMN ledger.contract_lifetimes.payload IS 'Create arguments. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.contract_key IS 'Contract key. NULL: it has none. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.signatories IS 'Signatories. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.observers IS 'Observers. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw the creation or the assignment. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.created_at IS 'Ledger time of the creation, which an assignment does not change. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.ended_at IS 'Record time of the update at active_until. NULL: active now. Costs a look-up per row.';
COMMENT ON COLUMN ledger.contract_lifetimes.active_before IS 'active_until for conditions: active now is the greatest bigint instead of NULL.';
COMMENT ON COLUMN ledger.contract_lifetimes.stakeholders IS 'Signatories and observers in one list, without a look-up per row. NULL where the server did not say.';
COMMENT ON COLUMN ledger.contract_lifetimes.template_number IS 'As in ledger.created_events.';

-- PostgreSQL inlines it into the calling query, so that conditions reach the tables. The offset is checked once.
CREATE FUNCTION ledger.active_at(at_offset bigint DEFAULT ledger.latest_offset()) RETURNS SETOF ledger.contract_lifetimes
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT *
    FROM ledger.contract_lifetimes l
    WHERE l.active_from <= (SELECT ledger.state_offset(at_offset))
      AND l.active_before > (SELECT ledger.state_offset(at_offset)); END;
COMMENT ON FUNCTION ledger.active_at(bigint) IS 'The lifetimes that include an offset: what ledger.active_contracts was at that offset. An error if the active set is not known: below ledger.state_floor() or beyond ledger.latest_offset(); but no rows where conditions on a template or package that nothing stored has exclude them before the offset is looked at. The argument should be a constant, a parameter or a call, and neither a subquery nor a column.';

-- For pruning: contracts that are active at an offset become the entries of a snapshot there, and everything else up to there is removed.
CREATE VIEW needed_creations WITH (security_invoker = true) AS
SELECT a.activated_offset AS ledger_offset, a.activated_node_id AS node_id, true AS active, NULL::bigint AS active_until FROM active_contracts a
UNION ALL
SELECT l.activated_offset, l.activated_node_id, true, l.deactivated_offset FROM lifetimes l;
COMMENT ON VIEW needed_creations IS 'The creation events of contracts from where they are active on.';

-- Resyncs: the active contracts that a participant shows at the watermark are taken in -----------------------------
--
-- What begins there is a row of created at the offset of the resync, of origin snapshot, what ends there a row of resync_deactivations. Their nodes lie above those of all events.
-- Until the last page is read all waits in tables of its own: no reader sees a part of it.

CREATE TABLE resyncs (
    ledger_offset bigint  NOT NULL,
    node_id       integer NOT NULL,
    scope         text    NOT NULL,
    token_kind    text    NOT NULL DEFAULT '',
    token         text    NOT NULL DEFAULT '',
    entries       bigint  NOT NULL DEFAULT 0,
    started_at    timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz,
    PRIMARY KEY (ledger_offset, node_id)
);
CREATE UNIQUE INDEX resyncs_one_unfinished ON resyncs ((finished_at IS NULL)) WHERE finished_at IS NULL;
COMMENT ON TABLE resyncs IS 'The resyncs: where, in which scope, and the node of the first row. token: where the next page of an unfinished one starts.';

CREATE TABLE resync_deactivations (
    ledger_offset    bigint  NOT NULL,
    node_id          integer NOT NULL,
    synchronizer_ref integer NOT NULL,
    contract_id      text    NOT NULL,
    reason           text    NOT NULL CHECK (reason IN ('scope changed', 'not shown')),
    PRIMARY KEY (ledger_offset, node_id)
);
CREATE INDEX resync_deactivations_contract_id ON resync_deactivations USING hash (contract_id);
COMMENT ON TABLE resync_deactivations IS 'Deactivations without an event, by resyncs: of contracts that were active here and that the participant does not show. synchronizer_ref as in active_contracts.';

CREATE TABLE resync_created (LIKE created, PRIMARY KEY (node_id));
COMMENT ON TABLE resync_created IS 'What an unfinished resync has found that is not active here, or is stored otherwise than it is shown, as it will stand in created.';

CREATE TABLE resync_interface_views (LIKE interface_views, PRIMARY KEY (node_id, ordinal));
COMMENT ON TABLE resync_interface_views IS 'The interface views of resync_created.';

CREATE TABLE resync_shown (
    node_id          integer PRIMARY KEY,
    synchronizer_ref integer NOT NULL,
    contract_id      text    NOT NULL
);
COMMENT ON TABLE resync_shown IS 'What an unfinished resync has found that is active here.';

-- How it follows from events ---------------------------------------------------------------------------------------

-- What projecting reads back: of a range of offsets, or of some contracts. Conditions on either reach the index of each table.
CREATE VIEW step_events WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, e.kind, e.contract_id, e.synchronizer_ref, e.template_ref, e.flag, coalesce(e.counter, (
    SELECT r.reassignment_counter FROM reassignments r
    WHERE e.kind = 1 AND e.flag AND r.ledger_offset = e.ledger_offset AND r.node_id = e.node_id
), 0)::bigint AS counter, h.position_id, coalesce(h.amount::text, '')::text AS amount,
    (h.locked IS NOT NULL)::boolean AS lock_known, (h.locked IS TRUE)::boolean AS locked, h.locked_until::timestamptz AS locked_until, e.stakeholders_ref
FROM (
    SELECT c.ledger_offset, c.node_id, 1 AS kind, c.contract_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, c.template_ref,
        (c.origin = 'assignment' OR c.served_offset IS NOT NULL)::boolean AS flag, c.stakeholders_ref, c.reassignment_counter AS counter
    FROM created c
    WHERE c.served_offset IS NOT NULL OR c.origin <> 'snapshot' AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE)
    UNION ALL
    SELECT a.ledger_offset, a.node_id, 2, a.contract_id, coalesce(a.synchronizer_ref, 0), 0, true, NULL, NULL
    FROM archived a
    UNION ALL
    SELECT x.ledger_offset, x.node_id, CASE WHEN x.consuming THEN 3 ELSE 4 END, x.contract_id, coalesce(x.synchronizer_ref, 0), 0,
        x.acs_delta IS NOT FALSE, NULL, NULL
    FROM exercised x
    WHERE x.consuming OR x.acs_delta IS NOT FALSE
    UNION ALL
    SELECT r.ledger_offset, r.node_id, 5, r.contract_id, r.source_ref, 0, false, NULL, NULL
    FROM reassignments r
    WHERE r.kind = 'unassigned' AND r.created_offset IS NULL
    UNION ALL
    SELECT d.ledger_offset, d.node_id, 6, d.contract_id, d.synchronizer_ref, 0, false, NULL, NULL
    FROM resync_deactivations d
) e
LEFT JOIN LATERAL (
    SELECT y.position_id, y.amount, y.locked, y.locked_until FROM holding_events y
    WHERE e.kind = 1 AND e.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND y.ledger_offset = e.ledger_offset AND y.node_id = e.node_id
    LIMIT 1
) h ON true;
COMMENT ON VIEW step_events IS 'The events that change the active set, or use what is in it, with what the contract of a creation holds. Package active says what the kinds are, and computes the same from events in memory.';

-- Projecting computes both tables event by event. This function computes the same from all events at once, for comparing. It orders the
-- events of an update by node id, and those with the same node id by kind, as below.
CREATE FUNCTION activations(from_exclusive bigint, to_inclusive bigint, ended_after bigint)
RETURNS TABLE (contract_id text, synchronizer_ref integer, template_ref integer, activated_offset bigint, activated_node_id integer,
    reassignment_counter bigint, deactivated_offset bigint)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT t.contract_id, t.synchronizer_ref, t.template_ref, t.ledger_offset, t.node_id, t.reassignment_counter, t.ended
FROM (
    SELECT e.*, lead(e.ledger_offset) OVER (
        PARTITION BY e.contract_id COLLATE "C", e.synchronizer_ref ORDER BY e.ledger_offset, e.node_id, e.kind
    ) AS ended
    FROM (
        SELECT c.contract_id, coalesce(c.synchronizer_ref, 0) AS synchronizer_ref, c.ledger_offset, c.node_id, 1 AS kind, c.template_ref,
            coalesce(c.reassignment_counter, r.reassignment_counter, 0) AS reassignment_counter, true AS activates
        FROM created c
        LEFT JOIN reassignments r
            ON c.origin = 'assignment' AND r.kind = 'assigned' AND r.ledger_offset = c.ledger_offset AND r.node_id = c.node_id
        WHERE c.ledger_offset <= to_inclusive AND (c.reassignment_counter IS NOT NULL
            OR c.origin <> 'snapshot' AND c.ledger_offset > from_exclusive AND (c.origin = 'assignment' OR c.acs_delta IS NOT FALSE))
        UNION ALL
        SELECT a.contract_id, coalesce(a.synchronizer_ref, 0), a.ledger_offset, a.node_id, 2, NULL, NULL, false
        FROM archived a
        WHERE a.ledger_offset > from_exclusive AND a.ledger_offset <= to_inclusive
        UNION ALL
        SELECT x.contract_id, coalesce(x.synchronizer_ref, 0), x.ledger_offset, x.node_id, 3, NULL, NULL, false
        FROM exercised x
        WHERE x.ledger_offset > from_exclusive AND x.ledger_offset <= to_inclusive AND x.consuming
        UNION ALL
        SELECT r.contract_id, r.source_ref, r.ledger_offset, r.node_id, 4, NULL, NULL, false
        FROM reassignments r
        WHERE r.ledger_offset > from_exclusive AND r.ledger_offset <= to_inclusive AND r.kind = 'unassigned'
        UNION ALL
        SELECT d.contract_id, d.synchronizer_ref, d.ledger_offset, d.node_id, 5, NULL, NULL, false
        FROM resync_deactivations d
        WHERE d.ledger_offset > from_exclusive AND d.ledger_offset <= to_inclusive
    ) e
) t
WHERE t.activates AND (t.ended IS NULL OR t.ended > ended_after);
END;
COMMENT ON FUNCTION activations(bigint, bigint, bigint) IS 'Each activation of a contract on a synchronizer (0: not served) by an entry of the snapshot or by an event of a range, and the offset at which it ended (deactivated_offset; NULL: it is active). Without those that ended up to ended_after. active_contracts and lifetimes must equal this.';

CREATE FUNCTION active_holdings(from_exclusive bigint, to_inclusive bigint, ended_after bigint)
RETURNS TABLE (contract_id text, synchronizer_ref integer, template_ref integer, activated_offset bigint, activated_node_id integer,
    reassignment_counter bigint, deactivated_offset bigint, position_id uuid, amount numeric, locked boolean, locked_until timestamptz, stakeholders_ref integer)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT t.contract_id, t.synchronizer_ref, t.template_ref, t.activated_offset, t.activated_node_id, t.reassignment_counter, t.deactivated_offset,
       e.position_id, e.amount, e.locked, e.locked_until,
       (SELECT c.stakeholders_ref FROM created c WHERE c.ledger_offset = t.activated_offset AND c.node_id = t.activated_node_id)
FROM activations(from_exclusive, to_inclusive, ended_after) t
LEFT JOIN LATERAL (
    SELECT h.position_id, h.amount, h.locked, h.locked_until
    FROM holding_events h
    WHERE t.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k))
      AND h.ledger_offset = t.activated_offset AND h.node_id = t.activated_node_id
    LIMIT 1
) e ON true;
END;
COMMENT ON FUNCTION active_holdings(bigint, bigint, bigint) IS 'activations, with what each contract holds, and for whom. active_contracts and lifetimes must equal this.';
