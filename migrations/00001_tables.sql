-- The tables beneath the analysts' views: facts, coverage, projections, floors, leadership.
-- docs/architecture.md explains the words.

-- +goose Up

CREATE SCHEMA ledger;
COMMENT ON SCHEMA ledger IS 'The ledger as one participant shows it, up to ledger.latest_offset(). Read docs/sql.md.';

-- What the database holds, and of whom ------------------------------------------------------------------------

CREATE TABLE participant (
    only_row       boolean NOT NULL DEFAULT true CHECK (only_row),
    participant_id text NOT NULL CHECK (participant_id <> ''),
    recorded_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (only_row)
);
COMMENT ON TABLE participant IS 'The participant whose ledger these tables hold. Empty: the server has not reported its id.';

CREATE TABLE scopes (
    scope       text NOT NULL,
    definition  jsonb NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope)
);
COMMENT ON TABLE scopes IS 'The scopes that the hashes in coverage stand for.';

CREATE TABLE leadership (
    role      text PRIMARY KEY,
    epoch     bigint NOT NULL,
    holder    text,
    led_since timestamptz
);
COMMENT ON TABLE leadership IS 'One row per writing role. Every write transaction holds its row FOR SHARE at its own epoch, so that an earlier leader can commit nothing.';
INSERT INTO leadership (role, epoch) VALUES ('updates', 0), ('transactions', 0), ('pruning', 0), ('repair', 0);

-- What is locked are views that show nothing. A role that may only read can't lock them against others, as it could with advisory
-- locks; and vacuum, which would wait for the leader, passes views by.
DO $$
DECLARE
    lock record;
BEGIN
    FOR lock IN
        SELECT 'lead_' || role AS name, 'Locked by the process that has the role.' AS use FROM leadership
        UNION ALL SELECT 'turn_' || role, 'Locked by each transaction that writes in the role. Writers share it; a repair waits here for its turn.' FROM leadership
        UNION ALL VALUES ('turn_lists', 'Locked by who adds lists of parties.'), ('turn_indexes', 'Locked by who makes or drops indexes of fields.')
    LOOP
        EXECUTE format('CREATE VIEW %I WITH (security_invoker = true) AS SELECT', lock.name);
        EXECUTE format('COMMENT ON VIEW %I IS %L', lock.name, lock.use || ' Shows nothing.');
    END LOOP;
END
$$;
CREATE FUNCTION lock_holders(lock regclass) RETURNS TABLE (pid integer) LANGUAGE sql STABLE
BEGIN ATOMIC
SELECT k.pid FROM pg_catalog.pg_locks k
WHERE k.locktype = 'relation' AND k.granted AND k.mode = 'ExclusiveLock' AND k.relation = lock
    AND k.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database());
END;
COMMENT ON FUNCTION lock_holders(regclass) IS 'The sessions that have locked a view against all others.';

CREATE TABLE checkpoints (
    stream        text NOT NULL,
    ledger_offset bigint,
    event_id      text,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream),
    CHECK (stream = 'transactions' OR stream = 'updates' AND ledger_offset IS NOT NULL AND event_id IS NULL)
);
COMMENT ON TABLE checkpoints IS 'Where each stream resumes. For updates this is the watermark, up to which readers see everything.';

CREATE FUNCTION watermark() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT c.ledger_offset FROM checkpoints c WHERE c.stream = 'updates');
COMMENT ON FUNCTION watermark() IS 'The last offset that is shown. NULL: nothing has been indexed. Shown as ledger.latest_offset().';

