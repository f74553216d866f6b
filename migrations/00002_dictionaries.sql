-- Dictionaries: long names and lists of parties are stored once, before the rows that refer to them by number. positions
-- and template_interfaces are written likewise.

-- +goose Up

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

-- The names of what was counted or summed by number: to group many rows by names takes a third as long again.
CREATE VIEW ledger.template_numbers WITH (security_invoker = true) AS
SELECT t.template_ref AS template_number, t.template_id, t.package_id, t.package_name, t.module_name, t.entity_name FROM templates t;
COMMENT ON VIEW ledger.template_numbers IS 'The names of each template_number: of every template that something stored names, or named. To count or sum many events or lifetimes by template, group them by template_number first, and join the few sums with this.
@graphql({"primary_key_columns": ["template_number"]})';
COMMENT ON COLUMN ledger.template_numbers.template_number IS 'As in ledger.created_events. Unique.';
COMMENT ON COLUMN ledger.template_numbers.template_id IS 'Template as the server sent it, package-id:Module:Entity.';
COMMENT ON COLUMN ledger.template_numbers.package_id IS 'The part of template_id before the first colon.';
COMMENT ON COLUMN ledger.template_numbers.package_name IS 'Name of the package, the same over its releases. A template has a number for each release: add up.';
COMMENT ON COLUMN ledger.template_numbers.module_name IS 'Module of the template.';
COMMENT ON COLUMN ledger.template_numbers.entity_name IS 'Name of the template.';

CREATE TABLE synchronizers (
    synchronizer_ref integer NOT NULL,
    synchronizer_id  text NOT NULL,
    PRIMARY KEY (synchronizer_ref),
    UNIQUE (synchronizer_id)
);
COMMENT ON TABLE synchronizers IS 'Each synchronizer id that was served.';

CREATE VIEW ledger.synchronizers WITH (security_invoker = true) AS SELECT s.synchronizer_id, s.synchronizer_ref AS number FROM synchronizers s;
COMMENT ON VIEW ledger.synchronizers IS 'One row per synchronizer that something stored names.
@graphql({"primary_key_columns": ["synchronizer_id"]})';
COMMENT ON COLUMN ledger.synchronizers.synchronizer_id IS 'The synchronizer. Unique.';
COMMENT ON COLUMN ledger.synchronizers.number IS 'In which order they were first seen.';

-- Lists of parties are a third of a contract's bytes, and mostly the same as those of other contracts.
CREATE TABLE party_lists (
    party_list_ref integer NOT NULL CHECK (party_list_ref > 0),
    parties        text[]  NOT NULL,
    PRIMARY KEY (party_list_ref),
    -- A unique btree would refuse a list of more than 2.7 kB.
    CONSTRAINT party_lists_once EXCLUDE USING hash (parties WITH =)
);
COMMENT ON TABLE party_lists IS 'Each list of parties that was served, sorted by its bytes, each party once. Written before the rows that refer to it, like the other dictionaries, and kept when these rows are removed.';
