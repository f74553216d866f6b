package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// What analysts rely on: relation, then each column and its type. More columns are welcome; none of these may change.
var contractColumns = map[string]string{
	"updates": `ledger_offset bigint, update_id text, kind text, synchronizer_id text, record_time timestamptz, effective_at timestamptz,
		workflow_id text, command_id text, trace_parent text, trace_state text, external_transaction_hash bytea, paid_traffic_cost bigint`,
	"created_events": `ledger_offset bigint, node_id integer, origin text, contract_id text, template_id text, package_id text,
		package_name text, module_name text, entity_name text, representative_package_id text, payload jsonb, contract_key jsonb,
		contract_key_hash bytea, signatories text[], observers text[], witness_parties text[], created_at timestamptz, acs_delta boolean,
		created_event_blob bytea, workflow_id text, update_id text, synchronizer_id text, record_time timestamptz`,
	"archived_events": `ledger_offset bigint, node_id integer, contract_id text, template_id text, package_name text, module_name text,
		entity_name text, choice text, acting_parties text[], witness_parties text[], acs_delta boolean, implemented_interfaces text[],
		update_id text, synchronizer_id text, record_time timestamptz`,
	"exercised_events": `ledger_offset bigint, node_id integer, contract_id text, template_id text, package_name text, module_name text,
		entity_name text, interface_id text, choice text, choice_argument jsonb, exercise_result jsonb, acting_parties text[],
		consuming boolean, last_descendant_node_id integer, witness_parties text[], acs_delta boolean, implemented_interfaces text[],
		update_id text, synchronizer_id text, record_time timestamptz`,
	"interface_views": `ledger_offset bigint, node_id integer, contract_id text, interface_id text, package_name text, module_name text,
		entity_name text, view_value jsonb, status_code integer,
		status_message text, status_details jsonb, implementation_package_id text, update_id text, synchronizer_id text,
		record_time timestamptz`,
	"reassignments": `ledger_offset bigint, node_id integer, kind text, contract_id text, template_id text, package_name text,
		module_name text, entity_name text, reassignment_id text, source_synchronizer_id text, target_synchronizer_id text, submitter text, reassignment_counter bigint,
		assignment_exclusivity timestamptz, witness_parties text[], update_id text, synchronizer_id text, record_time timestamptz`,
	"topology_events": `ledger_offset bigint, node_id integer, kind text, party_id text, participant_id text, permission text,
		update_id text, synchronizer_id text, record_time timestamptz`,
	"active_contracts": `contract_id text, synchronizer_id text, template_id text, package_id text, package_name text, module_name text,
		entity_name text, payload jsonb, contract_key jsonb, signatories text[], observers text[], witness_parties text[],
		created_at timestamptz, created_offset bigint, activated_offset bigint, activated_node_id integer, reassignment_counter bigint`,
	"looked_up_contracts": `contract_id text, template_id text, package_name text, module_name text, entity_name text, payload jsonb,
		contract_key jsonb, signatories text[], observers text[], created_at timestamptz, looked_up_at timestamptz, status text`,
	"offset_checkpoints": `ledger_offset bigint, synchronizer_id text, record_time timestamptz`,
	"unknown_updates": `ledger_offset bigint, node_id integer, kind text, raw jsonb, update_id text, synchronizer_id text,
		record_time timestamptz`,
	"exact_payloads":     `stream text, ledger_offset bigint, node_id integer, interface_id text, seq bigint, field text, exact bytea`,
	"stream_checkpoints": `stream text, ledger_offset bigint, event_id text, updated_at timestamptz, record_time timestamptz`,
	"coverage":           `stream text, scope text, from_exclusive bigint, to_inclusive bigint`,
	"verifications": `stream text, from_exclusive bigint, to_inclusive bigint, verified_at timestamptz, result text, differences bigint,
		digest bytea, repaired_at timestamptz`,
	"packages": `package_id text, package_name text, package_version text`,
	"vetted_packages": `synchronizer_id text, package_id text, package_name text, package_version text, valid_from timestamptz,
		valid_until timestamptz, topology_serial integer`,
	"vetting_changes": `seq bigint, seen_at timestamptz, synchronizer_id text, package_id text, package_name text, package_version text,
		change text, topology_serial integer, valid_from_before timestamptz, valid_until_before timestamptz, valid_from timestamptz,
		valid_until timestamptz`,
	"transactions": `seq bigint, event_id text, update_id text, kind text, date timestamptz, domain_id text, offset_text text, round bigint,
		transaction_type text, unit_word text, extra jsonb`,
	"transfers": `seq bigint, event_id text, update_id text, date timestamptz, round bigint, sender text, sender_change_fee numeric,
		sender_change_amount numeric, sender_fee numeric, holding_fees numeric, input_amount numeric, input_app_reward_amount numeric,
		input_validator_reward_amount numeric, input_sv_reward_amount numeric, input_validator_faucet_amount numeric, description text,
		transfer_kind text, instruction_receiver text, instruction_amount numeric, instruction_cid text`,
	"transfer_receivers": `seq bigint, event_id text, ordinal integer, party text, amount numeric, receiver_fee numeric, net_amount numeric`,
	"balance_changes": `seq bigint, event_id text, ordinal integer, date timestamptz, round bigint, party text,
		change_to_initial_amount_as_of_round_zero numeric, change_to_holding_fees_rate numeric`,
	"mints":                         `seq bigint, event_id text, date timestamptz, round bigint, owner text, amount numeric`,
	"taps":                          `seq bigint, event_id text, date timestamptz, round bigint, owner text, amount numeric`,
	"aborted_transfer_instructions": `seq bigint, event_id text, date timestamptz, instruction_cid text, abort_kind text`,
	"unknown_transactions":          `seq bigint, event_id text, raw jsonb`,
	"party_transfers": `party text, direction text, counterparties text[], amount numeric, fee numeric, net_amount numeric, date timestamptz,
		round bigint, event_id text, description text, seq bigint, transfer_kind text`,
	"holdings": `owner text, instrument text, instrument_admin text, amount numeric, locked boolean, locked_until timestamptz,
		lock_holders text[], contract_id text, created_at timestamptz, activated_offset bigint, created_round bigint,
		holding_fee_rate numeric, source text, admin_signed boolean, package_name text, module_name text, entity_name text,
		synchronizer_id text`,
	"holding_totals": `owner text, instrument text, instrument_admin text, admin_signed boolean, amount numeric, locked_amount numeric,
		unlocked_amount numeric, contracts bigint`,
}

