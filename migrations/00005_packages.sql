-- Packages: which are known and vetted, and the templates, interfaces, choices and fields that they define.

-- +goose Up

CREATE TABLE packages (
    package_id      text PRIMARY KEY,
    package_name    text NOT NULL,
    package_version text NOT NULL
);
COMMENT ON TABLE packages IS 'Packages that were vetted at some time, with the last name and version that were not empty. Shown, with those of the templates, as ledger.packages.';

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

CREATE VIEW ledger.packages WITH (security_invoker = true) AS
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
COMMENT ON VIEW ledger.packages IS 'One row per package that a template id named, that the participant had vetted at some time, or whose types are asked for because others refer to them. What is here need not be vetted now: see ledger.vetted_packages.
@graphql({"primary_key_columns": ["package_id"]})';
COMMENT ON COLUMN ledger.packages.package_id IS 'Id of the package, a hash of its content: the first part of a template_id. It changes with each release.';
COMMENT ON COLUMN ledger.packages.package_name IS 'Name of the package, the same over its releases. Empty where the server never sent it.';
COMMENT ON COLUMN ledger.packages.package_version IS 'Version of the package. NULL where only template ids named it, which have no version, and its content is not here. Empty where it was vetted without having been uploaded to the participant.';
COMMENT ON COLUMN ledger.packages.types IS 'Whether the types of its templates are here: known, incomplete (packages that it refers to are missing), unreadable, missing (the participant did not give the package), or NULL: it was not asked for.';
COMMENT ON COLUMN ledger.packages.types_failure IS 'Why the types are not known, for people to read. NULL where they are, or the package was not asked for.';

-- Vetting ----------------------------------------------------------------------------------------------------------

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

CREATE VIEW ledger.vetted_packages WITH (security_invoker = true) AS
SELECT s.synchronizer_id, v.package_id, p.package_name, p.package_version, v.valid_from, v.valid_until, st.topology_serial
FROM vetted_packages v
JOIN vetting_states st ON st.synchronizer_ref = v.synchronizer_ref
LEFT JOIN synchronizers s ON s.synchronizer_ref = v.synchronizer_ref
LEFT JOIN packages p ON p.package_id = v.package_id;
COMMENT ON VIEW ledger.vetted_packages IS 'One row per synchronizer and package that the participant has vetted, as of the last reading (it is read at an interval, not with the stream). A package that is not valid yet, or no longer, is here too. Empty where the server does not offer the list of vetted packages.
@graphql({"primary_key_columns": ["synchronizer_id", "package_id"], "foreign_keys": [{"local_columns": ["package_id"], "foreign_schema": "ledger", "foreign_table": "packages", "foreign_columns": ["package_id"]}]})';
COMMENT ON COLUMN ledger.vetted_packages.synchronizer_id IS 'The synchronizer. (synchronizer_id, package_id) is unique.';
COMMENT ON COLUMN ledger.vetted_packages.package_id IS 'The package.';
COMMENT ON COLUMN ledger.vetted_packages.package_name IS 'Its name; empty where the package has never been uploaded to the participant.';
COMMENT ON COLUMN ledger.vetted_packages.package_version IS 'Its version. Empty where package_name is empty.';
COMMENT ON COLUMN ledger.vetted_packages.valid_from IS 'The package may be used from this record time on, inclusive. NULL: no bound. Microseconds, UTC.';
COMMENT ON COLUMN ledger.vetted_packages.valid_until IS 'The package may be used until this record time, exclusive. NULL: no bound. Microseconds, UTC.';
COMMENT ON COLUMN ledger.vetted_packages.topology_serial IS 'Serial of the participant''s last vetting transaction on the synchronizer: the same for all packages there. It grows.';

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

CREATE VIEW ledger.vetting_changes WITH (security_invoker = true) AS
SELECT c.seq, c.seen_at, s.synchronizer_id, c.package_id, p.package_name, p.package_version, c.change, c.topology_serial,
       c.valid_from_before, c.valid_until_before, c.valid_from, c.valid_until
FROM vetting_changes c
LEFT JOIN synchronizers s ON s.synchronizer_ref = c.synchronizer_ref
LEFT JOIN packages p ON p.package_id = c.package_id;
COMMENT ON VIEW ledger.vetting_changes IS 'One row per change of a package between two readings of the vetted packages: it was vetted, unvetted, or got other bounds (valid_from, valid_until). A change that was undone between the two is not seen. In the first reading every package counts as vetted then.
@graphql({"primary_key_columns": ["seq", "synchronizer_id", "package_id"], "foreign_keys": [{"local_columns": ["package_id"], "foreign_schema": "ledger", "foreign_table": "packages", "foreign_columns": ["package_id"]}]})';
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

