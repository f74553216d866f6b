-- What background tasks store: contracts whose creation was never seen, and the vetted packages.

-- +goose Up

-- Looked-up contracts --------------------------------------------------------------------------------------------

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

CREATE VIEW ledger.looked_up_contracts AS
SELECT l.contract_id, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name, l.payload, l.contract_key,
       l.contract_key_hash, l.signatories, l.observers, l.witness_parties, l.created_at, l.looked_up_at, l.status, l.reason,
       l.ledger_offset, l.node_id
FROM lookups l
LEFT JOIN templates t ON t.template_ref = l.template_ref
WHERE l.status <> 'wanted' AND btint8cmp(l.ledger_offset, (SELECT ledger.latest_offset())) <> 1;

COMMENT ON VIEW ledger.looked_up_contracts IS 'One row per contract that has an archival here and no creation (usually because it was created before ledger.oldest_offset()), and that the indexer looked up by its id. Events whose acs_delta is false cause no look-up: those contracts were divulged or lived in one transaction only, and servers send false with every exercise that archives nothing. A row is not a creation event: a look-up returns no offset, node id, blob and interface views, and the contract is not in ledger.created_events. Don''t rely on it for contracts that came to the participant by party replication or by the repair service: for these the server does not know which package represents the contract. Each contract is looked up once: an answer, not_found too, is final.';
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

-- Packages -------------------------------------------------------------------------------------------------------

CREATE TABLE packages (
    package_id      text PRIMARY KEY,
    package_name    text NOT NULL,
    package_version text NOT NULL
);
COMMENT ON TABLE packages IS 'Packages that were vetted at some time, with the last name and version that were not empty. Shown, with those of the templates, as ledger.packages.';

CREATE TABLE vetting_states (
    synchronizer_ref integer PRIMARY KEY,
    topology_serial  integer NOT NULL
);
COMMENT ON TABLE vetting_states IS 'The synchronizers on which the participant has a vetting state, with the serial of its last vetting transaction there.';

CREATE TABLE vetted_packages (
    synchronizer_ref integer NOT NULL,
    package_id       text    NOT NULL,
    valid_from       timestamptz,
    valid_until      timestamptz,
    PRIMARY KEY (synchronizer_ref, package_id)
);
COMMENT ON TABLE vetted_packages IS 'The packages that were vetted at the last reading. Shown as ledger.vetted_packages.';

CREATE TABLE vetting_changes (
    seq                bigint  NOT NULL,
    synchronizer_ref   integer NOT NULL,
    package_id         text    NOT NULL,
    change             text    NOT NULL CHECK (change IN ('vetted', 'unvetted', 'changed')),
    seen_at            timestamptz NOT NULL DEFAULT now(),
    topology_serial    integer,
    valid_from_before  timestamptz,
    valid_until_before timestamptz,
    valid_from         timestamptz,
    valid_until        timestamptz,
    PRIMARY KEY (seq, synchronizer_ref, package_id)
);
COMMENT ON TABLE vetting_changes IS 'Every difference between two readings of the vetted packages. Written once, never updated. Shown as ledger.vetting_changes.';

CREATE TABLE package_contents (
    package_id      text PRIMARY KEY,
    package_name    text NOT NULL,
    package_version text NOT NULL,
    language        text NOT NULL,
    upgrades        text,
    needs           text[] NOT NULL,
    failure         text,
    stored_at       timestamptz NOT NULL DEFAULT now(),
    content         bytea NOT NULL
);
COMMENT ON TABLE package_contents IS 'Compiled packages as the participant serves them: the SHA-256 of the content is the id. Written once, but for needs and failure.';
COMMENT ON COLUMN package_contents.language IS 'Version of Daml-LF, such as 2.1. Empty where the package could not be read.';
COMMENT ON COLUMN package_contents.needs IS 'Packages that are referred to and were not here when its types were last computed.';
COMMENT ON COLUMN package_contents.failure IS 'Why its types, or some of them, are not known. NULL: they are, or needs says what is missing.';

CREATE TABLE package_tries (
    package_id text PRIMARY KEY,
    tries      integer NOT NULL,
    next_at    timestamptz NOT NULL,
    failure    text NOT NULL
);
COMMENT ON TABLE package_tries IS 'Packages that the participant was asked for and that could not be had, why, and when it is asked again.';

