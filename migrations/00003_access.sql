-- Who may read what. Roles that `indexer grant` limits to parties see what those parties may see, by row-level security on the tables
-- (docs/access.md). The first such grant creates the policies: until then no query pays for them. store/internal/tables says which rows they show.
--
-- A creation is seen by its witnesses and by the contract's stakeholders (stakeholders_ref), a lifetime by the stakeholders, and an update
-- by whoever sees one of its events (seen_by_ref, seen_also_by_ref, seen_by_others_ref).

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

CREATE VIEW wanted_reader_lists WITH (security_invoker = true) AS
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
