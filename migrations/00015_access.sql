-- Who may read what. Roles that `indexer grant` limits to parties see what those parties may see, by row-level security on the tables
-- (docs/access.md). Views have the rights of their reader (security_invoker), so that the tables' policies apply. The first such grant
-- creates the policies: until then no query pays for them. store/internal/tables says which rows they show.

-- +goose Up

CREATE TABLE readers (
    reader      text PRIMARY KEY,
    all_parties boolean NOT NULL,
    history     boolean NOT NULL,
    granted_at  timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE readers IS 'The database roles that `indexer grant` lets read. Limited are those without all_parties.';
COMMENT ON COLUMN readers.history IS 'Whether a limited role sees the transaction history, which is about the whole network.';

CREATE TABLE reader_parties (
    reader text NOT NULL,
    party  text NOT NULL,
    PRIMARY KEY (reader, party)
);
CREATE INDEX reader_parties_party ON reader_parties (party);
COMMENT ON TABLE reader_parties IS 'The parties to which roles are limited.';

-- Policies check whether a list of parties contains one of the role's: a bit for each list, by its number. That is fast, and the planner
-- knows it. Joins and subqueries would be slower, and planned as if they were slower still.
CREATE TABLE reader_lists (
    reader text    NOT NULL,
    chunk  integer NOT NULL,
    bits   bytea   NOT NULL,
    PRIMARY KEY (reader, chunk)
);
COMMENT ON TABLE reader_lists IS 'The lists of parties that have one of the parties to which a role is limited: chunk n has the bits of the lists from 8192 n on. A role has all chunks, and one more.';

CREATE FUNCTION bits_of(numbers integer[]) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    bits   bytea := decode(repeat('00', 1024), 'hex');
    number integer;
BEGIN
    FOREACH number IN ARRAY numbers LOOP
        bits := set_bit(bits, number, 1);
    END LOOP;
    RETURN bits;
END
$$;
COMMENT ON FUNCTION bits_of(integer[]) IS 'A chunk in which the bits with these numbers are set.';

CREATE VIEW wanted_reader_lists AS
SELECT r.reader, c.chunk, bits_of(ARRAY(
    SELECT l.party_list_ref % 8192
    FROM party_lists l
    WHERE l.party_list_ref >= c.chunk * 8192 AND l.party_list_ref < (c.chunk + 1) * 8192
      AND l.parties && ARRAY(SELECT p.party FROM reader_parties p WHERE p.reader = r.reader))) AS bits
FROM readers r
CROSS JOIN generate_series(0, (SELECT coalesce(max(l.party_list_ref), 0) / 8192 + 1 FROM party_lists l)) c (chunk)
WHERE NOT r.all_parties;
COMMENT ON VIEW wanted_reader_lists IS 'What reader_lists should hold.';

CREATE FUNCTION add_reader_lists() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    seen record;
BEGIN
    IF EXISTS (SELECT FROM reader_parties) THEN
        INSERT INTO reader_lists (reader, chunk, bits)
        SELECT r.reader, c.chunk, bits_of('{}')
        FROM readers r
        CROSS JOIN (SELECT generate_series(min(n.party_list_ref) / 8192, max(n.party_list_ref) / 8192 + 1) AS chunk FROM added n) c
        WHERE NOT r.all_parties
        ON CONFLICT DO NOTHING;
        FOR seen IN
            SELECT DISTINCT r.reader, n.party_list_ref
            FROM added n
            CROSS JOIN LATERAL unnest(n.parties) m (party)
            JOIN reader_parties r ON r.party = m.party
            ORDER BY r.reader, n.party_list_ref
        LOOP
            UPDATE reader_lists l SET bits = set_bit(l.bits, seen.party_list_ref % 8192, 1)
            WHERE l.reader = seen.reader AND l.chunk = seen.party_list_ref / 8192;
        END LOOP;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION add_reader_lists() IS 'Lets readers see rows with new lists of parties, in the transaction that numbers these.';
CREATE TRIGGER add_reader_lists AFTER INSERT ON party_lists REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_reader_lists();

-- What policies read. These views have their owner's rights, and show a role its own grants.
-- There are more bits than lists, because a number beyond the last bit is an error. If a chunk is missing nothing is shown: the bits of the
-- others would belong to other lists.
CREATE VIEW my_lists AS
SELECT string_agg(l.bits, ''::bytea ORDER BY l.chunk) AS bits FROM reader_lists l WHERE l.reader = CURRENT_USER::text
HAVING count(*) = max(l.chunk) + 1;
CREATE VIEW my_parties AS SELECT p.party FROM reader_parties p WHERE p.reader = CURRENT_USER::text;
CREATE VIEW my_history AS SELECT r.reader FROM readers r WHERE r.reader = CURRENT_USER::text AND r.history;

-- Its policies show its row to roles that are not limited.
CREATE TABLE unlimited (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row));
INSERT INTO unlimited VALUES (true);
COMMENT ON TABLE unlimited IS 'One row, which limited roles do not see.';

