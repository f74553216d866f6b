-- The active set at any offset, contracts, events of all kinds in one view, and offsets by time.

-- +goose Up

-- Lifetimes ------------------------------------------------------------------------------------------------------

CREATE VIEW ledger.contract_lifetimes AS
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
COMMENT ON VIEW ledger.contract_lifetimes IS 'One row per contract, synchronizer and time in which the contract is active there. Active at offset N: active_from <= N and active_before > N, which is ledger.active_at(N). Lifetimes are complete from ledger.state_floor() on. It has no index on contract_id: for one contract use ledger.contract_history.';
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

-- Contracts ------------------------------------------------------------------------------------------------------

-- A creation by a transaction is the only one of its contract. Other creation events count if none precedes them. "+ 0" has PostgreSQL find a
-- contract's events by its id: by offset, which it prefers where nothing was analyzed yet, it would read all events for each contract.
CREATE VIEW ledger.contracts AS
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

COMMENT ON VIEW ledger.contracts IS 'One row per contract that was created, assigned, or read from a snapshot: a join by contract_id doubles no rows. The row of a reassigned contract is its first creation event. Contracts that were only exercised or archived here have no row: see ledger.looked_up_contracts.';
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

-- Events ---------------------------------------------------------------------------------------------------------

CREATE VIEW ledger.events AS
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

COMMENT ON VIEW ledger.events IS 'Creations, assignments, exercises, archivals and unassignments with the same columns. A transaction as a tree: WHERE ledger_offset = (SELECT ledger_offset FROM ledger.updates WHERE update_id = ...) ORDER BY node_id, with parent_node_id. A consuming exercise archives its contract and is one row here. The shape acs-delta has no exercises, so events have no parents.';
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

-- An index on keys themselves would refuse long ones, or keep equal ones in a chain that each new one walks. So the one that is made on demand
-- is on their hash, which only a query that says the same can use. PostgreSQL inlines this into the calling query.
CREATE FUNCTION ledger.created_with_key(contract_key jsonb) RETURNS SETOF ledger.created_events LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT * FROM ledger.created_events c
    WHERE jsonb_hash_extended(c.contract_key, 0) = jsonb_hash_extended(created_with_key.contract_key, 0) AND c.contract_key = created_with_key.contract_key; END;
COMMENT ON FUNCTION ledger.created_with_key(jsonb) IS 'The rows of ledger.created_events with a contract key. It uses the index of keys where there is one (indexer index create TEMPLATE --key), which a condition on the column does not; without one it reads every creation event.';

-- Time and offsets -----------------------------------------------------------------------------------------------
CREATE VIEW ledger.synchronizers AS SELECT s.synchronizer_id, s.synchronizer_ref AS number FROM synchronizers s;
COMMENT ON VIEW ledger.synchronizers IS 'One row per synchronizer that something stored names.';
COMMENT ON COLUMN ledger.synchronizers.synchronizer_id IS 'The synchronizer. Unique.';
COMMENT ON COLUMN ledger.synchronizers.number IS 'In which order they were first seen.';

-- Record times mostly grow with the offset, and need not: not across synchronizers, not across a network's migrations, and nothing checks them
-- within a synchronizer. So what is bisected, all updates together, is some offset at which an update is later than the time; whichever update
-- before it is later, too, is found by the block index of times and offsets. To bisect each synchronizer would read, for one with few updates, all
-- that lie between two of them. An update that is not later can lie behind many that are: a synchronizer was away, and its updates come at once. So
-- what lies before the last one that bisecting found is bisected again, until nothing there is found to be later. What the index has of a block of
-- pages is read as a whole, so bisecting ends at about as many offsets. The plans serve every time, so that no call but a session's first one makes them.
-- These functions read through views, with the caller's rights: they reveal no time of an update that he may not see.

