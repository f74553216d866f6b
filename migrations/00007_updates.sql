-- Updates, changes of topology, and what is of no known kind; which offset was when.
--
-- Of facts (this file, 00010 and 00011): they are written once and never updated, and the indexer attaches partitions
-- when rows need them. Up to the history floor they are the entries of the snapshot that lies there: each event at the
-- place that the snapshot says, with what the entry says besides in columns that are NULL in all other rows. They lie in
-- one partition, and belong to no covered range.
-- Columns of a fixed length come first, the longest before the others: so none is padded to its alignment, and a
-- condition on one behind a text would take half as long again.
--
-- Of their views: a column that needs a look-up elsewhere (update_id, payload of an active contract) is a scalar
-- subquery, so that only queries that name it pay for it. It stands outside of unions: what is in a branch is planned
-- with every query, whether that names it or not, and updates can have many partitions. Rows of a snapshot have no
-- update, also where one lies at the offset of a resync.
-- Conditions on the watermark are true of almost every row, and the planner takes "btint8cmp(x, y) <> 1", which is
-- x <= y, as that: of "<=" with a value that it doesn't know it expects a third of the rows, and so nested loops where
-- there are many. Nor does it combine a scan of the whole primary key with the selective index.
-- For a condition inside a union PostgreSQL would read the whole table even if a join needs few rows. So conditions are
-- outside of unions, on shown_at, which is NULL for rows that are not shown. There the watermark is read from its table:
-- the function would be planned again in each query.
-- A joined list of parties is shown only if it is the event's. A condition on the column then depends on both rows, so
-- that no function of a reader gets a list before the event is known to be visible to him (docs/access.md).

-- +goose Up