CREATE VIEW ledger.packages AS
SELECT coalesce(p.package_id, t.package_id, c.package_id, m.package_id) AS package_id,
       coalesce(nullif(p.package_name, ''), nullif(t.package_name, ''), c.package_name, p.package_name, t.package_name, '') AS package_name,
       coalesce(nullif(p.package_version, ''), nullif(c.package_version, ''), p.package_version) AS package_version,
       CASE WHEN c.package_id IS NULL THEN CASE WHEN m.package_id IS NOT NULL THEN 'missing' END
            WHEN c.failure IS NOT NULL THEN 'unreadable'
            WHEN c.needs <> '{}' THEN 'incomplete'
            ELSE 'known' END AS types,
       CASE WHEN c.package_id IS NULL THEN m.failure
            WHEN c.failure IS NOT NULL THEN c.failure
            WHEN c.needs <> '{}' THEN 'packages that it refers to are not there: ' || array_to_string(c.needs, ', ') END AS types_failure
FROM packages p
FULL JOIN (
    SELECT DISTINCT ON (x.package_id) x.package_id, x.package_name
    FROM templates x
    WHERE x.package_id NOT LIKE '#%' -- a name instead of an id
    ORDER BY x.package_id, x.package_name = '', x.template_ref DESC
) t ON t.package_id = p.package_id
FULL JOIN package_contents c ON c.package_id = coalesce(p.package_id, t.package_id)
FULL JOIN package_tries m ON m.package_id = coalesce(p.package_id, t.package_id, c.package_id);

COMMENT ON VIEW ledger.packages IS 'One row per package that a template id named, that the participant had vetted at some time, or whose types are asked for because others refer to them. What is here need not be vetted now: see ledger.vetted_packages.';
COMMENT ON COLUMN ledger.packages.package_id IS 'Id of the package, a hash of its content: the first part of a template_id. It changes with each release.';
COMMENT ON COLUMN ledger.packages.package_name IS 'Name of the package, the same over its releases. Empty where the server never sent it.';
COMMENT ON COLUMN ledger.packages.package_version IS 'Version of the package. NULL where only template ids named it, which have no version, and its content is not here. Empty where it was vetted without having been uploaded to the participant.';
COMMENT ON COLUMN ledger.packages.types IS 'Whether the types of its templates are here: known, incomplete (packages that it refers to are missing), unreadable, missing (the participant did not give the package), or NULL: it was not asked for.';
COMMENT ON COLUMN ledger.packages.types_failure IS 'Why the types are not known, for people to read. NULL where they are, or the package was not asked for.';

CREATE VIEW ledger.vetted_packages AS
SELECT s.synchronizer_id, v.package_id, p.package_name, p.package_version, v.valid_from, v.valid_until, st.topology_serial
FROM vetted_packages v
JOIN vetting_states st ON st.synchronizer_ref = v.synchronizer_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = v.synchronizer_ref
LEFT JOIN packages p ON p.package_id = v.package_id;

COMMENT ON VIEW ledger.vetted_packages IS 'One row per synchronizer and package that the participant has vetted, as of the last reading (it is read at an interval, not with the stream). A package that is not valid yet, or no longer, is here too. Empty where the server does not offer the list of vetted packages.';
COMMENT ON COLUMN ledger.vetted_packages.synchronizer_id IS 'The synchronizer. (synchronizer_id, package_id) is unique.';
COMMENT ON COLUMN ledger.vetted_packages.package_id IS 'The package.';
COMMENT ON COLUMN ledger.vetted_packages.package_name IS 'Its name; empty where the package has never been uploaded to the participant.';
COMMENT ON COLUMN ledger.vetted_packages.package_version IS 'Its version. Empty where package_name is empty.';
COMMENT ON COLUMN ledger.vetted_packages.valid_from IS 'The package may be used from this record time on, inclusive. NULL: no bound. Microseconds, UTC.';
COMMENT ON COLUMN ledger.vetted_packages.valid_until IS 'The package may be used until this record time, exclusive. NULL: no bound. Microseconds, UTC.';
COMMENT ON COLUMN ledger.vetted_packages.topology_serial IS 'Serial of the participant''s last vetting transaction on the synchronizer: the same for all packages there. It grows.';

CREATE VIEW ledger.vetting_changes AS
SELECT c.seq, c.seen_at, s.synchronizer_id, c.package_id, p.package_name, p.package_version, c.change, c.topology_serial,
       c.valid_from_before, c.valid_until_before, c.valid_from, c.valid_until
FROM vetting_changes c
LEFT JOIN synchronizers s ON s.synchronizer_ref = c.synchronizer_ref
LEFT JOIN packages p ON p.package_id = c.package_id;

