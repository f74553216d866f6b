-- Templates, interfaces, choices and fields, as the packages define them, and views with typed columns.

-- +goose Up

-- What packages define ---------------------------------------------------------------------------------------------

CREATE TABLE package_definitions (
    package_id   text NOT NULL,
    module_name  text NOT NULL,
    entity_name  text NOT NULL,
    is_interface boolean NOT NULL,
    has_key      boolean NOT NULL,
    interfaces   text[] NOT NULL,
    PRIMARY KEY (package_id, module_name, entity_name)
);
COMMENT ON TABLE package_definitions IS 'Templates and interfaces of the packages in package_contents. Follows from their content, as the next two.';
COMMENT ON COLUMN package_definitions.interfaces IS 'Ids of the interfaces that the template implements, or that the interface requires.';

CREATE TABLE package_choices (
    package_id  text NOT NULL,
    module_name text NOT NULL,
    entity_name text NOT NULL,
    choice      text NOT NULL,
    consuming   boolean NOT NULL,
    argument    text NOT NULL,
    result      text NOT NULL,
    PRIMARY KEY (package_id, module_name, entity_name, choice)
);
COMMENT ON TABLE package_choices IS 'Choices of the templates and interfaces in package_definitions.';

CREATE TABLE package_fields (
    package_id  text NOT NULL,
    module_name text NOT NULL,
    entity_name text NOT NULL,
    part        text NOT NULL CHECK (part IN ('payload', 'key', 'view', 'argument', 'result')),
    choice      text NOT NULL,
    ordinal     integer NOT NULL,
    path        text NOT NULL,
    type        text NOT NULL,
    PRIMARY KEY (package_id, module_name, entity_name, part, choice, ordinal)
);
COMMENT ON TABLE package_fields IS 'Fields of the payloads, keys, views, choice arguments and results of package_definitions and package_choices, in their order, nested ones after what they are in.';
COMMENT ON COLUMN package_fields.choice IS 'The choice of an argument or a result; empty for the others.';

CREATE VIEW ledger.templates AS
SELECT d.package_id || ':' || d.module_name || ':' || d.entity_name AS template_id, d.package_id, c.package_name, c.package_version, d.module_name, d.entity_name,
       d.has_key, d.interfaces
FROM package_definitions d
JOIN package_contents c ON c.package_id = d.package_id
WHERE NOT d.is_interface;

COMMENT ON VIEW ledger.templates IS 'One row per template and version of its package, of the packages whose content is here: those that events named or that were vetted, and those that these refer to.';
COMMENT ON COLUMN ledger.templates.template_id IS 'Package id, module and entity, as events name the template.';
COMMENT ON COLUMN ledger.templates.package_id IS 'Id of the package, a hash of its content.';
COMMENT ON COLUMN ledger.templates.package_name IS 'Name of the package, the same over its versions.';
COMMENT ON COLUMN ledger.templates.package_version IS 'Version of the package: numbers with dots between them. Two packages can have the same name and version.';
COMMENT ON COLUMN ledger.templates.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.templates.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.templates.has_key IS 'Whether contracts of the template have keys.';
COMMENT ON COLUMN ledger.templates.interfaces IS 'Ids of the interfaces that the template implements.';

CREATE VIEW ledger.interfaces AS
SELECT d.package_id || ':' || d.module_name || ':' || d.entity_name AS interface_id, d.package_id, c.package_name, c.package_version, d.module_name, d.entity_name,
       d.interfaces AS requires
FROM package_definitions d
JOIN package_contents c ON c.package_id = d.package_id
WHERE d.is_interface;