CREATE TABLE updates (
    ledger_offset             bigint NOT NULL,
    record_time               timestamptz,
    effective_at              timestamptz,
    paid_traffic_cost         bigint,
    synchronizer_ref          integer,
    seen_by_ref               integer,
    seen_also_by_ref          integer,
    seen_by_others_ref        integer,
    kind                      text NOT NULL,
    update_id                 text,
    command_id                text,
    workflow_id               text,
    trace_parent              text,
    trace_state               text,
    external_transaction_hash bytea,
    transaction_hash          bytea,
    extra                     jsonb,
    exact                     jsonb,
    PRIMARY KEY (ledger_offset)
) PARTITION BY RANGE (ledger_offset);
CREATE INDEX updates_exact ON updates (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX updates_update_id ON updates USING hash (update_id);
CREATE INDEX updates_record_time ON updates USING brin (record_time, (ledger_offset + 0)) WITH (pages_per_range = 16); -- for ledger.offset_at
COMMENT ON TABLE updates IS 'Facts: one row per update. Shown as ledger.updates.';
COMMENT ON COLUMN updates.seen_by_ref IS 'Parties that may see at least one of its events: one of the lists of its events. NULL: none.';
COMMENT ON COLUMN updates.seen_also_by_ref IS 'More of them: another list, where that one has not all. NULL: no more.';
COMMENT ON COLUMN updates.seen_by_others_ref IS 'All others, where both have not all. NULL: no more.';

CREATE VIEW ledger.updates WITH (security_invoker = true) AS
SELECT u.ledger_offset, u.update_id, u.kind, s.synchronizer_id, u.record_time, u.effective_at, u.workflow_id,
       u.command_id, u.trace_parent, u.trace_state, u.external_transaction_hash, u.paid_traffic_cost,
       u.transaction_hash, u.extra
FROM updates u
LEFT JOIN synchronizers s ON s.synchronizer_ref = u.synchronizer_ref
WHERE btint8cmp(u.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.updates IS 'One row per update: a transaction, a reassignment or a change of topology that this participant saw. Its events are in the other relations under the same ledger_offset.
@graphql({"primary_key_columns": ["ledger_offset"]})';
COMMENT ON COLUMN ledger.updates.ledger_offset IS 'Position of the update in this participant''s ledger. Offsets grow, have gaps, and mean nothing on another participant: compare participants by update_id. Indexed.';
COMMENT ON COLUMN ledger.updates.update_id IS 'Id of the update, the same on every participant that saw it. NULL only where the kind is unknown and no id could be read. Indexed.';
COMMENT ON COLUMN ledger.updates.kind IS 'transaction, reassignment, topology, or unknown: of a kind that this version does not know, see ledger.unknown_updates.';
COMMENT ON COLUMN ledger.updates.synchronizer_id IS 'The synchronizer that ordered the update. NULL where the server did not say (reassignments of release 3.3; unknown kinds).';
COMMENT ON COLUMN ledger.updates.record_time IS 'When the synchronizer recorded the update; of a topology update the time from which the change holds. Grows with the offset within one synchronizer, not across several. Microseconds, UTC. NULL only for an unknown kind without one.';
COMMENT ON COLUMN ledger.updates.effective_at IS 'Ledger time of the transaction, the "now" that its contracts saw. Not in the order of offsets. NULL for everything but transactions.';
COMMENT ON COLUMN ledger.updates.workflow_id IS 'Workflow id that the submitter gave. An empty text where there was none; NULL where the server sent no such field (topology, unknown).';
COMMENT ON COLUMN ledger.updates.command_id IS 'Command id of the submission. An empty text unless a party that the indexer reads for submitted it; NULL where the server sent no such field.';
COMMENT ON COLUMN ledger.updates.trace_parent IS 'W3C traceparent of the submission. NULL where the server gave no trace context.';
COMMENT ON COLUMN ledger.updates.trace_state IS 'W3C tracestate of the submission. NULL where the server gave none.';
COMMENT ON COLUMN ledger.updates.external_transaction_hash IS 'Hash that was signed outside of the participant (external signing). NULL for updates that were not submitted this way.';
COMMENT ON COLUMN ledger.updates.paid_traffic_cost IS 'Traffic in bytes that the submission was charged. NULL where the server did not say: only the submitting participant knows it, and none says it before release 3.4.';
COMMENT ON COLUMN ledger.updates.transaction_hash IS 'Hash of the transaction. NULL where the server did not say (before release 3.6).';
COMMENT ON COLUMN ledger.updates.extra IS 'Fields that the server sent and this version does not know, under their own names. NULL: none.';

-- Read from the catalog, so that nothing has to be kept in step with it.
CREATE VIEW partitions WITH (security_invoker = true) AS
SELECT p.relname::text AS relation, b.bounds[1]::bigint AS from_offset, b.bounds[2]::bigint AS to_offset, c.relname::text AS name
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition
CROSS JOIN LATERAL (
    SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)$') AS bounds
) b
WHERE p.relnamespace = (SELECT k.relnamespace FROM pg_catalog.pg_class k WHERE k.oid = 'updates'::regclass) AND b.bounds IS NOT NULL;
COMMENT ON VIEW partitions IS 'The partitions by ranges of offsets: from_offset inclusive, to_offset exclusive. name: the table that is the partition.';

-- Topology ---------------------------------------------------------------------------------------------------------

CREATE TABLE topology_events (
    ledger_offset    bigint  NOT NULL,
    node_id          integer NOT NULL,
    kind             text    NOT NULL,
    synchronizer_ref integer,
    record_time      timestamptz,
    party_id         text,
    participant_id   text,
    permission       text,
    extra            jsonb,
    exact            jsonb,
    PRIMARY KEY (ledger_offset, node_id)
) PARTITION BY RANGE (ledger_offset);
CREATE INDEX topology_events_exact ON topology_events (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX topology_events_record_time ON topology_events USING brin (record_time);
CREATE INDEX topology_events_party ON topology_events USING hash (party_id);
COMMENT ON TABLE topology_events IS 'Facts: topology events. Shown as ledger.topology_events.';

CREATE VIEW ledger.topology_events WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, e.kind, e.party_id, e.participant_id, e.permission,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       s.synchronizer_id, e.record_time, e.extra
FROM topology_events e
LEFT JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.topology_events IS 'One row per change of who hosts a party: a participant was given, changed or lost the right to act for it.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["ledger_offset"]}]})';
COMMENT ON COLUMN ledger.topology_events.ledger_offset IS 'Offset of the event. Indexed.';
COMMENT ON COLUMN ledger.topology_events.node_id IS 'Place of the event within its update, counted from 0 (the server sends no node ids for these). (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.topology_events.kind IS 'added, changed, revoked, onboarding, or unknown: of a kind that this version does not know, see ledger.unknown_updates.';
COMMENT ON COLUMN ledger.topology_events.party_id IS 'The party. NULL for an unknown kind.';
COMMENT ON COLUMN ledger.topology_events.participant_id IS 'The participant that hosts it. NULL for an unknown kind.';
COMMENT ON COLUMN ledger.topology_events.permission IS 'The right it now has, PARTICIPANT_PERMISSION_SUBMISSION, _CONFIRMATION or _OBSERVATION. NULL for a revocation and for an unknown kind.';
COMMENT ON COLUMN ledger.topology_events.update_id IS 'Id of the event''s update. Costs a look-up per row.';
COMMENT ON COLUMN ledger.topology_events.synchronizer_id IS 'Synchronizer on which the change holds.';
COMMENT ON COLUMN ledger.topology_events.record_time IS 'From when the change holds, not when it was recorded. Microseconds, UTC.';
COMMENT ON COLUMN ledger.topology_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- It shows a limited role its own parties. A barrier: a reader's condition must not see the others before they are filtered out.
CREATE VIEW ledger.parties WITH (security_invoker = true, security_barrier = true) AS
SELECT p.party, split_part(p.party, '::', 1) AS hint, nullif(split_part(p.party, '::', 2), '') AS namespace,
       bool_or(p.in_events) AS in_events, bool_or(NOT p.in_events) AS in_topology
FROM (
    SELECT DISTINCT unnest(l.parties) AS party, true AS in_events FROM party_lists l
    UNION
    SELECT t.party_id, false FROM ledger.topology_events t WHERE t.party_id IS NOT NULL
) p
WHERE EXISTS (SELECT FROM unlimited) OR p.party IN (SELECT m.party FROM my_parties m)
GROUP BY p.party;
COMMENT ON VIEW ledger.parties IS 'One row per party that is a signatory, observer, witness or actor of something stored, or that a topology event is of. These are the names that are stored: they can be ahead of ledger.latest_offset(), and stay where a reset or a repair took the events away.
@graphql({"primary_key_columns": ["party"]})';
COMMENT ON COLUMN ledger.parties.party IS 'The party.';
COMMENT ON COLUMN ledger.parties.hint IS 'What stands before :: in it: a name that was chosen for people, and is not unique.';
COMMENT ON COLUMN ledger.parties.namespace IS 'What stands after ::, a fingerprint of the key that the party belongs to. NULL where there is none.';
COMMENT ON COLUMN ledger.parties.in_events IS 'Whether an event names it.';
COMMENT ON COLUMN ledger.parties.in_topology IS 'Whether a topology event names it.';

-- Rare rows: not partitioned, because almost every database has none of them ----------------------------------------

CREATE TABLE unknown_elements (
    ledger_offset    bigint  NOT NULL,
    ordinal          integer NOT NULL,
    node_id          integer,
    kind             text    NOT NULL,
    synchronizer_ref integer,
    record_time      timestamptz,
    raw              jsonb,
    exact            jsonb,
    -- Of a snapshot only, whose offset they have:
    workflow_id      text,
    entry_extra      jsonb,
    PRIMARY KEY (ledger_offset, ordinal)
);
COMMENT ON TABLE unknown_elements IS 'Elements of an unknown kind, raw, of covered updates. Shown as ledger.unknown_updates.';

CREATE VIEW ledger.unknown_updates WITH (security_invoker = true) AS
SELECT e.ledger_offset, e.node_id, e.kind, e.raw,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = e.ledger_offset) AS update_id,
       s.synchronizer_id, e.record_time
FROM unknown_elements e
LEFT JOIN synchronizers s ON s.synchronizer_ref = e.synchronizer_ref
WHERE btint8cmp(e.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.unknown_updates IS 'One row per update, event or snapshot entry of a kind that this version does not know, as the server sent it. Empty in the usual case. Rows here mean that the other relations may lack something: a newer release of the indexer may know the kind.';
COMMENT ON COLUMN ledger.unknown_updates.ledger_offset IS 'Offset of the update; of a snapshot entry the offset of the snapshot. Indexed.';
COMMENT ON COLUMN ledger.unknown_updates.node_id IS 'Node id of the event. NULL for a whole update, for a snapshot entry, and where the event names none.';
COMMENT ON COLUMN ledger.unknown_updates.kind IS 'Name of the kind as the server sent it. JsEmpty: an empty snapshot entry that came with something unknown in or around it.';
COMMENT ON COLUMN ledger.unknown_updates.raw IS 'What the server sent, an object with kind as its only key. NULL: it was redacted, see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.unknown_updates.update_id IS 'Id of the update. NULL where it could not be read, and for a snapshot entry.';
COMMENT ON COLUMN ledger.unknown_updates.synchronizer_id IS 'Synchronizer of the update. NULL where it could not be read, and for a snapshot entry.';
COMMENT ON COLUMN ledger.unknown_updates.record_time IS 'When the synchronizer recorded the update. NULL where it could not be read, and for a snapshot entry.';

CREATE TABLE offset_checkpoints (
    ledger_offset    bigint  NOT NULL,
    synchronizer_ref integer NOT NULL,
    record_time      timestamptz NOT NULL,
    ordinal          integer NOT NULL, -- index in the checkpoint's list, by which extra refers to it
    extra            jsonb,
    exact            jsonb,
    PRIMARY KEY (ledger_offset, synchronizer_ref)
);
CREATE INDEX offset_checkpoints_exact ON offset_checkpoints (ledger_offset) WHERE exact IS NOT NULL;
COMMENT ON TABLE offset_checkpoints IS 'The server''s hints about record times, the latest per offset and synchronizer. Not part of the coverage.';

CREATE VIEW ledger.offset_checkpoints WITH (security_invoker = true) AS
SELECT o.ledger_offset, s.synchronizer_id, o.record_time, o.extra
FROM offset_checkpoints o
JOIN synchronizers s ON s.synchronizer_ref = o.synchronizer_ref
WHERE btint8cmp(o.ledger_offset, (SELECT ledger.latest_offset())) <> 1;
COMMENT ON VIEW ledger.offset_checkpoints IS 'How far in time each synchronizer was when the server reached an offset. These are hints: the server sends them now and then, and only while the indexer waits for new updates.
@graphql({"primary_key_columns": ["ledger_offset", "synchronizer_id"]})';
COMMENT ON COLUMN ledger.offset_checkpoints.ledger_offset IS 'The offset. It need not be that of an update. (ledger_offset, synchronizer_id) is unique. Indexed.';
COMMENT ON COLUMN ledger.offset_checkpoints.synchronizer_id IS 'The synchronizer.';
COMMENT ON COLUMN ledger.offset_checkpoints.record_time IS 'The synchronizer''s record time at the offset, the latest that was reported. No update of the synchronizer with a greater offset has an earlier record time.';
COMMENT ON COLUMN ledger.offset_checkpoints.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

-- Time and offsets -------------------------------------------------------------------------------------------------

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