COMMENT ON VIEW ledger.vetting_changes IS 'One row per change of a package between two readings of the vetted packages: it was vetted, unvetted, or got other bounds (valid_from, valid_until). A change that was undone between the two is not seen. In the first reading every package counts as vetted then.';
COMMENT ON COLUMN ledger.vetting_changes.seq IS 'Order in which changes were seen; those of one reading share it. (seq, synchronizer_id, package_id) is unique.';
COMMENT ON COLUMN ledger.vetting_changes.seen_at IS 'When the change was seen (clock of the database). It happened between the reading before and this time.';
COMMENT ON COLUMN ledger.vetting_changes.synchronizer_id IS 'The synchronizer.';
COMMENT ON COLUMN ledger.vetting_changes.package_id IS 'The package.';
COMMENT ON COLUMN ledger.vetting_changes.package_name IS 'Its name as it is known now; empty where the package has never been uploaded to the participant.';
COMMENT ON COLUMN ledger.vetting_changes.package_version IS 'Its version as it is known now. Empty where package_name is empty.';
COMMENT ON COLUMN ledger.vetting_changes.change IS 'vetted, unvetted, or changed: other bounds.';
COMMENT ON COLUMN ledger.vetting_changes.topology_serial IS 'Serial of the participant''s last vetting transaction on the synchronizer when the change was seen. NULL where the synchronizer was no longer listed at all.';
COMMENT ON COLUMN ledger.vetting_changes.valid_from_before IS 'The lower bound before the change. NULL: none, or the package was not vetted.';
COMMENT ON COLUMN ledger.vetting_changes.valid_until_before IS 'The upper bound before the change. NULL: none, or the package was not vetted.';
COMMENT ON COLUMN ledger.vetting_changes.valid_from IS 'The lower bound since the change. NULL: none, or the package is not vetted any more.';
COMMENT ON COLUMN ledger.vetting_changes.valid_until IS 'The upper bound since the change. NULL: none, or the package is not vetted any more.';

-- Background tasks -----------------------------------------------------------------------------------------------

CREATE TABLE tasks (
    task         text PRIMARY KEY,
    succeeded_at timestamptz,
    failed_at    timestamptz,
    failure      text
);
COMMENT ON TABLE tasks IS 'When each stream and background task last succeeded, and when and why it last failed.';

-- Scopes, and what is active --------------------------------------------------------------------------------------

CREATE FUNCTION scope_shows(scope jsonb, other jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (scope -> 'parties' = '[]' OR other -> 'parties' <> '[]' AND scope -> 'parties' @> (other -> 'parties'))
    AND (scope -> 'templates' = '[]' OR other -> 'templates' <> '[]' AND scope -> 'templates' @> (other -> 'templates'))
    AND scope -> 'interfaces' @> (other -> 'interfaces')
    AND scope - '{parties,templates,interfaces}'::text[] = other - '{parties,templates,interfaces}'::text[];
COMMENT ON FUNCTION scope_shows(jsonb, jsonb) IS 'Whether a scope shows all that another one shows, in the same form. Empty parties and templates are all. Scope.Lacks in Go says the same.';

CREATE VIEW covered_scopes AS
SELECT c.stream, c.scope, c.from_exclusive, c.to_inclusive, s.definition,
       f.changed_to IS NULL OR c.scope = f.changed_to OR coalesce(scope_shows(s.definition, n.definition), false) AS complete
FROM (
    SELECT v.stream, v.scope, v.from_exclusive, v.to_inclusive FROM coverage v
    UNION ALL
    SELECT 'snapshot', k.scope, k.snapshot_offset, k.snapshot_offset FROM snapshots k
    WHERE k.finished_at IS NOT NULL
) c
JOIN floors f ON f.stream = 'updates'
LEFT JOIN scopes s ON s.scope = c.scope
LEFT JOIN scopes n ON n.scope = f.changed_to;
COMMENT ON VIEW covered_scopes IS 'coverage, and the snapshot whose rows are shown (stream snapshot), with their scope. complete: that shows all that the scope in force shows.';

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
        FROM departures d
        WHERE d.ledger_offset > from_exclusive AND d.ledger_offset <= to_inclusive
    ) e
) t
WHERE t.activates AND (t.ended IS NULL OR t.ended > ended_after);
END;
COMMENT ON FUNCTION activations(bigint, bigint, bigint) IS 'Each activation of a contract on a synchronizer (0: not served) by an entry of the snapshot or by an event of a range, and the offset at which it ended (deactivated_offset; NULL: it is active). Without those that ended up to ended_after. active_contracts and lifetimes must equal this.';
