-- The types of the Participant Query Store, and its functions about offsets. Everything here can be made again where it is: types stay
-- as they are, views and functions are replaced.

DO $$
BEGIN
    IF to_regtype('pqs.__payload_type') IS NULL THEN
        CREATE TYPE pqs.__payload_type AS ENUM ('template', 'interface');
    END IF;
    IF to_regtype('pqs.__event_type') IS NULL THEN
        CREATE TYPE pqs.__event_type AS ENUM ('create', 'archive', 'exercise');
    END IF;
    IF to_regtype('pqs.checkpoint') IS NULL THEN
        CREATE TYPE pqs.checkpoint AS ("offset" bigint, ix bigint);
    END IF;
    IF to_regtype('pqs.event_id') IS NULL THEN
        CREATE TYPE pqs.event_id AS ("offset" bigint, node_id integer);
    END IF;
    IF to_regtype('pqs.trace_context') IS NULL THEN
        CREATE TYPE pqs.trace_context AS (trace_parent text, trace_state text);
    END IF;
    IF to_regtype('pqs.contract_summary') IS NULL THEN
        CREATE TYPE pqs.contract_summary AS (template_fqn text, payload_type pqs.__payload_type, count bigint);
    END IF;
    IF to_regtype('pqs.contract') IS NULL THEN
        CREATE TYPE pqs.contract AS (
            template_fqn text, payload_type pqs.__payload_type, create_event_pk bigint, create_event_id pqs.event_id, created_at_ix bigint,
            created_at_offset bigint, archive_event_pk bigint, archive_event_id pqs.event_id, archived_at_ix bigint, archived_at_offset bigint,
            life_ix int8range, contract_id text, payload jsonb, contract_key jsonb, metadata bytea, created_effective_at timestamptz,
            archived_effective_at timestamptz, redaction_id text, package_name text, package_version text, package_id text, signatories text[],
            observers text[], witnesses text[], divulged_only boolean, creation_package_id text, contract_key_hash bytea);
    END IF;
    IF to_regtype('pqs.exercise') IS NULL THEN
        CREATE TYPE pqs.exercise AS (
            template_fqn text, choice_fqn text, choice text, consuming boolean, exercise_event_pk bigint, exercise_event_id pqs.event_id,
            exercised_at_ix bigint, exercised_at_offset bigint, contract_id text, argument jsonb, result jsonb, exercised_effective_at timestamptz,
            redaction_id text, package_name text, package_version text, package_id text, signatories text[], observers text[],
            controllers text[], last_descendant_node_id integer, witnesses text[]);
    END IF;
END
$$;

-- Of what a session was told with set_latest and set_oldest, as far as the database has it ------------------------

CREATE OR REPLACE FUNCTION pqs.latest_offset() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN least(nullif(current_setting('pqs.session_offset_latest', true), '')::bigint, ledger.latest_offset());
COMMENT ON FUNCTION pqs.latest_offset() IS 'The last offset that is read: that of set_latest, else the watermark. NULL: nothing has been indexed.';

CREATE OR REPLACE FUNCTION pqs.oldest_offset() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN greatest(nullif(current_setting('pqs.session_offset_oldest', true), '')::bigint, CASE WHEN ledger.latest_offset() IS NOT NULL THEN ledger.oldest_offset() END);
COMMENT ON FUNCTION pqs.oldest_offset() IS 'The first offset that is read: that of set_oldest, else where the database begins; 0 is the beginning of the ledger. NULL: nothing has been indexed.';

CREATE OR REPLACE FUNCTION pqs.pruned_offset() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULL::bigint;
COMMENT ON FUNCTION pqs.pruned_offset() IS 'NULL: what was pruned is gone as what was never indexed, so oldest_offset() tells where both end.';

CREATE OR REPLACE FUNCTION pqs.latest_checkpoint() RETURNS SETOF pqs.checkpoint LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC SELECT o, o FROM pqs.latest_offset() o WHERE o IS NOT NULL; END;
COMMENT ON FUNCTION pqs.latest_checkpoint() IS 'latest_offset() and its ix. No row: nothing has been indexed.';