COMMENT ON VIEW ledger.interfaces IS 'One row per interface and version of its package, of the packages whose content is here.';
COMMENT ON COLUMN ledger.interfaces.interface_id IS 'Package id, module and entity, as events name the interface.';
COMMENT ON COLUMN ledger.interfaces.package_id IS 'Id of the package, a hash of its content.';
COMMENT ON COLUMN ledger.interfaces.package_name IS 'Name of the package.';
COMMENT ON COLUMN ledger.interfaces.package_version IS 'Version of the package.';
COMMENT ON COLUMN ledger.interfaces.module_name IS 'Module of the interface, with dots.';
COMMENT ON COLUMN ledger.interfaces.entity_name IS 'Name of the interface within its module.';
COMMENT ON COLUMN ledger.interfaces.requires IS 'Ids of the interfaces that whatever implements this one implements too.';

CREATE VIEW ledger.choices AS
SELECT h.package_id || ':' || h.module_name || ':' || h.entity_name AS of_id, d.is_interface AS of_interface, h.package_id, c.package_name, c.package_version,
       h.module_name, h.entity_name, h.choice, h.consuming, h.argument AS argument_type, h.result AS result_type
FROM package_choices h
JOIN package_definitions d ON d.package_id = h.package_id AND d.module_name = h.module_name AND d.entity_name = h.entity_name
JOIN package_contents c ON c.package_id = h.package_id;

COMMENT ON VIEW ledger.choices IS 'One row per choice of a template or an interface, and version of its package. The choices that a template has from its interfaces are those of the interfaces.';
COMMENT ON COLUMN ledger.choices.of_id IS 'The template_id or interface_id that the choice is of.';
COMMENT ON COLUMN ledger.choices.of_interface IS 'Whether that is an interface. Its exercises have it as interface_id.';
COMMENT ON COLUMN ledger.choices.package_id IS 'Id of the package, a hash of its content.';
COMMENT ON COLUMN ledger.choices.package_name IS 'Name of the package, the same over its versions.';
COMMENT ON COLUMN ledger.choices.package_version IS 'Version of the package.';
COMMENT ON COLUMN ledger.choices.module_name IS 'Module of the template or interface, with dots.';
COMMENT ON COLUMN ledger.choices.entity_name IS 'Name of the template or interface within its module.';
COMMENT ON COLUMN ledger.choices.choice IS 'Name of the choice.';
COMMENT ON COLUMN ledger.choices.consuming IS 'Whether its exercise archives the contract.';
COMMENT ON COLUMN ledger.choices.argument_type IS 'Type of its argument, in short. Its fields are in ledger.fields. Empty where it is not known.';
COMMENT ON COLUMN ledger.choices.result_type IS 'Type of its result, in short. Empty where it is not known.';

CREATE VIEW ledger.fields AS
SELECT DISTINCT ON (c.package_name, f.module_name, f.entity_name, f.part, f.choice, f.path)
       c.package_name, f.module_name, f.entity_name, f.part, nullif(f.choice, '') AS choice, f.path, f.type, f.ordinal,
       first_value(c.package_version) OVER versions AS since_version, c.package_version AS last_version,
       count(*) OVER versions::integer AS packages,
       min(f.type) OVER versions IS DISTINCT FROM max(f.type) OVER versions AS type_differs