// The same of relations that are computed from others when they are read.
var computedColumns = map[string]string{
	"token_events": `ledger_offset bigint, node_id integer, party text, instrument text, instrument_admin text, admin_signed boolean, label text,
		counterparties text[], counterparty_amounts numeric[], amount numeric, created_amount numeric, archived_amount numeric,
		locked_amount numeric, created_holdings text[], archived_holdings text[], burned_amount numeric, minted_amount numeric, reason text,
		meta jsonb, standard text, choice text, choice_argument jsonb, exercise_result jsonb, instruction_id text, transfer jsonb, legs jsonb,
		record_time timestamptz, update_id text`,
	"token_transfers": `ledger_offset bigint, node_id integer, sender text, receiver text, instrument text, instrument_admin text,
		admin_signed boolean, amount numeric, reason text, standard text, choice text, instruction_id text, leg_id text,
		record_time timestamptz, update_id text`,
	"pending_instructions": `contract_id text, transfer_id text, pending boolean, status text, sender text, receiver text, instrument text,
		instrument_admin text, admin_signed boolean, amount numeric, requested_at timestamptz, execute_before timestamptz, reason text,
		waits_for jsonb, choice text, next_contract_id text, created_offset bigint, created_node_id integer, created_at timestamptz,
		ended_offset bigint, ended_node_id integer, ended_at timestamptz`,
}

// everyContract is all that analysts rely on.
func everyContract() map[string]string {
	all := maps.Clone(contractColumns)
	maps.Copy(all, computedColumns)
	return all
}

// Relations that are not about what the updates up to the watermark say.
var besideTheWatermark = []string{"stream_checkpoints", "packages", "vetted_packages", "vetting_changes", "transactions", "transfers",
	"transfer_receivers", "balance_changes", "mints", "taps", "aborted_transfer_instructions", "unknown_transactions",
	"party_transfers", "verifications"}

var contractFunctions = []string{"latest_offset", "oldest_offset", "state_floor", "verified_offset", "verified_seq"}

