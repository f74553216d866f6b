package store

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// Relations that are not about what the updates up to the watermark say.
var besideTheWatermark = []string{"stream_checkpoints", "packages", "vetted_packages", "vetting_changes", "transactions", "transfers",
	"transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions", "unknown_transactions",
	"party_transfers", "verifications", "synchronizers", "template_numbers", "parties"}

// Relations of what packages say, of what was written again or redacted, of what moved, by owners that can be read, and
// of who is hosted: the test that asks for rows has none of these.
var withoutRows = []string{
	"templates", "interfaces", "choices", "fields", "typed_views", "rewrites", "redactions", "token_events", "token_transfers", "pending_instructions",
	"rewards", "burns", "traffic_purchases", "mining_rounds", "amulet_sums", "hosted_parties",
}

var contractFunctions = []string{"latest_offset", "oldest_offset", "state_floor", "verified_offset", "verified_seq"}

// relations are those of schema ledger. What their columns are is published in docs/relations.md, which the tests of
// internal/app hold against the catalog.
func (d *testDB) relations() []string {
	d.T.Helper()
	list := d.Rows("SELECT relname::text FROM pg_class WHERE relnamespace = 'ledger'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')")
	require.Greater(d.T, len(list), 30)
	return list
}

func TestContractTypes(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	for _, function := range contractFunctions {
		require.Equal(t, "bigint", d.Row("SELECT format_type(prorettype, NULL) FROM pg_proc WHERE oid = to_regprocedure($1)", "ledger."+function+"()"), function)
	}
	require.Empty(t, d.Rows(`SELECT attrelid::regclass || '.' || attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace IN ('ledger'::regnamespace, 'indexer'::regnamespace) AND relname NOT LIKE 'schema_version%' AND attnum > 0
		AND atttypid IN ('real'::regtype, 'double precision'::regtype, 'timestamp'::regtype, 'money'::regtype, 'json'::regtype)`), "inexact types")
}

func TestContractIsCommented(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.Empty(t, d.Rows(`
		SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname IN ('ledger', 'indexer') AND obj_description(oid) IS NULL
		UNION ALL
		SELECT c.oid::regclass::text FROM pg_class c WHERE relnamespace = 'ledger'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')
		AND coalesce(obj_description(c.oid, 'pg_class'), '') = ''
		UNION ALL
		SELECT c.oid::regclass::text FROM pg_class c WHERE relnamespace = 'indexer'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
		AND relname <> 'schema_version' AND coalesce(obj_description(c.oid, 'pg_class'), '') = ''
		UNION ALL
		SELECT c.oid::regclass || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE relnamespace = 'ledger'::regnamespace AND relkind IN ('r', 'v', 'm', 'p') AND coalesce(col_description(c.oid, a.attnum), '') = ''
		UNION ALL
		SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'ledger'::regnamespace AND coalesce(obj_description(p.oid, 'pg_proc'), '') = ''
		ORDER BY 1`), "without COMMENT")
}

// becomeAnalyst continues as a role that was granted to read everything.
func (d *testDB) becomeAnalyst() {
	d.T.Helper()
	role := d.Row("SELECT current_database()") + "_analyst"
	d.Exec("CREATE ROLE " + role)
	d.T.Cleanup(func() {
		for _, statement := range []string{"RESET ROLE", "DROP OWNED BY " + role, "DROP ROLE " + role} {
			_, err := d.Conn.Exec(context.Background(), statement)
			require.NoError(d.T, err, statement)
		}
	})
	_, err := d.store().Grant(d.T.Context(), Reader{Role: role, AllParties: true})
	require.NoError(d.T, err)
	d.Exec("SET ROLE " + role)
}

func (d *testDB) plan(query string) string {
	d.T.Helper()
	return strings.Join(d.Rows("EXPLAIN "+query), "\n")
}