FROM package_fields f
JOIN package_contents c ON c.package_id = f.package_id
WINDOW versions AS (
    PARTITION BY c.package_name, f.module_name, f.entity_name, f.part, f.choice, f.path
    ORDER BY string_to_array(c.package_version, '.')::numeric[], c.package_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
ORDER BY c.package_name, f.module_name, f.entity_name, f.part, f.choice, f.path, string_to_array(c.package_version, '.')::numeric[] DESC, c.package_id DESC;

COMMENT ON VIEW ledger.fields IS 'One row per field of a payload, key, interface view, choice argument or exercise result, over all versions of the package that are here. Nested fields have rows of their own.';
COMMENT ON COLUMN ledger.fields.package_name IS 'Name of the package, the same over its versions.';
COMMENT ON COLUMN ledger.fields.module_name IS 'Module of the template or interface, with dots.';
COMMENT ON COLUMN ledger.fields.entity_name IS 'Name of the template or interface within its module.';
COMMENT ON COLUMN ledger.fields.part IS 'What the field is of: payload and key of a template, view of an interface, argument and result of a choice of either.';
COMMENT ON COLUMN ledger.fields.choice IS 'The choice of an argument or a result. NULL for the others.';
COMMENT ON COLUMN ledger.fields.path IS 'Names of fields with dots between them, the field''s own last. [] goes into the elements of a list or the values of a map, [key] into its keys; the value of a variant goes by its constructor. Empty: the value itself, where that is no record.';
COMMENT ON COLUMN ledger.fields.type IS 'Its type in the latest version that has it: Text, Numeric 10, Optional of Party, Record Module:Name.';
COMMENT ON COLUMN ledger.fields.ordinal IS 'Its place among the fields in that version, those of nested records included.';
COMMENT ON COLUMN ledger.fields.since_version IS 'The first version here that has the field.';
COMMENT ON COLUMN ledger.fields.last_version IS 'The latest version here that has the field.';
COMMENT ON COLUMN ledger.fields.packages IS 'How many packages of the name, here, have the field.';
COMMENT ON COLUMN ledger.fields.type_differs IS 'Whether it has another type in an earlier version, which the rules of upgrades do not allow.';

CREATE VIEW ledger.parties AS
SELECT p.party, split_part(p.party, '::', 1) AS hint, nullif(split_part(p.party, '::', 2), '') AS namespace,
       bool_or(p.in_events) AS in_events, bool_or(NOT p.in_events) AS in_topology
FROM (
    SELECT DISTINCT unnest(l.parties) AS party, true AS in_events FROM party_lists l
    UNION
    SELECT t.party_id, false FROM ledger.topology_events t WHERE t.party_id IS NOT NULL
) p
GROUP BY p.party;

COMMENT ON VIEW ledger.parties IS 'One row per party that is a signatory, observer, witness or actor of something stored, or that a topology event is of. These are the names that are stored: they can be ahead of ledger.latest_offset(), and stay where a reset or a repair took the events away.';
COMMENT ON COLUMN ledger.parties.party IS 'The party.';
COMMENT ON COLUMN ledger.parties.hint IS 'What stands before :: in it: a name that was chosen for people, and is not unique.';
COMMENT ON COLUMN ledger.parties.namespace IS 'What stands after ::, a fingerprint of the key that the party belongs to. NULL where there is none.';
COMMENT ON COLUMN ledger.parties.in_events IS 'Whether an event names it.';
COMMENT ON COLUMN ledger.parties.in_topology IS 'Whether a topology event names it.';

-- Typed views ------------------------------------------------------------------------------------------------------

CREATE TABLE typed_views (
    view_schema  text NOT NULL,
    view_name    text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('template', 'interface', 'choice')),
    package_name text NOT NULL,
    module_name  text NOT NULL,
    entity_name  text NOT NULL,
    choice       text NOT NULL,
    columns      jsonb NOT NULL,
    inferred     bigint,
    made_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (view_schema, view_name),
    UNIQUE (view_schema, kind, package_name, module_name, entity_name, choice)
);
COMMENT ON TABLE typed_views IS 'The views that `indexer views create` made, and their columns in order: what was published stays.';
COMMENT ON COLUMN typed_views.choice IS 'Name of a choice; empty for the others.';
COMMENT ON COLUMN typed_views.columns IS 'Name, path in the value and SQL type of each column.';
COMMENT ON COLUMN typed_views.inferred IS 'From how many stored values its types were inferred when it was last made. NULL: packages say them.';

CREATE VIEW ledger.typed_views AS
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

COMMENT ON VIEW ledger.typed_views IS 'One row per column of a typed view: what `indexer views create` made.';
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

-- Casts that return NULL for a text that does not fit. They are inlined, and immutable: they depend on no setting of a session. LIKE and the
-- length replace counted repetitions in patterns, which would take several times as long as all the rest.

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