CREATE FUNCTION ledger.offset_at(at_time timestamptz, synchronizer_id text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    floor  bigint := ledger.oldest_offset();
    latest bigint := ledger.latest_offset();
    low    bigint := latest + 1;
    upto   bigint;           -- offsets left to search are lower than this
    later  bigint := latest; -- an offset up to which the first later update is, if there is one
    before bigint;           -- later, before it was searched for once more
    middle bigint;
    found_offset bigint;
    found_time   timestamptz;
    answer bigint;
BEGIN
    IF at_time IS NULL THEN
        RAISE EXCEPTION 'a time is needed, not NULL' USING ERRCODE = 'null_value_not_allowed';
    ELSIF latest IS NULL THEN
        RAISE EXCEPTION 'nothing has been indexed yet'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start the indexer, or wait for the snapshot to be complete.';
    ELSIF synchronizer_id IS NOT NULL AND NOT EXISTS (SELECT FROM ledger.synchronizers s WHERE s.synchronizer_id = offset_at.synchronizer_id) THEN
        RAISE EXCEPTION 'no update names the synchronizer %', synchronizer_id
            USING ERRCODE = 'invalid_parameter_value',
                HINT = 'There are: ' || coalesce((SELECT string_agg(s.synchronizer_id, ', ' ORDER BY s.number) FROM ledger.synchronizers s), 'none');
    END IF;
    LOOP
        upto := low;
        low := floor;
        before := later;
        WHILE low + 1000 < upto LOOP
            middle := low + (upto - low) / 2;
            SELECT u.ledger_offset, u.record_time INTO found_offset, found_time
            FROM ledger.updates u
            WHERE u.ledger_offset >= middle AND u.ledger_offset < upto AND u.record_time IS NOT NULL
            ORDER BY u.ledger_offset LIMIT 1;
            IF NOT FOUND THEN
                upto := middle;
            ELSIF found_time > at_time THEN
                later := found_offset;
                upto := middle;
            ELSE
                low := found_offset;
            END IF;
        END LOOP;
        EXIT WHEN later = before;
    END LOOP;
    -- "+ 0" is what the block index has. Of plain offsets the planner would read all up to the lowest that is found.
    SELECT min(u.ledger_offset + 0) - 1 INTO answer
    FROM ledger.updates u WHERE u.record_time > at_time AND u.ledger_offset + 0 > floor AND u.ledger_offset + 0 <= later;
    answer := coalesce(answer, latest);
    IF synchronizer_id IS NOT NULL AND answer < latest THEN
        SELECT u.ledger_offset - 1 INTO answer
        FROM ledger.updates u
        WHERE u.ledger_offset > answer AND u.synchronizer_id = offset_at.synchronizer_id AND u.record_time > at_time ORDER BY u.ledger_offset LIMIT 1;
        answer := coalesce(answer, latest);
    END IF;
    IF floor > 0 AND NOT EXISTS (
        SELECT FROM ledger.updates u
        WHERE u.ledger_offset > floor AND u.ledger_offset <= answer
          AND (offset_at.synchronizer_id IS NULL OR u.synchronizer_id = offset_at.synchronizer_id)
    ) AND (answer < latest OR at_time < least(now(), (
        SELECT max(o.record_time) FROM ledger.offset_checkpoints o
        WHERE o.ledger_offset <= latest AND (offset_at.synchronizer_id IS NULL OR o.synchronizer_id = offset_at.synchronizer_id)))) THEN
        RAISE EXCEPTION 'the offset at % is not known: %', at_time,
                format(CASE WHEN answer < latest THEN 'the first update after offset %s is later' ELSE 'there is no update after offset %s' END, floor)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for a later time.';
    END IF;
    -- Callers' clocks may be a little ahead, and those of the ledger far ahead.
    IF answer = latest AND at_time NOT BETWEEN now() - interval '1 minute' AND now() + interval '1 minute' AND NOT EXISTS (
        SELECT FROM ledger.updates u
        WHERE u.record_time >= at_time AND u.ledger_offset + 0 > floor AND (offset_at.synchronizer_id IS NULL OR u.synchronizer_id = offset_at.synchronizer_id)
    ) AND NOT EXISTS (
        SELECT FROM ledger.offset_checkpoints o
        WHERE o.record_time >= at_time AND o.ledger_offset <= latest AND (offset_at.synchronizer_id IS NULL OR o.synchronizer_id = offset_at.synchronizer_id)
    ) THEN
        IF at_time > now() THEN
            RAISE EXCEPTION 'the offset at % is not known: that is in the future', at_time
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for now(), or use ledger.latest_offset().';
        END IF;
        RAISE NOTICE 'the ledger is indexed up to offset %, and nothing of % or later has come yet', latest, at_time
            USING HINT = 'The answer is the latest offset, and grows where the indexer is behind.';
    END IF;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION ledger.offset_at(timestamptz, text) IS 'The last offset up to which no update, on the named synchronizer or on all, has a later record time. For a time after the last update it is ledger.latest_offset(), which may still grow: with a notice, if neither an update nor an offset checkpoint of that time or later has come and it is more than a minute ago. An error for a time more than a minute in the future that the ledger has not come to, for a time before the first update there, unless the ledger is indexed from its beginning, and for an unknown synchronizer. Where there is no update yet, for a time before the latest offset checkpoint, or without one before now.';

CREATE FUNCTION ledger.time_at(at_offset bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    IF ledger.latest_offset() IS NULL THEN
        RAISE EXCEPTION 'nothing has been indexed yet'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start the indexer, or wait for the snapshot to be complete.';
    ELSIF at_offset IS NULL THEN
        RAISE EXCEPTION 'an offset is needed, not NULL' USING ERRCODE = 'null_value_not_allowed';
    ELSIF at_offset < ledger.oldest_offset() OR at_offset > ledger.latest_offset() THEN
        RAISE EXCEPTION 'offset % is not between % and %', at_offset, ledger.oldest_offset(), ledger.latest_offset()
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an offset between ledger.oldest_offset() and ledger.latest_offset().';
    END IF;
    RETURN (
        SELECT u.record_time FROM ledger.updates u
        WHERE u.ledger_offset <= at_offset AND u.ledger_offset > ledger.oldest_offset() AND u.record_time IS NOT NULL
        ORDER BY u.ledger_offset DESC LIMIT 1
    );
END
$$;
COMMENT ON FUNCTION ledger.time_at(bigint) IS 'Record time of the last update up to an offset. NULL: there is none. An error for an offset that is not between ledger.oldest_offset() and ledger.latest_offset().';

CREATE FUNCTION ledger.is_complete(from_exclusive bigint, to_inclusive bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce((
    SELECT range_agg(int8range(c.from_exclusive, c.to_inclusive)) @> int8range(is_complete.from_exclusive, is_complete.to_inclusive) FROM ledger.coverage c
    WHERE c.in_force
), false);
COMMENT ON FUNCTION ledger.is_complete(bigint, bigint) IS 'Whether every event of the scope in force after the first offset up to the second is stored. After something was added to the scope this is false of what was stored before. ledger.coverage says for which parties a range is complete. False where one of them is NULL; an error where the second is lower.';

-- VOLATILE: each of its statements sees what was committed before that statement.
CREATE FUNCTION ledger.wait_for_offset(target bigint, timeout interval DEFAULT '10 s') RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $$
DECLARE
    until timestamptz := clock_timestamp() + timeout;
BEGIN
    IF target IS NULL OR timeout IS NULL THEN
        RAISE EXCEPTION 'an offset and a time are needed, not NULL' USING ERRCODE = 'null_value_not_allowed';
    ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'a transaction with isolation level % never sees an offset that comes later', current_setting('transaction_isolation')
            USING ERRCODE = 'active_sql_transaction', HINT = 'Wait before the transaction, or in one with isolation level read committed.';
    END IF;
    WHILE coalesce(ledger.latest_offset() < target, true) LOOP
        IF clock_timestamp() >= until THEN
            RETURN false;
        END IF;
        PERFORM pg_sleep(least(0.01, extract(epoch FROM until - clock_timestamp())));
    END LOOP;
    RETURN true;
END
$$;
COMMENT ON FUNCTION ledger.wait_for_offset(bigint, interval) IS 'Waits until everything up to an offset is visible, and returns true; false after the timeout. For a program that submitted a command and reads its update here. An error in a transaction with isolation level repeatable read or serializable, which never sees later commits.';
