-- Creation events, and the interface views of them.

-- +goose Up

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
CREATE INDEX created_served ON created (served_offset, served_node_id) WHERE served_offset IS NOT NULL;
-- Whether anything has moved is asked often, and mostly nothing has.
CREATE INDEX created_moved ON created (ledger_offset) WHERE reassignment_counter > 0;
CREATE INDEX created_exact ON created (ledger_offset) WHERE exact IS NOT NULL;
CREATE INDEX created_contract_id ON created USING hash (contract_id);
CREATE INDEX created_record_time ON created USING brin (record_time);
-- For a party's movements: what was never active. All other holdings are found by their positions.
CREATE INDEX created_witnessed ON created (stakeholders_ref, ledger_offset) WHERE acs_delta = false;
COMMENT ON COLUMN created.served_offset IS 'Where a resync took the contract in, ledger_offset and node_id are the place where it begins here, and this is where the participant shows its creation event. NULL: that is ledger_offset.';
COMMENT ON COLUMN created.served_node_id IS 'The node there.';
COMMENT ON TABLE created IS 'Facts: creation events of covered updates, and of entries of a snapshot or a resync (origin snapshot). Shown as ledger.created_events.';
COMMENT ON COLUMN created.stakeholders_ref IS 'Signatories and observers. NULL: not served.';

CREATE VIEW ledger.created_events WITH (security_invoker = true) AS
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
COMMENT ON VIEW ledger.created_events IS 'One row per creation event: a contract created by a transaction, arriving on a synchronizer by an assignment, or named by the snapshot that indexing began with. A contract that was reassigned has several rows: count(DISTINCT contract_id) counts contracts.
@graphql({"primary_key_columns": ["ledger_offset", "node_id"], "foreign_keys": [{"local_columns": ["ledger_offset"], "foreign_schema": "ledger", "foreign_table": "updates", "foreign_columns": ["ledger_offset"]}, {"local_columns": ["template_number"], "foreign_schema": "ledger", "foreign_table": "template_numbers", "foreign_columns": ["template_number"]}, {"local_columns": ["contract_id"], "foreign_schema": "ledger", "foreign_table": "contracts", "foreign_columns": ["contract_id"]}]})';
COMMENT ON COLUMN ledger.created_events.ledger_offset IS 'Offset of the event. With origin snapshot it can lie below ledger.oldest_offset(): the snapshot names when each contract was last activated. Of what a change of the scope added it is the offset of the change. Indexed.';
COMMENT ON COLUMN ledger.created_events.node_id IS 'Place of the event within its update. (ledger_offset, node_id) is unique.';
COMMENT ON COLUMN ledger.created_events.origin IS 'transaction: created here. assignment: came from another synchronizer. snapshot: was there when indexing began, or when the scope was changed.';
COMMENT ON COLUMN ledger.created_events.contract_id IS 'Id of the contract. Indexed.';
COMMENT ON COLUMN ledger.created_events.template_id IS 'Template as the server sent it, package-id:Module:Entity. It changes with each release of a package: filter by package_name, module_name and entity_name instead.';
COMMENT ON COLUMN ledger.created_events.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.created_events.package_name IS 'Name of the package, the same over its releases.';
COMMENT ON COLUMN ledger.created_events.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.created_events.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.created_events.representative_package_id IS 'Package whose types the payload is shown in, where the server says so. NULL before release 3.4.';
COMMENT ON COLUMN ledger.created_events.payload IS 'The contract''s arguments. Amounts and 64-bit integers are texts in it: cast them, (payload->>''amount'')::numeric. NULL where the contract matched an interface filter only: read ledger.interface_views; and where it was redacted: see ledger.redactions. An object with the key $exact stands in for a payload that jsonb cannot hold: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.created_events.contract_key IS 'The contract''s key. NULL: its template has none, or it was redacted. Can be a stand-in with the key $exact, as payload can.';
COMMENT ON COLUMN ledger.created_events.contract_key_hash IS 'Hash of the key. Empty where there is no key; NULL where the server sent no such field (before release 3.5), or it was redacted.';
COMMENT ON COLUMN ledger.created_events.signatories IS 'Parties that signed the contract.';
COMMENT ON COLUMN ledger.created_events.observers IS 'Parties that may see the contract beside its signatories. Never names a signatory.';
COMMENT ON COLUMN ledger.created_events.witness_parties IS 'The parties that the indexer reads for (its scope) and that saw this event. Depends on the scope, unlike signatories and observers.';
COMMENT ON COLUMN ledger.created_events.created_at IS 'Ledger time of the contract''s creation; for an assignment too, so it can be older than the event. Microseconds, UTC.';
COMMENT ON COLUMN ledger.created_events.acs_delta IS 'true: the event made the contract active for the reading parties. false: it did not; they only witnessed it, or the same transaction archived it again. NULL: the server does not say (release 3.3). Totals of what is held must leave out false; the shape acs-delta brings none of them.';
COMMENT ON COLUMN ledger.created_events.created_event_blob IS 'The creation event in the participant''s own encoding, for disclosing the contract to others. Empty or NULL unless --blobs asked for it.';
COMMENT ON COLUMN ledger.created_events.workflow_id IS 'Workflow id of the event''s update. Costs a look-up per row, unless the row comes from a snapshot.';
COMMENT ON COLUMN ledger.created_events.update_id IS 'Id of the event''s update. Costs a look-up per row. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.created_events.synchronizer_id IS 'Synchronizer on which the contract became active; of an assignment the target. NULL where the server did not say.';
COMMENT ON COLUMN ledger.created_events.record_time IS 'When the synchronizer recorded the update. NULL for rows of a snapshot, which a condition on the time therefore leaves out: use created_at for them.';
COMMENT ON COLUMN ledger.created_events.extra IS 'Fields that the server sent and this version does not know. NULL: none.';
COMMENT ON COLUMN ledger.created_events.template_number IS 'A number for the template_id with its package_name and representative_package_id, in this database. For joins with ledger.active_events, and to group many rows before they are joined with ledger.template_numbers.';

