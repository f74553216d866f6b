-- What the database holds: of whom, in which scopes, which ranges of offsets, and from where on.

-- +goose Up

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

CREATE FUNCTION scope_shows(scope jsonb, other jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (scope -> 'parties' = '[]' OR other -> 'parties' <> '[]' AND scope -> 'parties' @> (other -> 'parties'))
    AND (scope -> 'templates' = '[]' OR other -> 'templates' <> '[]' AND scope -> 'templates' @> (other -> 'templates'))
    AND scope -> 'interfaces' @> (other -> 'interfaces')
    AND scope - '{parties,templates,interfaces}'::text[] = other - '{parties,templates,interfaces}'::text[];
COMMENT ON FUNCTION scope_shows(jsonb, jsonb) IS 'Whether a scope shows all that another one shows, in the same form. Empty parties and templates are all. Scope.Lacks in Go says the same.';

-- From where -------------------------------------------------------------------------------------------------------

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

CREATE FUNCTION ledger.oldest_offset() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT x.history_floor FROM floors x WHERE x.stream = 'updates');
END
$$;
COMMENT ON FUNCTION ledger.oldest_offset() IS 'Events with a greater offset are complete up to latest_offset(). 0: since the beginning of the ledger. Pruning raises it.';

CREATE FUNCTION ledger.state_floor() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (SELECT x.state_floor FROM floors x WHERE x.stream = 'updates');
END
$$;
COMMENT ON FUNCTION ledger.state_floor() IS 'The active set is known at every offset from this one on. NULL: at none, because indexing began in the middle without a snapshot. Pruning raises it.';

CREATE FUNCTION ledger.state_offset(at_offset bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    state_floor   bigint := ledger.state_floor();
    latest_offset bigint := ledger.latest_offset();
BEGIN
    IF latest_offset IS NULL THEN
        RAISE EXCEPTION 'nothing has been indexed yet'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start the indexer, or wait for the snapshot to be complete.';
    ELSIF state_floor IS NULL THEN
        RAISE EXCEPTION 'the active contracts are known at no offset: indexing began in the middle, without a snapshot'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Seed a new database from a snapshot to know what was active.';
    ELSIF at_offset IS NULL THEN
        RAISE EXCEPTION 'an offset is needed, not NULL' USING ERRCODE = 'null_value_not_allowed';
    ELSIF at_offset < state_floor THEN
        RAISE EXCEPTION 'the active contracts are not known at offset %, but from offset % on', at_offset, state_floor
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an offset between ledger.state_floor() and ledger.latest_offset().';
    ELSIF at_offset > latest_offset THEN
        RAISE EXCEPTION 'offset % has not been indexed yet: the latest is %', at_offset, latest_offset
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an offset between ledger.state_floor() and ledger.latest_offset().';
    END IF;
    RETURN at_offset;
END
$$;
COMMENT ON FUNCTION ledger.state_offset(bigint) IS 'The given offset, if the active contracts at it are known: from ledger.state_floor() to ledger.latest_offset(). Else an error, so that a query about the past returns no wrong answer.';

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

-- Ranges -----------------------------------------------------------------------------------------------------------

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

CREATE VIEW covered_scopes WITH (security_invoker = true) AS
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

CREATE VIEW ledger.coverage WITH (security_invoker = true) AS
SELECT c.stream, c.scope, c.from_exclusive, least(c.to_inclusive, ledger.latest_offset()) AS to_inclusive, c.complete AS in_force,
       c.parties, c.templates, c.interfaces
FROM scope_ranges c
WHERE c.from_exclusive < ledger.latest_offset();
COMMENT ON VIEW ledger.coverage IS 'Offset ranges whose events are complete, up to latest_offset(). The first begins at oldest_offset(). Each is of one scope.
@graphql({"primary_key_columns": ["stream", "scope", "from_exclusive"]})';
COMMENT ON COLUMN ledger.coverage.stream IS 'updates.';
COMMENT ON COLUMN ledger.coverage.scope IS 'Hash of the scope: parties, templates, interfaces, shape and so on.';
COMMENT ON COLUMN ledger.coverage.from_exclusive IS 'The range begins after this offset.';
COMMENT ON COLUMN ledger.coverage.to_inclusive IS 'The range ends with this offset.';
COMMENT ON COLUMN ledger.coverage.in_force IS 'Whether all is stored that the scope in force shows. False: the events are complete for an earlier scope that lacks some of it.';
COMMENT ON COLUMN ledger.coverage.parties IS 'The parties for which the events are complete; a limited role sees its own. A party that was taken away is complete up to the last range that names it. NULL: any party.';
COMMENT ON COLUMN ledger.coverage.templates IS 'The templates for which they are complete, as --templates named them. NULL: all.';
COMMENT ON COLUMN ledger.coverage.interfaces IS 'The interfaces whose views were read, and by which contracts of other templates were, as --interfaces named them.';

CREATE FUNCTION ledger.is_complete(from_exclusive bigint, to_inclusive bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce((
    SELECT range_agg(int8range(c.from_exclusive, c.to_inclusive)) @> int8range(is_complete.from_exclusive, is_complete.to_inclusive) FROM ledger.coverage c
    WHERE c.in_force
), false);
COMMENT ON FUNCTION ledger.is_complete(bigint, bigint) IS 'Whether every event of the scope in force after the first offset up to the second is stored. After something was added to the scope this is false of what was stored before. ledger.coverage says for which parties a range is complete. False where one of them is NULL; an error where the second is lower.';

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