-- The parties that may see a row ----------------------------------------------------------------------------------
-- A creation is seen by its witnesses and by the contract's stakeholders (stakeholders_ref), a lifetime by the stakeholders, and an update
-- by whoever sees one of its events (seen_by_ref, seen_also_by_ref, seen_by_others_ref).

-- A position is seen by the stakeholders of its holdings.
CREATE TABLE position_stakeholders (
    position_id      uuid    NOT NULL,
    stakeholders_ref integer NOT NULL,
    PRIMARY KEY (position_id, stakeholders_ref)
);
COMMENT ON TABLE position_stakeholders IS 'The stakeholders of contracts that are holdings of a position. Written with positions, and as these never removed.';

CREATE VIEW held_stakeholders AS
SELECT DISTINCT h.position_id, c.stakeholders_ref
FROM holding_events h
JOIN created c ON c.ledger_offset = h.ledger_offset AND c.node_id = h.node_id
WHERE c.stakeholders_ref IS NOT NULL AND h.template_ref = ANY (ARRAY(SELECT k.template_ref FROM holding_templates k));
COMMENT ON VIEW held_stakeholders IS 'The stakeholders of all holdings that are stored. position_stakeholders must hold at least these.';

CREATE VIEW my_positions AS
SELECT p.position_id FROM position_stakeholders p WHERE get_bit((SELECT m.bits FROM my_lists m), p.stakeholders_ref) <> 0;

-- With the rights of the reader --------------------------------------------------------------------------------------
-- Only views that policies read, and views that show nothing about other parties from tables that do, keep their owner's rights.

DO $$
DECLARE
    made regclass;
BEGIN
    FOR made IN
        SELECT c.oid FROM pg_class c
        WHERE c.relkind = 'v' AND c.relname NOT IN ('my_lists', 'my_parties', 'my_positions', 'my_history', 'interface_names')
          AND c.relnamespace IN (SELECT x.relnamespace FROM pg_class x WHERE x.oid IN ('ledger.updates'::regclass, 'readers'::regclass))
          AND coalesce('security_invoker=true' <> ALL (c.reloptions), true) -- that which the migrating session has locked has it
    LOOP
        EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', made);
    END LOOP;
END
$$;

CREATE VIEW scope_ranges AS
SELECT c.stream, c.scope, c.from_exclusive, c.to_inclusive,
       f.changed_to IS NULL OR c.scope = f.changed_to OR coalesce(scope_shows(s.definition, n.definition), false) AS complete,
       CASE WHEN s.definition -> 'parties' <> '[]' THEN ARRAY(
           SELECT p.party FROM jsonb_array_elements_text(s.definition -> 'parties') p (party)
           WHERE NOT EXISTS (
                  SELECT FROM readers r JOIN pg_roles x ON x.rolname = r.reader JOIN pg_roles me ON me.rolname = CURRENT_USER
                  WHERE NOT r.all_parties AND NOT me.rolsuper AND pg_has_role(x.oid, 'USAGE'))
              OR p.party IN (SELECT m.party FROM my_parties m)
           ORDER BY p.party COLLATE "C") END AS parties,
       CASE WHEN s.definition -> 'templates' <> '[]' THEN ARRAY(SELECT jsonb_array_elements_text(s.definition -> 'templates')) END AS templates,
       ARRAY(SELECT jsonb_array_elements_text(s.definition -> 'interfaces')) AS interfaces
