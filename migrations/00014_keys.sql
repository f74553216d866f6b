-- Primary keys and references of the relations of schema ledger. Views have no keys, so tools read them from comments: these end in a line
-- that pg_graphql reads. docs/relations.md and its picture are made from it too.
-- A relation without a line has no columns that are unique and never NULL. The row that a reference names may be missing: rows of a
-- snapshot have no update, and a contract's creation need not be stored.

-- +goose Up

DO $$
DECLARE
    views   name := (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'ledger.updates'::regclass);
    one     record;
BEGIN
    FOR one IN
        WITH keys (relation, columns) AS (VALUES
            ('updates', 'ledger_offset'), ('synchronizers', 'synchronizer_id'), ('created_events', 'ledger_offset, node_id'), ('archived_events', 'ledger_offset, node_id'),
            ('exercised_events', 'ledger_offset, node_id'), ('interface_views', 'ledger_offset, node_id, ordinal'),
            ('reassignments', 'ledger_offset, node_id'), ('topology_events', 'ledger_offset, node_id'), ('events', 'ledger_offset, node_id'),
            ('active_contracts', 'activated_offset, activated_node_id'), ('active_events', 'ledger_offset, node_id'), ('active_counts', 'template_id, package_name'), ('template_numbers', 'template_number'), ('contracts', 'contract_id'),
            ('contract_lifetimes', 'active_from, active_from_node_id'), ('looked_up_contracts', 'contract_id'),
            ('holdings', 'contract_id'), ('holding_lifetimes', 'activated_offset, activated_node_id'),
            ('transactions', 'seq'), ('transfers', 'seq'), ('transfer_receivers', 'seq, ordinal'), ('balance_changes', 'seq, ordinal'),
            ('mints', 'seq'), ('taps', 'seq'), ('aborted_transfer_instructions', 'seq'), ('unknown_transactions', 'seq'),
            ('party_transfers', 'seq, party, direction'), ('parties', 'party'), ('hosted_parties', 'party'), ('packages', 'package_id'), ('templates', 'template_id'),
            ('interfaces', 'interface_id'), ('choices', 'of_id, choice'), ('typed_views', 'view_schema, view_name, column_name'), ('vetted_packages', 'synchronizer_id, package_id'),
            ('vetting_changes', 'seq, synchronizer_id, package_id'), ('offset_checkpoints', 'ledger_offset, synchronizer_id'),
            ('stream_checkpoints', 'stream'), ('coverage', 'stream, scope, from_exclusive'), ('rewrites', 'rewrite'),
            ('verifications', 'stream, from_exclusive')
        ), refs (relation, columns, other, other_columns) AS (VALUES
            ('created_events', 'template_number', 'template_numbers', 'template_number'),
            ('contract_lifetimes', 'template_number', 'template_numbers', 'template_number'),
            ('created_events', 'ledger_offset', 'updates', 'ledger_offset'), ('created_events', 'contract_id', 'contracts', 'contract_id'),
            ('archived_events', 'ledger_offset', 'updates', 'ledger_offset'), ('archived_events', 'contract_id', 'contracts', 'contract_id'),
            ('exercised_events', 'ledger_offset', 'updates', 'ledger_offset'), ('exercised_events', 'contract_id', 'contracts', 'contract_id'),
            ('interface_views', 'ledger_offset, node_id', 'created_events', 'ledger_offset, node_id'),
            ('reassignments', 'ledger_offset', 'updates', 'ledger_offset'), ('reassignments', 'contract_id', 'contracts', 'contract_id'),
            ('topology_events', 'ledger_offset', 'updates', 'ledger_offset'),
            ('events', 'ledger_offset', 'updates', 'ledger_offset'), ('events', 'contract_id', 'contracts', 'contract_id'),
            ('active_contracts', 'activated_offset, activated_node_id', 'created_events', 'ledger_offset, node_id'),
            ('active_contracts', 'contract_id', 'contracts', 'contract_id'),
            ('active_events', 'ledger_offset, node_id', 'created_events', 'ledger_offset, node_id'),
            ('contract_lifetimes', 'active_from, active_from_node_id', 'created_events', 'ledger_offset, node_id'),
            ('contract_lifetimes', 'contract_id', 'contracts', 'contract_id'),
            ('holdings', 'contract_id', 'contracts', 'contract_id'),
            ('holding_lifetimes', 'contract_id', 'contracts', 'contract_id'),
            ('transactions', 'update_id', 'updates', 'update_id'),
            ('transfers', 'seq', 'transactions', 'seq'), ('mints', 'seq', 'transactions', 'seq'), ('taps', 'seq', 'transactions', 'seq'),
            ('aborted_transfer_instructions', 'seq', 'transactions', 'seq'), ('unknown_transactions', 'seq', 'transactions', 'seq'),
            ('transfer_receivers', 'seq', 'transfers', 'seq'), ('balance_changes', 'seq', 'transfers', 'seq'),
            ('party_transfers', 'seq', 'transfers', 'seq'),
            ('templates', 'package_id', 'packages', 'package_id'), ('interfaces', 'package_id', 'packages', 'package_id'),
            ('choices', 'package_id', 'packages', 'package_id'), ('vetted_packages', 'package_id', 'packages', 'package_id'),
            ('vetting_changes', 'package_id', 'packages', 'package_id')
        )
        SELECT k.relation, jsonb_strip_nulls(jsonb_build_object('primary_key_columns', string_to_array(k.columns, ', '), 'foreign_keys', (
            SELECT jsonb_agg(jsonb_build_object('local_columns', string_to_array(r.columns, ', '), 'foreign_schema', views,
                'foreign_table', r.other, 'foreign_columns', string_to_array(r.other_columns, ', ')) ORDER BY r.other DESC, r.columns)
            FROM refs r WHERE r.relation = k.relation))) AS directive
        FROM keys k
    LOOP
        EXECUTE format('COMMENT ON VIEW %I.%I IS %L', views, one.relation,
            obj_description(format('%I.%I', views, one.relation)::regclass, 'pg_class') || E'\n@graphql(' || one.directive || ')');
    END LOOP;
END
$$;