CREATE OR REPLACE FUNCTION pqs.oldest_checkpoint() RETURNS SETOF pqs.checkpoint LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC SELECT o, o FROM pqs.oldest_offset() o WHERE o IS NOT NULL; END;
COMMENT ON FUNCTION pqs.oldest_checkpoint() IS 'oldest_offset() and its ix. No row: nothing has been indexed.';

-- Functions in PL/pgSQL have the search path with which they were made. Those with their owner's rights tell nothing about parties; the others
-- read views. None of them makes a statement of what it is given.

CREATE OR REPLACE FUNCTION pqs.validate_offset_exists("offset" bigint) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF "offset" > ledger.latest_offset() THEN
        RAISE EXCEPTION 'Illegal offset % is beyond upper bounds of contiguous history', "offset"
            USING HINT = format('The database has the offsets from %s to %s.', ledger.oldest_offset(), ledger.latest_offset());
    ELSIF ledger.latest_offset() IS NOT NULL AND "offset" < ledger.oldest_offset() THEN
        RAISE EXCEPTION 'Illegal offset % is outside lower bounds of contiguous history', "offset"
            USING HINT = format('The database has the offsets from %s to %s.', ledger.oldest_offset(), ledger.latest_offset());
    END IF;
    RETURN "offset";
END
$$;
COMMENT ON FUNCTION pqs.validate_offset_exists(bigint) IS 'The offset, if the database has it; else an error.';