FROM coverage c
JOIN floors f ON f.stream = c.stream
LEFT JOIN scopes s ON s.scope = c.scope
LEFT JOIN scopes n ON n.scope = f.changed_to;
COMMENT ON VIEW scope_ranges IS 'coverage, with its scope, as covered_scopes has it. It shows a limited role its own parties, and a role that inherits from one, none.';

CREATE OR REPLACE VIEW ledger.coverage WITH (security_invoker = true) AS
SELECT c.stream, c.scope, c.from_exclusive, least(c.to_inclusive, ledger.latest_offset()) AS to_inclusive, c.complete AS in_force,
       c.parties, c.templates, c.interfaces
FROM scope_ranges c
WHERE c.from_exclusive < ledger.latest_offset();

-- Where the scope was another one that did not name a party, or showed less of it, not everything that it holds was read. Where the scope was never
-- widened, which is asked once, no party is asked about. Functions, so that plans stay small.
CREATE FUNCTION scope_was_widened() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (SELECT FROM scope_ranges c WHERE NOT c.complete);
COMMENT ON FUNCTION scope_was_widened() IS 'Whether some of what is stored was read in a scope that shows less than the one in force.';

CREATE FUNCTION read_since(party text) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT max(c.to_inclusive) FROM scope_ranges c
    LEFT JOIN (SELECT r.templates, r.interfaces FROM scope_ranges r WHERE r.complete ORDER BY r.to_inclusive DESC LIMIT 1) n ON true
    WHERE NOT c.complete AND NOT coalesce(
        (c.parties IS NULL OR read_since.party = ANY (c.parties)) AND (c.templates IS NULL OR c.templates @> n.templates)
        AND c.interfaces @> n.interfaces, false));
COMMENT ON FUNCTION read_since(text) IS 'From which offset on everything of a party is read that the scope in force shows. NULL: all the time.';

CREATE OR REPLACE VIEW known_parties WITH (security_invoker = true) AS
SELECT h.party, greatest(CASE WHEN h.onboarded THEN h.since ELSE 0 END, CASE WHEN (SELECT scope_was_widened()) THEN read_since(h.party) END) AS known_from,
       CASE WHEN h.hosted THEN 9223372036854775807 ELSE h.until END AS known_before
FROM hosting h
WHERE h.hosted OR h.until IS NOT NULL;

COMMENT ON COLUMN ledger.coverage.in_force IS 'Whether all is stored that the scope in force shows. False: the events are complete for an earlier scope that lacks some of it.';
COMMENT ON COLUMN ledger.coverage.parties IS 'The parties for which the events are complete; a limited role sees its own. A party that was taken away is complete up to the last range that names it. NULL: any party.';
COMMENT ON COLUMN ledger.coverage.templates IS 'The templates for which they are complete, as --templates named them. NULL: all.';
COMMENT ON COLUMN ledger.coverage.interfaces IS 'The interfaces whose views were read, and by which contracts of other templates were, as --interfaces named them.';

-- It shows a limited role its own parties. A barrier: a reader's condition must not see the others before they are filtered out.
CREATE OR REPLACE VIEW ledger.parties WITH (security_invoker = true, security_barrier = true) AS
SELECT p.party, split_part(p.party, '::', 1) AS hint, nullif(split_part(p.party, '::', 2), '') AS namespace,
       bool_or(p.in_events) AS in_events, bool_or(NOT p.in_events) AS in_topology
FROM (
    SELECT DISTINCT unnest(l.parties) AS party, true AS in_events FROM party_lists l
    UNION
    SELECT t.party_id, false FROM ledger.topology_events t WHERE t.party_id IS NOT NULL
) p
WHERE EXISTS (SELECT FROM unlimited) OR p.party IN (SELECT m.party FROM my_parties m)
GROUP BY p.party;