CREATE TABLE coverage (
    stream         text   NOT NULL CHECK (stream = 'updates'),
    scope          text   NOT NULL,
    from_exclusive bigint NOT NULL CHECK (from_exclusive >= 0),
    to_inclusive   bigint NOT NULL,
    PRIMARY KEY (stream, from_exclusive),
    CHECK (from_exclusive < to_inclusive),
    -- Of two writers of the same range the second waits here, and fails if the first commits.
    CONSTRAINT coverage_once EXCLUDE USING gist (int8range(from_exclusive, to_inclusive, '(]') WITH &&)
) WITH (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE coverage IS 'The offset ranges whose facts are stored. Written in the transaction that writes the facts.';

CREATE TABLE snapshots (
    snapshot_offset bigint NOT NULL,
    scope           text   NOT NULL,
    token_kind      text   NOT NULL,
    token           text   NOT NULL,
    entries         bigint NOT NULL CHECK (entries >= 0),
    started_at      timestamptz NOT NULL DEFAULT now(),
    finished_at     timestamptz,
    pruned          boolean,
    mixed           boolean,
    PRIMARY KEY (snapshot_offset)
);
CREATE UNIQUE INDEX snapshots_one_unfinished ON snapshots ((finished_at IS NULL)) WHERE finished_at IS NULL;
COMMENT ON TABLE snapshots IS 'Snapshots that were read or are being read. token: where the next page starts.';
COMMENT ON COLUMN snapshots.mixed IS 'Some of the rows that pruning made were read in other scopes, and have their witnesses and views. NULL: all are of this scope.';
COMMENT ON COLUMN snapshots.pruned IS 'Its rows were made of what was stored, when everything before was pruned. NULL: they were read from the participant.';

CREATE TABLE floors (
    stream        text NOT NULL CHECK (stream = 'updates'),
    history_floor bigint NOT NULL CHECK (history_floor >= 0),
    state_floor   bigint CHECK (state_floor >= history_floor),
    pruned_to     bigint CHECK (pruned_to <= history_floor),
    changed_to    text,
    PRIMARY KEY (stream)
);
COMMENT ON TABLE floors IS 'From where events are complete, and from where the active set is known at every offset (NULL: nowhere).';
COMMENT ON COLUMN floors.pruned_to IS 'The highest offset up to which an operator pruned. NULL: nothing was pruned.';
COMMENT ON COLUMN floors.changed_to IS 'The scope in force, while some of the coverage is of another one, from before the scope was changed. NULL: all of it is of one scope.';

-- Dictionaries: long names and lists of parties are stored once ------------------------------------------------

CREATE TABLE templates (
    template_ref              integer NOT NULL,
    template_id               text NOT NULL,
    package_id                text NOT NULL,
    package_name              text NOT NULL,
    module_name               text NOT NULL,
    entity_name               text NOT NULL,
    representative_package_id text,
    PRIMARY KEY (template_ref),
    UNIQUE NULLS NOT DISTINCT (template_id, package_name, representative_package_id),
    CHECK (template_id = package_id || ':' || module_name || ':' || entity_name OR template_id = '') -- empty: a network does not say
) WITH (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0);
-- A name has one id for each version of its package. Without statistics the planner expects a condition on names to find a single row, and
-- reads all contracts again for each version.
CREATE STATISTICS templates_names (dependencies) ON package_name, module_name, entity_name FROM templates;
COMMENT ON TABLE templates IS 'Each template id as served, with the package names that came with it.';

CREATE TABLE synchronizers (
    synchronizer_ref integer NOT NULL,
    synchronizer_id  text NOT NULL,
    PRIMARY KEY (synchronizer_ref),
    UNIQUE (synchronizer_id)
);
COMMENT ON TABLE synchronizers IS 'Each synchronizer id that was served.';

-- Lists of parties are a third of a contract's bytes, and mostly the same as those of other contracts.
CREATE TABLE party_lists (
    party_list_ref integer NOT NULL CHECK (party_list_ref > 0),
    parties        text[]  NOT NULL,
    PRIMARY KEY (party_list_ref),
    -- A unique btree would refuse a list of more than 2.7 kB.
    CONSTRAINT party_lists_once EXCLUDE USING hash (parties WITH =)
);
COMMENT ON TABLE party_lists IS 'Each list of parties that was served, sorted by its bytes, each party once. Written before the rows that refer to it, like the other dictionaries, and kept when these rows are removed.';

-- Facts: written once, never updated. The indexer attaches partitions when rows need them -----------------------
--
-- Up to the history floor they are the entries of the snapshot that lies there: each event at the place that the snapshot says, with what the
-- entry says besides in columns that are NULL in all other rows. They lie in one partition, and belong to no covered range.
--
-- Columns of a fixed length come first, the longest before the others: so none is padded to its alignment, and a condition on one behind a
-- text would take half as long again.

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

CREATE TABLE created (
    ledger_offset       bigint  NOT NULL,
    node_id             integer NOT NULL,
    template_ref        integer NOT NULL,
    record_time         timestamptz,
    created_at          timestamptz,
    synchronizer_ref    integer,
    signatories_ref     integer,
    observers_ref       integer,
    witness_parties_ref integer,
    stakeholders_ref    integer,
    acs_delta           boolean,
    origin              text    NOT NULL,
    contract_id         text    NOT NULL,
    payload             jsonb,
    contract_key        jsonb,
    contract_key_hash   bytea,
    created_event_blob  bytea,
    extra               jsonb,
    exact               jsonb,
    -- Of origin snapshot only:
    reassignment_counter bigint, -- NULL: the contract is not active, but is being reassigned
    served_offset        bigint,
    served_node_id       integer,
    workflow_id          text,
    entry_extra          jsonb,
    PRIMARY KEY (ledger_offset, node_id)
) PARTITION BY RANGE (ledger_offset);
COMMENT ON COLUMN created.served_offset IS 'Where a resync took the contract in, ledger_offset and node_id are the place where it begins here, and this is where the participant shows its creation event. NULL: that is ledger_offset.';
COMMENT ON COLUMN created.served_node_id IS 'The node there.';
CREATE INDEX created_served ON created (served_offset, served_node_id) WHERE served_offset IS NOT NULL;
-- Whether anything has moved is asked often, and mostly nothing has.
CREATE INDEX created_moved ON created (ledger_offset) WHERE reassignment_counter > 0;
CREATE INDEX created_exact ON created (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX created_contract_id ON created USING hash (contract_id);
CREATE INDEX created_record_time ON created USING brin (record_time);
-- For a party's movements: what was never active. All other holdings are found by their positions.
CREATE INDEX created_witnessed ON created (stakeholders_ref, ledger_offset) WHERE acs_delta = false;

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

CREATE TABLE interface_views (
    ledger_offset             bigint  NOT NULL,
    record_time               timestamptz,
    node_id                   integer NOT NULL,
    ordinal                   integer NOT NULL,
    synchronizer_ref          integer,
    status_code               integer,
    seen_by_ref               integer,
    contract_id               text    NOT NULL,
    interface_id              text    NOT NULL,
    view_value                jsonb,
    status_message            text,
    status_details            jsonb,
    implementation_package_id text,
    extra                     jsonb,
    exact                     jsonb,
    PRIMARY KEY (ledger_offset, node_id, ordinal)
) PARTITION BY RANGE (ledger_offset);
CREATE INDEX interface_views_exact ON interface_views (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX interface_views_record_time ON interface_views USING brin (record_time);

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

-- Read from the catalog, so that nothing has to be kept in step with it.
CREATE VIEW partitions AS
SELECT p.relname::text AS relation, b.bounds[1]::bigint AS from_offset, b.bounds[2]::bigint AS to_offset, c.relname::text AS name
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition
CROSS JOIN LATERAL (
    SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)$') AS bounds
) b
WHERE p.relnamespace = (SELECT k.relnamespace FROM pg_catalog.pg_class k WHERE k.oid = 'updates'::regclass) AND b.bounds IS NOT NULL;
COMMENT ON VIEW partitions IS 'The partitions by ranges of offsets: from_offset inclusive, to_offset exclusive. name: the table that is the partition.';

-- Rare rows: not partitioned, because almost every database has none of them.

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

-- Projections: derived from facts, in offset order, in the transaction that moves the watermark -

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

-- Resyncs: the active contracts that a participant shows at the watermark are taken in --------------------------------
--
-- What begins there is a row of created at the offset of the resync, of origin snapshot, what ends there a departure. Their nodes lie above those of all events.
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

CREATE TABLE departures (
    ledger_offset    bigint  NOT NULL,
    node_id          integer NOT NULL,
    synchronizer_ref integer NOT NULL,
    contract_id      text    NOT NULL,
    reason           text    NOT NULL CHECK (reason IN ('scope changed', 'not shown')),
    PRIMARY KEY (ledger_offset, node_id)
);
CREATE INDEX departures_contract_id ON departures USING hash (contract_id);
COMMENT ON TABLE departures IS 'Where contracts that were active here end without an event, because the participant does not show them: synchronizer_ref as in active_contracts.';

CREATE TABLE resync_created (LIKE created, PRIMARY KEY (node_id));
COMMENT ON TABLE resync_created IS 'What an unfinished resync has found that is not active here, as it will stand in created.';
CREATE TABLE resync_interface_views (LIKE interface_views, PRIMARY KEY (node_id, ordinal));
COMMENT ON TABLE resync_interface_views IS 'The interface views of resync_created.';
CREATE TABLE resync_shown (
    node_id          integer PRIMARY KEY,
    synchronizer_ref integer NOT NULL,
    contract_id      text    NOT NULL
);
COMMENT ON TABLE resync_shown IS 'What an unfinished resync has found that is active here.';