CREATE OR REPLACE FUNCTION pqs.set_latest("offset" bigint, is_local boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('pqs.session_offset_latest', coalesce(pqs.validate_offset_exists("offset")::text, ''), coalesce(is_local, false));
    RETURN pqs.latest_offset();
END
$$;
COMMENT ON FUNCTION pqs.set_latest(bigint, boolean) IS 'As set_latest(offset); with true until the end of the transaction only.';

CREATE OR REPLACE FUNCTION pqs.set_oldest("offset" bigint, is_local boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM set_config('pqs.session_offset_oldest', coalesce(pqs.validate_offset_exists("offset")::text, ''), coalesce(is_local, false));
    RETURN pqs.oldest_offset();
END
$$;
COMMENT ON FUNCTION pqs.set_oldest(bigint, boolean) IS 'As set_oldest(offset); with true until the end of the transaction only.';

CREATE OR REPLACE FUNCTION pqs.set_latest("offset" bigint) RETURNS bigint LANGUAGE sql
RETURN pqs.set_latest("offset", false);
COMMENT ON FUNCTION pqs.set_latest(bigint) IS 'Has every function and view read no further than an offset, until the connection ends: a pool hands that on. NULL: no bound. Returns the offset that counts now.';

CREATE OR REPLACE FUNCTION pqs.set_oldest("offset" bigint) RETURNS bigint LANGUAGE sql
RETURN pqs.set_oldest("offset", false);
COMMENT ON FUNCTION pqs.set_oldest(bigint) IS 'Has every function and view begin with an offset, until the connection ends: a pool hands that on. NULL: no bound. Returns the offset that counts now.';

CREATE OR REPLACE FUNCTION pqs.nearest_offset(cutoff_ts timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
DECLARE
    answer bigint;
BEGIN
    IF ledger.latest_offset() IS NULL THEN
        RETURN NULL;
    END IF;
    BEGIN
        answer := ledger.offset_at(cutoff_ts);
    EXCEPTION WHEN invalid_parameter_value THEN -- before the first update, or in the future
        answer := CASE WHEN cutoff_ts > now() THEN ledger.latest_offset() END;
    END;
    SELECT max(u."offset") INTO answer
    FROM (SELECT x."offset" FROM pqs.__transactions x
          WHERE x."offset" <= answer AND x."offset" > ledger.oldest_offset()
          ORDER BY x."offset" DESC LIMIT 1) u;
    IF answer IS NULL THEN
        RAISE WARNING 'no transaction is as old as %: the offset is NULL', cutoff_ts
            USING HINT = 'set_latest(NULL) and set_oldest(NULL) take the bound away.';
    END IF;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION pqs.nearest_offset(timestamptz) IS 'The offset of the last transaction whose record time, and that of all before it, is at most this. NULL, with a warning: there is none.';

CREATE OR REPLACE FUNCTION pqs.nearest_offset(cutoff interval) RETURNS bigint LANGUAGE sql STABLE STRICT
RETURN pqs.nearest_offset(now() - cutoff);
COMMENT ON FUNCTION pqs.nearest_offset(interval) IS 'As of a time that is so long ago.';

CREATE OR REPLACE FUNCTION pqs.nearest_offset(cutoff text) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SET search_path FROM CURRENT AS $$
DECLARE
    at_time timestamptz;
BEGIN
    BEGIN
        at_time := cutoff::timestamptz;
    EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow THEN
        at_time := now() - cutoff::interval;
    END;
    RETURN pqs.nearest_offset(at_time);
END
$$;
COMMENT ON FUNCTION pqs.nearest_offset(text) IS 'As of a time, or of a time that is so long ago, without a type.';

-- Bounds of what is asked for -------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pqs.__known_offset(of_offset bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
BEGIN
    IF of_offset > pqs.latest_offset() THEN
        RAISE EXCEPTION 'Offset % is after the latest known offset %', of_offset, pqs.latest_offset();
    ELSIF of_offset < pqs.oldest_offset() THEN
        RAISE EXCEPTION 'Offset % is before the oldest known offset %', of_offset, pqs.oldest_offset();
    END IF;
    RETURN of_offset;
END
$$;
COMMENT ON FUNCTION pqs.__known_offset(bigint) IS 'The offset, if it is between oldest_offset() and latest_offset(); else an error.';

CREATE OR REPLACE FUNCTION pqs.__from_offset(from_offset bigint) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN pqs.__known_offset(coalesce(from_offset, pqs.oldest_offset()));
COMMENT ON FUNCTION pqs.__from_offset(bigint) IS 'Where a range begins. NULL: at the default.';

CREATE OR REPLACE FUNCTION pqs.__to_offset(to_offset bigint) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN to_offset > pqs.latest_offset() THEN pqs.__known_offset(to_offset) ELSE coalesce(to_offset, pqs.latest_offset()) END;
COMMENT ON FUNCTION pqs.__to_offset(bigint) IS 'Where a range ends. NULL: at the default. Before its beginning it is empty.';

CREATE OR REPLACE FUNCTION pqs.__state_offset(at_offset bigint) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    answer bigint := pqs.__known_offset(coalesce(at_offset, pqs.latest_offset()));
BEGIN
    IF ledger.latest_offset() IS NULL THEN
        RETURN NULL;
    ELSIF ledger.state_floor() IS NULL THEN
        RAISE EXCEPTION 'Offset % is before the oldest known offset: what is active is known at no offset, because indexing began in the middle', answer
            USING HINT = 'Seed a new database from a snapshot. creates() and archives() work.';
    ELSIF answer < ledger.state_floor() THEN
        RAISE EXCEPTION 'Offset % is before the oldest known offset % of what is active', answer, ledger.state_floor();
    END IF;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION pqs.__state_offset(bigint) IS 'The offset, if it is known what was active there; else an error. NULL stands for latest_offset(); answered where nothing has been indexed.';

-- Numbers ----------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pqs.__key(name text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ('x' || encode(substr(sha256(convert_to(name, 'UTF8')), 1, 6), 'hex'))::bit(48)::bigint;
COMMENT ON FUNCTION pqs.__key(text) IS 'The number that stands for a name where the Participant Query Store has a primary key.';

CREATE OR REPLACE FUNCTION pqs.__life(from_ix bigint, to_ix bigint) RETURNS int8range LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN to_ix < from_ix THEN 'empty'::int8range ELSE int8range(from_ix, to_ix) END;
COMMENT ON FUNCTION pqs.__life(bigint, bigint) IS 'From one place inclusive to another exclusive; empty where they are the same.';

-- Names ------------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION pqs.__interface_package(interface_id text) RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
RETURN coalesce(
    (SELECT nullif(p.package_name, '') FROM packages p WHERE p.package_id = split_part(interface_id, ':', 1)),
    (SELECT n.package_name FROM interface_names n WHERE n.interface_id = __interface_package.interface_id),
    split_part(interface_id, ':', 1));
COMMENT ON FUNCTION pqs.__interface_package(text) IS 'Name of an interface''s package; its id where the name is not known.';

CREATE OR REPLACE FUNCTION pqs.__package_name(package text) RETURNS text LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN coalesce((SELECT nullif(p.package_name, '') FROM ledger.packages p WHERE p.package_id = package), package);
COMMENT ON FUNCTION pqs.__package_name(text) IS 'Name of the package with this id; what is no id of a package that is known by name stays as it is.';

CREATE OR REPLACE FUNCTION pqs.__likeness(name text, known text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(avg((strpos(lower(known), lower(substr(name, i, 2))) > 0)::integer), 0) FROM generate_series(1, least(length(name), 100) - 1) i);
COMMENT ON FUNCTION pqs.__likeness(text, text) IS 'How much one name is like another: how many of its pairs of letters, from 0 to 1, the other one has.';

CREATE OR REPLACE FUNCTION pqs.__likeliest(word text, fqns text[], words text[]) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT string_agg(x.fqn, ', ' ORDER BY x.likeness DESC, x.fqn COLLATE "C")
    FROM (
        SELECT k.fqn, pqs.__likeness(word, k.known) AS likeness, count(*) OVER () <= 10 AS few FROM unnest(fqns, words) k (fqn, known)
        ORDER BY likeness DESC, k.fqn COLLATE "C" LIMIT 10
    ) x
    WHERE x.few OR x.likeness >= 0.5);
COMMENT ON FUNCTION pqs.__likeliest(text, text[], text[]) IS 'The full names whose own words are the most like one, the most alike first; all where there are few. NULL: none.';

CREATE OR REPLACE FUNCTION pqs.__contract_type(qname text, OUT template_fqn text, OUT template_refs integer[], OUT shown_refs integer[], OUT interface_ids text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    parts text[] := string_to_array(qname, ':');
    n     integer := cardinality(string_to_array(qname, ':'));
    package text := pqs.__package_name(parts[n - 2]);
    found text[];
    like_it text;
BEGIN
    IF qname IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(x.fqn ORDER BY x.fqn COLLATE "C") INTO found
    FROM (
        SELECT t.package_name || ':' || t.module_name || ':' || t.entity_name AS fqn FROM templates t
        WHERE n <= 3 AND t.entity_name = parts[n] AND (n < 2 OR t.module_name = parts[n - 1]) AND (n < 3 OR t.package_name = package)
        UNION
        SELECT coalesce(i.package_name, split_part(i.interface_id, ':', 1)) || ':' || i.module_name || ':' || i.entity_name FROM interface_names i
        WHERE n <= 3 AND i.entity_name = parts[n] AND (n < 2 OR i.module_name = parts[n - 1])
            AND (n < 3 OR coalesce(i.package_name, split_part(i.interface_id, ':', 1)) = package)
    ) x;
    IF found IS NULL THEN
        SELECT pqs.__likeliest(parts[n], array_agg(c.template_fqn), array_agg(c.entity_name)) INTO like_it FROM pqs.__contract_tpe c;
        RAISE EXCEPTION 'Identifier not found: %', qname
            USING HINT = coalesce('There are: ' || like_it || '.', 'Which templates and interfaces there are: SELECT template_fqn FROM __contract_tpe.')
                || ' A name is Template, Module:Template or package:Module:Template, as it is written in the code; the package by its name or its id.';
    ELSIF cardinality(found) > 1 THEN
        RAISE EXCEPTION 'Ambiguous identifier: % (%)', qname, array_to_string(found[:10], ', ') || CASE WHEN cardinality(found) > 10 THEN ', ...' ELSE '' END
            USING HINT = 'Put module and package before it.';
    END IF;
    template_fqn := found[1];
    template_refs := ARRAY(SELECT t.template_ref FROM templates t WHERE t.package_name || ':' || t.module_name || ':' || t.entity_name = found[1]);
    interface_ids := ARRAY(
        SELECT i.interface_id FROM interface_names i
        WHERE coalesce(i.package_name, split_part(i.interface_id, ':', 1)) || ':' || i.module_name || ':' || i.entity_name = found[1]);
    shown_refs := ARRAY(SELECT DISTINCT i.template_ref FROM template_interfaces i WHERE i.interface_id = ANY (interface_ids));
END
$$;
COMMENT ON FUNCTION pqs.__contract_type(text) IS 'What the name of a template or an interface stands for: numbers of templates; of an interface its ids, and the numbers of the templates that have shown a view of it. An error for a name that is not known, or is that of several.';

CREATE OR REPLACE FUNCTION pqs.__choice_type(qname text, OUT choice_fqn text, OUT choice text, OUT template_refs integer[], OUT interface_ids text[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    parts text[] := string_to_array(qname, ':');
    n     integer := cardinality(string_to_array(qname, ':'));
    package text := pqs.__package_name(parts[n - 3]);
    found text[];
    like_it text;
BEGIN
    IF qname IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(DISTINCT x.fqn COLLATE "C"), array_agg(x.template_ref) FILTER (WHERE x.interface_id IS NULL), array_agg(DISTINCT x.interface_id) FILTER (WHERE x.interface_id IS NOT NULL)
    INTO found, template_refs, interface_ids
    FROM (
        SELECT o.template_ref, o.interface_id, o.package_name || ':' || o.module_name || ':' || o.entity_name || ':' || parts[n] AS fqn
        FROM pqs.__choices o
        WHERE o.choice = parts[n] AND n <= 4 AND (n < 2 OR o.entity_name = parts[n - 1]) AND (n < 3 OR o.module_name = parts[n - 2]) AND (n < 4 OR o.package_name = package)
    ) x;
    IF found IS NULL THEN
        SELECT pqs.__likeliest(parts[n], array_agg(c.choice_fqn), array_agg(c.choice)) INTO like_it FROM pqs.__exercise_tpe c;
        RAISE EXCEPTION 'Identifier not found: %', qname
            USING HINT = coalesce('There are: ' || like_it || '.', 'Which choices there are: SELECT choice_fqn FROM __exercise_tpe.')
                || ' A name is Choice, Template:Choice, Module:Template:Choice or package:Module:Template:Choice; a choice of an interface has the interface in the place of the template.';
    ELSIF cardinality(found) > 1 THEN
        RAISE EXCEPTION 'Ambiguous identifier: % (%)', qname, array_to_string(found[:10], ', ') || CASE WHEN cardinality(found) > 10 THEN ', ...' ELSE '' END
            USING HINT = 'Put template, module and package before it.';
    END IF;
    choice_fqn := found[1];
    choice := parts[n];
END
$$;
COMMENT ON FUNCTION pqs.__choice_type(text) IS 'What the name of a choice stands for. An error for one that is not known, or is that of several. Reads every exercise.';

CREATE OR REPLACE FUNCTION pqs.__contract_tpe4name(qname text) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN pqs.__key((pqs.__contract_type(qname)).template_fqn);
COMMENT ON FUNCTION pqs.__contract_tpe4name(text) IS 'The pk in __contract_tpe of a template or an interface.';

CREATE OR REPLACE FUNCTION pqs.__exercise_tpe4name(qname text) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN pqs.__key((pqs.__choice_type(qname)).choice_fqn);
COMMENT ON FUNCTION pqs.__exercise_tpe4name(text) IS 'The pk in __exercise_tpe of a choice.';
