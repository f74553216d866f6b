-- Values of payloads in SQL: casts, and the views with typed columns that are made of them.

-- +goose Up

CREATE TABLE typed_views (
    view_schema  text NOT NULL,
    view_name    text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('template', 'interface', 'choice')),
    package_name text NOT NULL,
    module_name  text NOT NULL,
    entity_name  text NOT NULL,
    choice       text NOT NULL,
    columns      jsonb NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (view_schema, view_name),
    UNIQUE (view_schema, kind, package_name, module_name, entity_name, choice)
);
COMMENT ON TABLE typed_views IS 'The views that `indexer views create` made, and their columns in order: what was published stays.';
COMMENT ON COLUMN typed_views.choice IS 'Name of a choice; empty for the others.';
COMMENT ON COLUMN typed_views.columns IS 'Name, path in the value and SQL type of each column.';

CREATE VIEW ledger.typed_views WITH (security_invoker = true) AS
SELECT v.view_schema, v.view_name, v.kind, v.package_name, v.module_name, v.entity_name, nullif(v.choice, '') AS choice,
       c.made ->> 'name' AS column_name, c.ordinal::integer AS ordinal, c.made ->> 'type' AS type, p.part,
       CASE WHEN p.part IS NOT NULL THEN coalesce((
           SELECT string_agg(CASE WHEN s.step LIKE '=%' THEN substr(s.step, 2) ELSE s.step END, '.' ORDER BY s.n)
           FROM jsonb_array_elements_text(c.made -> 'path') WITH ORDINALITY s (step, n)
           WHERE s.step <> '#tag' AND s.step NOT LIKE '@%'), '') END AS path
FROM typed_views v
CROSS JOIN LATERAL jsonb_array_elements(v.columns) WITH ORDINALITY c (made, ordinal)
CROSS JOIN LATERAL (
    SELECT CASE WHEN c.made -> 'path' ->> 0 IN ('@key', '@result') THEN substr(c.made -> 'path' ->> 0, 2)
                WHEN c.made -> 'path' ->> 0 NOT LIKE '@%' THEN CASE v.kind WHEN 'template' THEN 'payload' WHEN 'interface' THEN 'view' ELSE 'argument' END
           END AS part) p;
COMMENT ON VIEW ledger.typed_views IS 'One row per column of a typed view: what `indexer views create` made.
@graphql({"primary_key_columns": ["view_schema", "view_name", "column_name"]})';
COMMENT ON COLUMN ledger.typed_views.view_schema IS 'Schema of the view.';
COMMENT ON COLUMN ledger.typed_views.view_name IS 'Name of the view. (view_schema, view_name, column_name) is unique.';
COMMENT ON COLUMN ledger.typed_views.kind IS 'What it is of: template, interface, or choice.';
COMMENT ON COLUMN ledger.typed_views.package_name IS 'Name of the package, the same over its versions.';
COMMENT ON COLUMN ledger.typed_views.module_name IS 'Module of the template or interface, with dots.';
COMMENT ON COLUMN ledger.typed_views.entity_name IS 'Name of the template or interface within its module.';
COMMENT ON COLUMN ledger.typed_views.choice IS 'Name of the choice. NULL for the others.';
COMMENT ON COLUMN ledger.typed_views.column_name IS 'Name of the column.';
COMMENT ON COLUMN ledger.typed_views.ordinal IS 'Its place in the view, from 1. What was published keeps its name, place and type.';
COMMENT ON COLUMN ledger.typed_views.type IS 'Its type in SQL.';
COMMENT ON COLUMN ledger.typed_views.part IS 'What the column''s field is of, as in ledger.fields: payload or key of a template, view of an interface, argument or result of a choice. NULL: the column is no field but one of the event.';
COMMENT ON COLUMN ledger.typed_views.path IS 'Path of the column''s field, as in ledger.fields. The constructor of a variant has the path of the variant. Empty: the value itself. NULL where part is.';

-- Casts of typed views ---------------------------------------------------------------------------------------------
-- They return NULL for a text that does not fit. They are inlined, and immutable: they depend on no setting of a session. LIKE and the
-- length replace counted repetitions in patterns, which would take several times as long as all the rest.

-- The one reader of decimals in SQL, as ledger.ParseDecimal is in Go: each form that Java's BigDecimal has (5.000E-7, 0E-10, 1E+3), and a
-- point that nothing follows. It is not inlined, so the functions that call it read the usual forms themselves. The length and the
-- exponent bound what is computed before it is found too long. A zero may have any exponent. No backslash: its text is read with the
-- caller's standard_conforming_strings.
CREATE FUNCTION decimal_within(value text, most_whole integer, most_fraction integer) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE
    n numeric;
BEGIN
    IF length(value) <= 700 THEN
        n := CASE WHEN value ~ '^-?[0-9]+[.]?[0-9]*([Ee][-+]?0*[0-9]?[0-9]?[0-9])?$' THEN value::numeric
                  WHEN value ~ '^-?0+[.]?0*[Ee][+]?0*[0-9]{1,9}$' THEN 0 END;
    END IF;
    RETURN CASE WHEN scale(n) <= most_fraction AND abs(n) < power(10::numeric, most_whole) THEN n END;