func TestContractColumns(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for relation, columns := range everyContract() {
		types := map[string]string{}
		for _, row := range d.Rows(`SELECT attname, replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz')
			FROM pg_attribute WHERE attrelid = to_regclass('ledger.' || $1) AND attnum > 0 AND NOT attisdropped`, relation) {
			name, kind, _ := strings.Cut(row, " ")
			types[name] = kind
		}
		for _, column := range strings.Split(columns, ",") {
			name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
			require.Equal(t, kind, types[name], "ledger.%s.%s", relation, name)
		}
	}
	for _, function := range contractFunctions {
		require.Equal(t, "bigint", d.Row("SELECT format_type(prorettype, NULL) FROM pg_proc WHERE oid = to_regprocedure($1)", "ledger."+function+"()"), function)
	}
	require.Empty(t, d.Rows(`SELECT attrelid::regclass || '.' || attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace IN ('ledger'::regnamespace, 'indexer'::regnamespace) AND relname NOT LIKE 'schema_version%' AND attnum > 0
		AND atttypid IN ('real'::regtype, 'double precision'::regtype, 'timestamp'::regtype, 'money'::regtype, 'json'::regtype)`), "inexact types")
}

func TestContractIsCommented(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	require.Empty(t, d.Rows(`
		SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname IN ('ledger', 'indexer') AND obj_description(oid) IS NULL
		UNION ALL
		SELECT c.oid::regclass::text FROM pg_class c WHERE relnamespace = 'ledger'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')
		AND coalesce(obj_description(c.oid, 'pg_class'), '') = ''
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

// Who was granted to read everything reads all of schema ledger, and nothing beneath.
func TestContractNeedsNoRightsBeneath(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.EveryKind(0)))
	d.becomeAnalyst()
	for relation := range everyContract() {
		_, err := d.Conn.Exec(t.Context(), "SELECT * FROM ledger."+relation)
		require.NoError(t, err, relation)
	}
	for _, function := range contractFunctions {
		_, err := d.Conn.Exec(t.Context(), "SELECT ledger."+function+"()")
		require.NoError(t, err, function)
	}
	_, err := d.Conn.Exec(t.Context(), "SELECT FROM indexer.updates")
	require.ErrorContains(t, err, "permission denied")
}

func (d *testDB) plan(query string) string {
	d.T.Helper()
	return strings.Join(d.Rows("EXPLAIN "+query), "\n")
}

// A query pays for what it asks for: a count reads no names, updates or payloads, and a search for a contract uses an
// index in every branch.
func TestContractQueriesReadWhatTheyNeed(t *testing.T) {
	t.Parallel()
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
	d.Exec("ANALYZE indexer.created, indexer.archived, indexer.active_contracts, indexer.party_lists, indexer.templates, indexer.synchronizers")
	for _, query := range []string{
		`SELECT a.contract_id, c.template_id, c.synchronizer_id, c.signatories, c.observers, c.witness_parties, c.payload FROM ledger.active_contracts a
			JOIN ledger.created_events c ON c.ledger_offset = a.activated_offset AND c.node_id = a.activated_node_id
			WHERE a.activated_offset BETWEEN 2000 AND 2020 AND a.synchronizer_id = 'sync::1'`,
		`SELECT c.template_id, c.signatories, a.entity_name, a.synchronizer_id, a.witness_parties FROM ledger.created_events c
			JOIN ledger.archived_events a USING (contract_id) WHERE c.ledger_offset BETWEEN 2000 AND 2020`,
	} {
		plan := d.plan(query)
		for _, partition := range []string{"created_p0", "archived_p0"} {
			require.NotContains(t, plan, "Seq Scan on "+partition, query)
		}
	}
}

// Everything shows facts up to the watermark, never beyond, and nothing before there is one.
func TestContractEndsAtTheWatermark(t *testing.T) {
	t.Parallel()
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
	_, err = d.leadTransactions(d.store()).AppendTransactions(t.Context(), ledger.TransactionsPosition{}, nil, storetest.BatchOf(storetest.EveryTransaction(t)))
	require.NoError(t, err)
	_, err = Audit.Sealer(l.store, l.Leader).SealUpdates(t.Context(), storetest.EveryKind(0)[0])
	require.NoError(t, err)
	for relation := range contractColumns {
		require.NotEqual(t, "0", d.Row("SELECT count(*) FROM ledger."+relation), relation)
	}
	require.Equal(t, []string{"1 2 true", "1 3 true"}, d.Rows("SELECT ledger_offset, node_id, coalesce(acs_delta, true) FROM ledger.archived_events ORDER BY 1, 2"))
	require.Equal(t, "2 update-2 sync::2", d.Row("SELECT ledger_offset, update_id, synchronizer_id FROM ledger.reassignments"))
	require.Equal(t, "1 update-1 sync::1", d.Row("SELECT ledger_offset, update_id, synchronizer_id FROM ledger.interface_views"))

	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
	for relation := range contractColumns {
		if !slices.Contains(besideTheWatermark, relation) {
			require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger."+relation), relation)
		}
	}
}