-- An index on keys themselves would refuse long ones, or keep equal ones in a chain that each new one walks. So the one that is made on demand
-- is on their hash, which only a query that says the same can use. PostgreSQL inlines this into the calling query.
CREATE FUNCTION ledger.created_with_key(contract_key jsonb) RETURNS SETOF ledger.created_events LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT * FROM ledger.created_events c
    WHERE jsonb_hash_extended(c.contract_key, 0) = jsonb_hash_extended(created_with_key.contract_key, 0) AND c.contract_key = created_with_key.contract_key; END;
COMMENT ON FUNCTION ledger.created_with_key(jsonb) IS 'The rows of ledger.created_events with a contract key. It uses the index of keys where there is one (indexer index create --of keys), which a condition on the column does not; without one it reads every creation event.';

-- Few columns, because each look-up in a query is planned with all of them.
CREATE VIEW creations WITH (security_invoker = true) AS
SELECT c.ledger_offset, c.node_id, c.contract_id, c.template_ref, c.created_at, c.payload, c.contract_key, c.contract_key_hash,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.signatories_ref) AS signatories,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.observers_ref) AS observers,
       (SELECT p.parties FROM party_lists p WHERE p.party_list_ref = c.witness_parties_ref) AS witness_parties
FROM created c;
COMMENT ON VIEW creations IS 'Creation events, for look-ups by (ledger_offset, node_id).';

-- Interface views --------------------------------------------------------------------------------------------------

CREATE TABLE template_interfaces (
    template_ref integer NOT NULL,
    interface_id text    NOT NULL,
    PRIMARY KEY (template_ref, interface_id)
);
COMMENT ON TABLE template_interfaces IS 'The interfaces of which contracts of each template had views, so that holdings are found without reading every active contract. Written before the views, like the other dictionaries.';

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
COMMENT ON TABLE interface_views IS 'Facts: interface views of created. Shown as ledger.interface_views.';
COMMENT ON COLUMN interface_views.seen_by_ref IS 'The parties that may see the creation event.';

-- The server names an interface by the id of its package. The package's name is known if the package is, or if --interfaces names this
-- module and entity with one package name only.
CREATE VIEW interface_names AS
SELECT i.interface_id, split_part(i.interface_id, ':', 2) AS module_name, split_part(i.interface_id, ':', 3) AS entity_name,
       coalesce(
           (SELECT nullif(p.package_name, '') FROM ledger.packages p WHERE p.package_id = split_part(i.interface_id, ':', 1)),
           (SELECT CASE WHEN count(DISTINCT a.asked) = 1 AND min(a.asked) LIKE '#%' THEN split_part(substr(min(a.asked), 2), ':', 1) END
            FROM scopes s, jsonb_array_elements_text(s.definition -> 'interfaces') a (asked)
            WHERE substr(a.asked, strpos(a.asked, ':')) = substr(i.interface_id, strpos(i.interface_id, ':')))
       ) AS package_name
FROM (SELECT DISTINCT x.interface_id FROM template_interfaces x) i;
COMMENT ON VIEW interface_names IS 'The interfaces that have views, with the parts of their ids.';