// A query pays for what it asks for: a count reads no names, updates or payloads, and a search for a contract uses an
// index in every branch.
func TestContractQueriesReadWhatTheyNeed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, append(storetest.EveryKind(0), ledger.Page{From: 4, To: 5})))
	for query, unneeded := range map[string][]string{
		"SELECT count(*) FROM ledger.active_contracts":                                          {"templates", "synchronizers", "updates", "created", "party_lists"},
		"SELECT count(*) FROM ledger.created_events":                                            {"templates", "synchronizers", "updates", "party_lists"},
		"SELECT count(*) FROM ledger.archived_events":                                           {"templates", "synchronizers", "updates", "party_lists"},
		"SELECT count(*) FROM ledger.exercised_events":                                          {"templates", "synchronizers", "updates", "party_lists"},
		"SELECT count(*) FROM ledger.interface_views":                                           {"synchronizers", "updates", "template_interfaces"},
		"SELECT count(*) FROM ledger.reassignments":                                             {"templates", "synchronizers", "updates", "party_lists"},
		"SELECT count(*) FROM ledger.topology_events":                                           {"synchronizers", "updates"},
		"SELECT count(*) FROM ledger.updates":                                                   {"synchronizers"},
		"SELECT count(*) FROM ledger.looked_up_contracts":                                       {"templates"},
		"SELECT count(*) FROM ledger.vetted_packages":                                           {"synchronizers", "packages"},
		"SELECT count(*) FROM ledger.vetting_changes":                                           {"synchronizers", "packages"},
		"SELECT package_name, count(*) FROM ledger.active_contracts GROUP BY 1":                 {"synchronizers", "updates", "created"},
		"SELECT template_id, payload FROM ledger.created_events":                                {"synchronizers", "updates", "party_lists"},
		"SELECT date_trunc('day', record_time), count(*) FROM ledger.created_events GROUP BY 1": {"templates", "synchronizers", "updates"},
	} {
		plan := d.plan(query)
		for _, relation := range unneeded {
			require.NotContains(t, plan, " on "+relation, query)
			require.NotContains(t, plan, " "+relation+"_p", query)
		}
	}

	d.Exec("SET enable_seqscan = off")
	for _, relation := range []string{"created_events", "archived_events", "exercised_events", "reassignments", "active_contracts", "looked_up_contracts"} {
		require.NotContains(t, d.plan("SELECT contract_id FROM ledger."+relation+" WHERE contract_id = 'x'"), "Seq Scan", relation)
	}
	for _, relation := range []string{"updates", "created_events", "archived_events", "exercised_events", "interface_views", "reassignments", "topology_events", "unknown_updates"} {
		require.NotContains(t, d.plan("SELECT ledger_offset FROM ledger."+relation+" WHERE ledger_offset = 1"), "Seq Scan", relation)
	}
}

// Two relations are joined by their indexes where few rows are asked for: neither is read whole.
func TestContractRelationsAreJoinedByIndex(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, append(storetest.EveryKind(0), storetest.OneCreation(4, 20_000)...)))
	d.Exec("INSERT INTO indexer.party_lists SELECT 1000 + i, ARRAY['party-' || i] FROM generate_series(1, 2000) i")
	d.Exec(`INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, synchronizer_ref, acs_delta, signatories_ref)
		SELECT 1000 + i, 0, 'transaction', 'c' || i, 1, 1, true, 1001 + i % 2000 FROM generate_series(1, 10000) i`)
	d.Exec(`INSERT INTO indexer.archived (ledger_offset, node_id, contract_id, template_ref, synchronizer_ref, witness_parties_ref)
		SELECT 1000 + i, 1, 'c' || i - 500, 1, 1, 1001 + i % 2000 FROM generate_series(1000, 10000) i`)
	d.Exec(`INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
		SELECT 'c' || i, 1, 1, 1000 + i, 0, 0 FROM generate_series(1, 10000) i`)
	d.Exec(`INSERT INTO indexer.reassignments (ledger_offset, node_id, kind, contract_id, template_ref, synchronizer_ref, reassignment_id, source_ref, target_ref, submitter, reassignment_counter)
		SELECT 1000 + i, 2, 'unassigned', 'c' || i, 1, 1, 'r' || i, 1, 2, '', 1 FROM generate_series(1, 10000) i`)
	d.Exec("ANALYZE indexer.created, indexer.archived, indexer.active_contracts, indexer.party_lists, indexer.templates, indexer.synchronizers, indexer.reassignments")
	for _, query := range []string{
		`SELECT a.contract_id, c.template_id, c.synchronizer_id, c.signatories, c.observers, c.witness_parties, c.payload FROM ledger.active_contracts a
			JOIN ledger.created_events c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
			WHERE a.activated_offset BETWEEN 2000 AND 2020 AND a.synchronizer_id = 'sync::1'`,
		`SELECT c.template_id, c.signatories, a.entity_name, a.synchronizer_id, a.witness_parties FROM ledger.created_events c
			JOIN ledger.archived_events a USING (contract_id) WHERE c.ledger_offset BETWEEN 2000 AND 2020`,
		"SELECT e.kind, e.entity_name FROM ledger.created_events c JOIN ledger.events e USING (contract_id) WHERE c.ledger_offset BETWEEN 2000 AND 2020",
		`SELECT p.kind FROM ledger.events c JOIN ledger.events p ON p.ledger_offset = c.ledger_offset AND p.node_id = c.parent_node_id
			WHERE c.contract_id = 'c77'`,
	} {
		plan := d.plan(query)
		for _, partition := range []string{"created_p0", "archived_p0", "reassignments_p0"} {
			require.NotContains(t, plan, "Seq Scan on "+partition, query)
		}
	}
}