CREATE VIEW ledger.templates WITH (security_invoker = true) AS
SELECT d.package_id || ':' || d.module_name || ':' || d.entity_name AS template_id, d.package_id, c.package_name, c.package_version, d.module_name, d.entity_name,
       d.has_key, d.interfaces
FROM package_definitions d
JOIN package_contents c ON c.package_id = d.package_id
WHERE NOT d.is_interface;
COMMENT ON VIEW ledger.templates IS 'One row per template and version of its package, of the packages whose content is here: those that events named or that were vetted, and those that these refer to.
@graphql({"primary_key_columns": ["template_id"], "foreign_keys": [{"local_columns": ["package_id"], "foreign_schema": "ledger", "foreign_table": "packages", "foreign_columns": ["package_id"]}]})';
COMMENT ON COLUMN ledger.templates.template_id IS 'Package id, module and entity, as events name the template.';
COMMENT ON COLUMN ledger.templates.package_id IS 'Id of the package, a hash of its content.';
COMMENT ON COLUMN ledger.templates.package_name IS 'Name of the package, the same over its versions.';
COMMENT ON COLUMN ledger.templates.package_version IS 'Version of the package: numbers with dots between them. Two packages can have the same name and version.';
COMMENT ON COLUMN ledger.templates.module_name IS 'Module of the template, with dots.';
COMMENT ON COLUMN ledger.templates.entity_name IS 'Name of the template within its module.';
COMMENT ON COLUMN ledger.templates.has_key IS 'Whether contracts of the template have keys.';
COMMENT ON COLUMN ledger.templates.interfaces IS 'Ids of the interfaces that the template implements.';

CREATE VIEW ledger.interfaces WITH (security_invoker = true) AS
SELECT d.package_id || ':' || d.module_name || ':' || d.entity_name AS interface_id, d.package_id, c.package_name, c.package_version, d.module_name, d.entity_name,
       d.interfaces AS requires
FROM package_definitions d
JOIN package_contents c ON c.package_id = d.package_id
WHERE d.is_interface;
COMMENT ON VIEW ledger.interfaces IS 'One row per interface and version of its package, of the packages whose content is here.
@graphql({"primary_key_columns": ["interface_id"], "foreign_keys": [{"local_columns": ["package_id"], "foreign_schema": "ledger", "foreign_table": "packages", "foreign_columns": ["package_id"]}]})';
COMMENT ON COLUMN ledger.interfaces.interface_id IS 'Package id, module and entity, as events name the interface.';
COMMENT ON COLUMN ledger.interfaces.package_id IS 'Id of the package, a hash of its content.';
COMMENT ON COLUMN ledger.interfaces.package_name IS 'Name of the package.';
COMMENT ON COLUMN ledger.interfaces.package_version IS 'Version of the package.';
COMMENT ON COLUMN ledger.interfaces.module_name IS 'Module of the interface, with dots.';
COMMENT ON COLUMN ledger.interfaces.entity_name IS 'Name of the interface within its module.';
COMMENT ON COLUMN ledger.interfaces.requires IS 'Ids of the interfaces that whatever implements this one implements too.';

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

CREATE VIEW ledger.choices WITH (security_invoker = true) AS
SELECT h.package_id || ':' || h.module_name || ':' || h.entity_name AS of_id, d.is_interface AS of_interface, h.package_id, c.package_name, c.package_version,
       h.module_name, h.entity_name, h.choice, h.consuming, h.argument AS argument_type, h.result AS result_type
FROM package_choices h
JOIN package_definitions d ON d.package_id = h.package_id AND d.module_name = h.module_name AND d.entity_name = h.entity_name
JOIN package_contents c ON c.package_id = h.package_id;
COMMENT ON VIEW ledger.choices IS 'One row per choice of a template or an interface, and version of its package. The choices that a template has from its interfaces are those of the interfaces.
@graphql({"primary_key_columns": ["of_id", "choice"], "foreign_keys": [{"local_columns": ["package_id"], "foreign_schema": "ledger", "foreign_table": "packages", "foreign_columns": ["package_id"]}]})';
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

CREATE VIEW ledger.fields WITH (security_invoker = true) AS
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