CREATE VIEW ledger.interface_views WITH (security_invoker = true) AS
SELECT v.ledger_offset, v.node_id, v.contract_id, v.interface_id, n.package_name, n.module_name, n.entity_name, v.view_value,
       v.status_code, v.status_message, v.status_details, v.implementation_package_id, v.ordinal,
       (SELECT u.update_id FROM updates u WHERE u.ledger_offset = v.ledger_offset AND v.node_id < 1073741824) AS update_id, s.synchronizer_id,
       v.record_time, v.extra
FROM interface_views v
LEFT JOIN interface_names n ON n.interface_id = v.interface_id
LEFT JOIN synchronizers s ON s.synchronizer_ref = v.synchronizer_ref
WHERE btint8cmp(v.ledger_offset, (SELECT k.ledger_offset FROM checkpoints k WHERE k.stream = 'updates')) <> 1;
COMMENT ON VIEW ledger.interface_views IS 'One row per interface view of a creation event: the contract as seen through an interface that --interfaces asked for. It belongs to the row of ledger.created_events with the same (ledger_offset, node_id).
@graphql({"primary_key_columns": ["ledger_offset", "node_id", "ordinal"], "foreign_keys": [{"local_columns": ["ledger_offset", "node_id"], "foreign_schema": "ledger", "foreign_table": "created_events", "foreign_columns": ["ledger_offset", "node_id"]}]})';
COMMENT ON COLUMN ledger.interface_views.ledger_offset IS 'Offset of the creation event. Indexed.';
COMMENT ON COLUMN ledger.interface_views.node_id IS 'Node id of the creation event. (ledger_offset, node_id, ordinal) is unique.';
COMMENT ON COLUMN ledger.interface_views.contract_id IS 'The contract. Not indexed here: go through ledger.created_events.';
COMMENT ON COLUMN ledger.interface_views.interface_id IS 'The interface, package-id:Module:Entity as the server sent it. It changes with each release of a package: filter by package_name, module_name and entity_name instead.';
COMMENT ON COLUMN ledger.interface_views.package_name IS 'Name of the interface''s package, the same over its releases: that of ledger.packages, or else the only one with which --interfaces named such an interface. NULL: neither is known.';
COMMENT ON COLUMN ledger.interface_views.module_name IS 'Module of the interface, with dots.';
COMMENT ON COLUMN ledger.interface_views.entity_name IS 'Name of the interface within its module.';
COMMENT ON COLUMN ledger.interface_views.view_value IS 'The view. NULL where it could not be computed, or was redacted: see ledger.redactions. Can be a stand-in with the key $exact: see ledger.exact_payloads.';
COMMENT ON COLUMN ledger.interface_views.status_code IS '0: the view was computed. Else the gRPC code of the error that came instead. NULL: the server sent no status.';
COMMENT ON COLUMN ledger.interface_views.status_message IS 'Text of the error; empty where there was none.';
COMMENT ON COLUMN ledger.interface_views.status_details IS 'Details of the error, a list as the server sent it.';
COMMENT ON COLUMN ledger.interface_views.implementation_package_id IS 'Package whose code computed the view. NULL where the server did not say (before release 3.5).';
COMMENT ON COLUMN ledger.interface_views.ordinal IS 'Place of the view within its event, from 0.';
COMMENT ON COLUMN ledger.interface_views.update_id IS 'Id of the event''s update. Costs a look-up per row. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.interface_views.synchronizer_id IS 'Synchronizer of the creation event.';
COMMENT ON COLUMN ledger.interface_views.record_time IS 'When the synchronizer recorded the update. NULL for rows of a snapshot.';
COMMENT ON COLUMN ledger.interface_views.extra IS 'Fields that the server sent and this version does not know. NULL: none.';

CREATE FUNCTION shown_interfaces(from_exclusive bigint, to_inclusive bigint) RETURNS TABLE (template_ref integer, interface_id text)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT c.template_ref, v.interface_id
FROM interface_views v
JOIN created c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
WHERE v.ledger_offset > from_exclusive AND v.ledger_offset <= to_inclusive AND c.ledger_offset > from_exclusive AND c.ledger_offset <= to_inclusive
UNION
SELECT c.template_ref, v.interface_id
FROM interface_views v
JOIN created c ON c.ledger_offset = v.ledger_offset AND c.node_id = v.node_id
CROSS JOIN (SELECT f.history_floor FROM floors f WHERE f.stream = 'updates') f
WHERE v.ledger_offset <= f.history_floor AND c.ledger_offset <= f.history_floor;
END;
COMMENT ON FUNCTION shown_interfaces(bigint, bigint) IS 'The interfaces of which contracts of each template had views in a range of offsets and in the shown snapshot. template_interfaces must hold at least these.';