END
$$;
COMMENT ON FUNCTION decimal_within(text, integer, integer) IS 'The decimal that a text is, if it has at most so many digits before the point, and after it; else NULL.';

CREATE FUNCTION ledger.as_boolean(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE value WHEN 'true' THEN true WHEN 'false' THEN false END;
COMMENT ON FUNCTION ledger.as_boolean(text) IS 'The text as boolean; NULL where it is neither true nor false.';

CREATE FUNCTION ledger.as_bigint(value text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN length(value) < 19 AND value ~ '^-?[0-9]+$' THEN value::bigint
            WHEN value ~ '^-?[0-9]{18,19}$' THEN CASE WHEN value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN value::bigint END END;
COMMENT ON FUNCTION ledger.as_bigint(text) IS 'The text as bigint; NULL where it is no whole number of 64 bits.';

CREATE FUNCTION ledger.as_numeric(value text, scale integer) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value ~ '^-?[0-9]+\.?[0-9]*$' AND length(split_part(value, '.', 2)) <= scale AND length(ltrim(split_part(value, '.', 1), '-')) <= 38 - scale
            THEN value::numeric
            WHEN value ~ '^-?[0-9.]+[Ee]' THEN decimal_within(value, 38 - scale, scale) END;
COMMENT ON FUNCTION ledger.as_numeric(text, integer) IS 'The text, which may have an exponent (5.0E-7), as a number with at most this many digits after the point, and 38 in all; NULL where it is none.';

CREATE FUNCTION ledger.as_date(value text) RETURNS date LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value LIKE '____-__-__' AND value NOT LIKE '%-%-%-%' AND value NOT LIKE '0000%' AND value ~ '^[0-9-]+$'
             AND substr(value, 6, 2)::integer BETWEEN 1 AND 12 AND right(value, 2)::integer > 0
            THEN CASE WHEN right(value, 2)::integer <= 28
                        OR right(value, 2)::integer <= extract(day FROM make_date(left(value, 4)::integer, substr(value, 6, 2)::integer, 1)
                               + interval '1 month' - interval '1 day')
                      THEN make_date(left(value, 4)::integer, substr(value, 6, 2)::integer, right(value, 2)::integer) END END;
COMMENT ON FUNCTION ledger.as_date(text) IS 'The text (2025-06-18) as date; NULL where it is none.';

CREATE FUNCTION ledger.as_timestamptz(value text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN length(value) < 28 AND value LIKE '____-__-__T__:__:__%Z' AND value NOT LIKE '0000%'
             AND value ~ '^[0-9]+-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z$'
            THEN CASE WHEN substr(value, 9, 2)::integer <= 28
                        OR substr(value, 9, 2)::integer <= extract(day FROM make_date(left(value, 4)::integer, substr(value, 6, 2)::integer, 1)
                               + interval '1 month' - interval '1 day')
                      THEN make_timestamp(left(value, 4)::integer, substr(value, 6, 2)::integer, substr(value, 9, 2)::integer, substr(value, 12, 2)::integer,
                               substr(value, 15, 2)::integer, rtrim(substr(value, 18), 'Z')::double precision) AT TIME ZONE 'UTC' END END;
COMMENT ON FUNCTION ledger.as_timestamptz(text) IS 'The text (2025-06-18T00:00:00.000001Z) as timestamptz; NULL where it is none.';

-- Casts of what contracts say. They return NULL instead of failing, and are simple enough to be inlined -------------

CREATE FUNCTION text_of(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(value) = 'string' THEN value #>> '{}' END;
COMMENT ON FUNCTION text_of(jsonb) IS 'The text that a JSON value is.';

CREATE FUNCTION decimal_of(value text) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value = '0E-10' THEN 0.0000000000 -- most fees that a Scan shows
            WHEN length(value) <= 300 AND value ~ '^-?[0-9]+\.?[0-9]*$' THEN value::numeric
            ELSE decimal_within(value, 300, 300) END;
COMMENT ON FUNCTION decimal_of(text) IS 'The decimal that a text is; NULL where it is none, or has more than 300 digits before or after the point. A ledger''s have at most 38.';

CREATE FUNCTION integer_of(value text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN value ~ '^-?[0-9]{1,19}$' THEN
    CASE WHEN value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN value::bigint END END;
COMMENT ON FUNCTION integer_of(text) IS 'The 64-bit integer that a text is.';

-- At most 285 years, so that neither the interval nor a time plus it overflows.
CREATE FUNCTION duration_of(value text) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN integer_of(value) BETWEEN -9000000000000000 AND 9000000000000000
    THEN integer_of(value) * interval '1 microsecond' END;
COMMENT ON FUNCTION duration_of(text) IS 'The duration that a number of microseconds is.';