// What is asked of one template begins with that template's contracts, whatever the number of its versions: no relation
// is read whole, and none again for each version.
func TestContractsOfATemplateAreReadByIndex(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, append(storetest.EveryKind(0), storetest.OneCreation(4, 20_000)...)))
	d.Exec(`INSERT INTO indexer.templates (template_ref, template_id, package_id, package_name, module_name, entity_name)
		SELECT 100 + i, format('%s:M%s:T%s', i, i / 5, i / 5), i::text, 'p' || i / 5, 'M' || i / 5, 'T' || i / 5 FROM generate_series(0, 99) i`)
	d.Exec(`INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref, synchronizer_ref, acs_delta)
		SELECT 1000 + i, 0, 'transaction', 'c' || i, 100 + i % 100, 1, true FROM generate_series(1, 10000) i`)
	d.Exec(`INSERT INTO indexer.active_contracts (contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
		SELECT 'c' || i, 1, 100 + i % 100, 1000 + i, 0, 0 FROM generate_series(5001, 10000) i`)
	d.Exec(`INSERT INTO indexer.lifetimes (deactivated_offset, contract_id, synchronizer_ref, template_ref, activated_offset, activated_node_id, reassignment_counter)
		SELECT 11000 + i, 'c' || i, 1, 100 + i % 100, 1000 + i, 0, 0 FROM generate_series(1, 5000) i`)
	d.Exec("ANALYZE indexer.created, indexer.active_contracts, indexer.lifetimes, indexer.templates")
	d.Exec("VACUUM indexer.active_contracts")
	const template = "package_name = 'p7' AND module_name = 'M7' AND entity_name = 'T7'"
	for query, wanted := range map[string]struct{ rows, plan string }{
		"SELECT c.contract_id FROM ledger.created_events c JOIN ledger.active_events a USING (ledger_offset, node_id, template_number) WHERE " + template: {
			"250", "Index Only Scan using active_contracts_template"},
		"SELECT contract_id FROM ledger.contract_lifetimes WHERE active_before > 15930 AND " + template: {"255", "Index Cond: (deactivated_offset > 15930)"},
		"SELECT generate_series(1, contracts) FROM ledger.active_counts WHERE " + template:              {"250", ""},
	} {
		plan := d.plan(query)
		require.Contains(t, plan, wanted.plan, query)
		require.NotContains(t, plan, "Seq Scan on created_p0", query)
		require.Equal(t, wanted.rows, d.Row("SELECT count(*) FROM ("+query+") x"), query)
	}
	// Names go together: a condition on all of them is met by as many rows as one on the template's name alone.
	require.Regexp(t, `rows=5 `, d.plan("SELECT FROM indexer.templates WHERE "+template))
}

// Everything shows facts up to the watermark, never beyond, and nothing before there is one.
func TestContractEndsAtTheWatermark(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	page := ledger.Page{From: 4, To: 5, Checkpoints: []ledger.OffsetCheckpoint{{Offset: 5, Times: []ledger.SynchronizerTime{
		{SynchronizerID: "sync::1", RecordTime: storetest.Time("2025-01-02T03:04:05Z")},
	}}}}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	require.NoError(t, l.SaveLookups(t.Context(), []ledger.Lookup{{ContractID: "unseen", At: time.Now(), Status: ledger.LookupNotFound}}))
	_, err := l.SaveVettedPackages(t.Context(), []ledger.VettedPackages{vettedOn("sync::1", 1, "pkg-1")})
	require.NoError(t, err)
	_, err = d.leadTransactions(d.store()).AppendTransactions(t.Context(), ledger.TransactionsPosition{}, nil, storetest.EveryTransaction(t))
	require.NoError(t, err)
	err = Audit.Stored(l.store).SealUpdates(t.Context(), l.Leader, storetest.EveryKind(0)[0])
	require.NoError(t, err)
	relations := d.relations()
	for _, relation := range relations {
		require.Equal(t, slices.Contains(withoutRows, relation), d.Row("SELECT count(*) FROM ledger."+relation) == "0", relation)
	}
	require.Equal(t, []string{"1 2 true", "1 3 true"}, d.Rows("SELECT ledger_offset, node_id, coalesce(acs_delta, true) FROM ledger.archived_events ORDER BY 1, 2"))
	require.Equal(t, "2 update-2 sync::2", d.Row("SELECT ledger_offset, update_id, synchronizer_id FROM ledger.reassignments"))
	require.Equal(t, "1 update-1 sync::1", d.Row("SELECT ledger_offset, update_id, synchronizer_id FROM ledger.interface_views"))

	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
	for _, relation := range relations {
		if !slices.Contains(besideTheWatermark, relation) {
			require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger."+relation), relation)
		}
	}
}
