package store

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// newPQS is a database with schema pqs, and a ledger of a few contracts from offset 10 to 100: c1 lives, c2 is
// transient at 20, c3 ends at 50.
func newPQS(t *testing.T) *testDB {
	t.Helper()
	d := newDatabase(t)
	s := d.store()
	l := d.leadUpdates(s)
	d.snapshot(l, 10, storetest.ActiveEntry(3, 0, "c0", "sync::1", 0))
	u20, u30, u50, u100 := storetest.NewUpdate(20, "sync::1"), storetest.NewUpdate(30, "sync::1"), storetest.NewUpdate(50, "sync::1"), storetest.NewUpdate(100, "sync::1")
	transient := storetest.Creation(0, "c2")
	transient.ACSDelta = new(false)
	u20.Created = []ledger.CreatedEvent{transient}
	u20.Exercised = []ledger.ExercisedEvent{storetest.Exercise(1, "c2", true, new(false))}
	other := storetest.Creation(2, "c4")
	other.TemplateID, other.PackageName = "pkg-9:Other:Asset", "another"
	u30.Created = []ledger.CreatedEvent{storetest.Creation(0, "c1"), storetest.Creation(1, "c3"), other}
	u30.Exercised = []ledger.ExercisedEvent{storetest.Exercise(3, "unseen", false, new(false))}
	u50.Exercised = []ledger.ExercisedEvent{storetest.Exercise(0, "c3", true, new(true))}
	u100.Created = []ledger.CreatedEvent{storetest.Creation(0, "c5")}
	d.append(l, 10, u20, u30, u50, u100)
	require.NoError(t, s.EnablePQS(t.Context(), "pqs"))
	d.Exec("SET search_path = pqs")
	return d
}

// Answers and errors at the edges are those of the Participant Query Store, but for where it is wrong.
func TestPQSAtTheEdges(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs a hundred statements")
	d := newPQS(t)
	const T = "'Main:Asset'"
	for _, c := range []struct{ query, want string }{
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active(%s)", "c0 c1 c5"},
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active(%s, NULL)", "c0 c1 c5"},
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active(%s, 30)", "c0 c1 c3"},
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active(NULL, '30')", "c0 c1 c3 c4"},
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active(\"offset\" := 10)", "c0"},
		{"SELECT string_agg(contract_id || created_at_offset, ' ' ORDER BY contract_id) FROM creates(%s, NULL, NULL)", "c010 c130 c220 c330 c5100"},
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM creates(%s, '30', '70')", "c1 c3"},
		{"SELECT count(*) FROM creates(%s, 60, 40)", "0"},
		{"SELECT string_agg(contract_id || archive_event_id || life_ix || witnesses::text, ' ' ORDER BY contract_id) FROM archives(%s)", "c2(20,1)empty{} c3(50,0)[30,50){}"},
		{"SELECT contract_id FROM creates() WHERE create_event_id = (20::bigint, 0)", "c2"},
		{"SELECT string_agg(contract_id || coalesce(a.signatories::text, ' NULL'), ' ' ORDER BY contract_id) FROM exercises('Transfer') a", "c2{alice} c3{alice} unseen NULL"},
		{"SELECT count(*) FROM exercises('asset:Main:Asset:Transfer', 30, 30)", "1"},
		{"SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active('pkg-1:Main:Asset')", "c0 c1 c5"},
		{"SELECT string_agg(contract_id, ' ') FROM active('pkg-9:Other:Asset')", "c4"},
		{"SELECT count(*) FROM exercises('pkg-1:Main:Asset:Transfer', 30, 30)", "1"},
		{"SELECT __contract_tpe4name('pkg-1:Main:Asset') = __contract_tpe4name('asset:Main:Asset')", "true"},
		{"SELECT string_agg(a.stakeholders::text, '') FROM active(%s, 10) a", "{alice}"},
		{"SELECT count(*) FROM summary_transients(80, 100)", "0"},
		{"SELECT count FROM summary_transients(NULL, NULL)", "2"}, // and c3
		{"SELECT archived_at_offset FROM lookup_contract('c3', %s)", "50"},
		{"SELECT count(*) FROM lookup_exercises('c3')", "1"},
		{"SELECT validate_offset_exists(NULL)", "<nil>"},
		{"SELECT pruned_offset(), oldest_offset(), latest_offset()", "<nil> 10 100"},
		{"SELECT \"offset\", ix FROM latest_checkpoint()", "100 100"},
		{"SELECT set_latest(NULL), set_oldest(NULL)", "100 10"},
		{"SELECT nearest_offset('2024-01-01 00:00:00+0'), nearest_offset('2026-01-01 00:03:30'), nearest_offset(now() + interval '1 day'), nearest_offset('infinity'::timestamptz)", "<nil> 100 100 100"},
		{"SELECT count(*) FROM prune_archived_to_offset(nearest_offset(timestamptz '2024-01-01Z'))", "0"},
		{"SELECT * FROM prune_archived_to_offset(50)", "<nil> 0 0 0 0"},
		{"SELECT * FROM validate_reset_offset(50)", "50 1"},
		{"SELECT count(*) FROM transactions", "4"},
		{"SELECT template_id, payload->>'amount', stakeholders FROM active_contracts WHERE contract_id = 'c5'", "Main:Asset 1.0 [alice]"},
		{"SELECT string_agg(event_type, ' ' ORDER BY event_id) FROM events WHERE contract_id = 'c3'", "create archive"},
		{"SELECT count(*) FROM contracts(%s) WHERE archived_at IS NOT NULL", "0"}, // without an effective time
		{"SELECT count(*) FROM __contracts(%s)", "5"},
	} {
		query := strings.ReplaceAll(c.query, "%s", "'asset:Main:Asset'")
		require.Equal(t, c.want, d.Row(query), query)
	}
	for query, message := range map[string]string{
		"SELECT FROM active('asset:Main:Asset', 101)":  "Offset 101 is after the latest known offset 100",
		"SELECT FROM active('asset:Main:Asset', 9)":    "Offset 9 is before the oldest known offset 10",
		"SELECT FROM creates('Main:Asset', 0::bigint)": "Offset 0 is before the oldest known offset 10",
		"SELECT FROM archives(from_offset := 9)":       "Offset 9 is before the oldest known offset 10",
		"SELECT FROM active('Nope')":                   "Identifier not found: Nope",
		"SELECT FROM active('pkg-3:Main:Asset')":       "Identifier not found: pkg-3:Main:Asset",
		"SELECT FROM active('#asset:Main:Asset')":      "Identifier not found: #asset:Main:Asset",
		"SELECT FROM active('')":                       "Identifier not found: ",
		"SELECT FROM active('%')":                      "Identifier not found: %",
		"SELECT FROM active('Asset')":                  "Ambiguous identifier: Asset (another:Other:Asset, asset:Main:Asset)",
		"SELECT FROM exercises(" + T + ")":             "Identifier not found: Main:Asset",
		"SELECT validate_offset_exists(101)":           "Illegal offset 101 is beyond upper bounds of contiguous history",
		"SELECT validate_offset_exists(5)":             "Illegal offset 5 is outside lower bounds of contiguous history",
		"SELECT prune_to_offset(5)":                    "Illegal pruning offset 5 is outside lower bounds of contiguous history",
		"SELECT prune_to_offset(100)":                  "Illegal pruning offset 100 coincides with latest consistent checkpoint of contiguous history",
		"SELECT prune_to_offset(101)":                  "Illegal pruning offset 101 is beyond upper bounds of contiguous history",
		"SELECT redact_contract('c1', 'why')":          "Cannot redact contract c1 because it is active",
		"SELECT redact_contract('nobody', 'why')":      "Cannot find contract nobody",
		"SELECT redact_exercise('(42,0)', 'why')":      "Cannot find exercise with event ID (42,0)",
		"CALL create_index_for_contract('n', 'Nope', 'x); DROP TABLE indexer.created; --', 'btree')": "Identifier not found: Nope",
	} {
		_, err := d.Conn.Exec(t.Context(), query)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, query)
		require.Equal(t, "P0001 "+message, pgErr.Code+" "+pgErr.Message, query)
	}
	d.Exec("CALL create_index_for_contract('n', 'Main:Asset', 'x); DROP TABLE indexer.created; --', 'btree')")
	const print = "SELECT print_create_index_for_contract('n', 'Main:Asset', $1, 'hash')"
	for expression, want := range map[string]string{
		"(payload->'wallet'->>'holder')": "'wallet.holder'", "((payload->>'quantity')::decimal)": "'quantity'", "x); DROP TABLE created; --": "'FIELD'",
		"payload->>'$(reboot)'": "'FIELD'", "payload->>'a''; reboot'": "'a'",
	} {
		require.Equal(t, "-- in a shell: indexer index create 'asset:Main:Asset' "+want, d.Row(print, expression), expression)
	}
	require.Equal(t, "-- in a shell: indexer index create 'asset:Main:Asset' 'FIELD'", d.Row(print, nil))
	pqsIsClosed(t, d)
	pqsNamesTheLikeliest(t, d)
	pqsUsesIndexesOfFields(t, d)
	pqsShowsWhatWasRedacted(t, d)
	pqsTakesOffsetsOfASession(t, d) // the last one, which sets nothing any more
}

// A name that is not known is answered with those that are like it, the most alike first; with all where there are few.
func pqsNamesTheLikeliest(t *testing.T, d *testDB) {
	t.Helper()
	hint := func(query string) string {
		t.Helper()
		_, err := d.Conn.Exec(t.Context(), query)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, query)
		require.Contains(t, pgErr.Message, "Identifier not found: ")
		return pgErr.Hint
	}
	require.Contains(t, hint("SELECT FROM active('Main:Asett')"), "There are: another:Other:Asset, asset:Main:Asset. A name is")
	require.Contains(t, hint("SELECT FROM exercises('Trasnfer')"), "There are: asset:Main:Asset:Transfer. A name is")
	d.Exec(`INSERT INTO indexer.templates (template_ref, template_id, package_id, package_name, module_name, entity_name)
		SELECT 100 + n, 'pkg-8:Lib.Other:Unlike' || chr(64 + n), 'pkg-8', 'lib', 'Lib.Other', 'Unlike' || chr(64 + n) FROM generate_series(1, 12) n`)
	require.Contains(t, hint("SELECT FROM active('aset')"), "There are: another:Other:Asset, asset:Main:Asset. A name is", "of many only those that are like it")
	require.Contains(t, hint("SELECT FROM active('UnlikeCX')"), "There are: lib:Lib.Other:UnlikeC, ", "the most alike first")
	require.Contains(t, hint("SELECT FROM active('Zzz')"), "SELECT template_fqn FROM __contract_tpe", "none is like it")
}

// What the Participant Query Store has indexes for is found by those of fields, with the same expression.
func pqsUsesIndexesOfFields(t *testing.T, d *testDB) {
	t.Helper()
	_, _, err := d.store().CreateFieldIndex(t.Context(), ownerIndex(), false)
	require.NoError(t, err)
	d.Exec("SET enable_seqscan = off")
	require.Regexp(t, `Index Scan (using|on) created_p\d+_field_`, d.plan("SELECT contract_id FROM creates('Main:Asset') WHERE payload->'wallet'->>'owner' = 'alice'"))
}

// What a session is told bounds every function and view, until it is told otherwise, or rolls back.
func pqsTakesOffsetsOfASession(t *testing.T, d *testDB) {
	t.Helper()
	bounds := func() string { d.T.Helper(); return d.Row("SELECT oldest_offset(), latest_offset()") }
	require.Equal(t, "30", d.Row("SELECT set_latest(30)"))
	require.Equal(t, "10 30", bounds())
	require.Equal(t, "c0 c1 c3 c4", d.Row("SELECT string_agg(contract_id, ' ' ORDER BY contract_id) FROM active()"))
	require.Equal(t, "4", d.Row("SELECT count(*) FROM active_contracts"))
	require.Equal(t, "2", d.Row("SELECT count(*) FROM transactions"))
	require.Empty(t, d.Rows("SELECT FROM lookup_contract('c5')"))
	require.Equal(t, "3", d.Row("SELECT count(*) FROM __exercises('Transfer')"), "as in the table")
	d.requireError("Offset 50 is after the latest known offset 30", "SELECT FROM active('Main:Asset', 50)")
	require.Equal(t, "80", d.Row("SELECT set_oldest(80)"))
	require.Equal(t, "3", d.Row("SELECT count(*) FROM __exercises('asset:Main:Asset:Transfer')"))
	d.requireError("Offset 80 is after the latest known offset 30", "SELECT FROM creates('Main:Asset')")
	require.Equal(t, "100 10", d.Row("SELECT set_latest(NULL), set_oldest(NULL)"))
	d.requireError("Illegal offset 101 is beyond upper bounds", "SELECT set_latest(101)")
	d.Exec("BEGIN")
	d.Exec("SELECT set_latest(30)")
	d.Exec("ROLLBACK")
	require.Equal(t, "10 100", bounds(), "rolled back")
	d.Exec("BEGIN")
	d.Exec("SELECT set_latest(30, true)")
	require.Equal(t, "10 30", bounds())
	d.Exec("COMMIT")
	require.Equal(t, "10 100", bounds(), "it was for the transaction")
	d.Exec("SELECT set_latest(30)")
	d.Exec("DISCARD ALL")
	require.Equal(t, "10 100", d.Row("SELECT pqs.oldest_offset(), pqs.latest_offset()"))
}

func TestPQSOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.NoError(t, d.store().EnablePQS(t.Context(), "pqs"))
	d.Exec("SET search_path = pqs")
	require.Equal(t, "<nil> <nil> <nil>", d.Row("SELECT latest_offset(), oldest_offset(), pruned_offset()"))
	for _, query := range []string{
		"active()", "active(NULL, 5)", "creates()", "archives()", "exercises()", "summary_active()", "summary_updates()", "latest_checkpoint()", "__watermark",
		"active_contracts", "__exercise_tpe", "summary_transients(NULL, NULL)",
	} {
		require.Empty(t, d.Rows("SELECT FROM "+query), query)
	}
	d.requireError("Identifier not found: Main:Asset", "SELECT FROM active('Main:Asset')")
	require.Equal(t, "5 5", d.Row("SELECT validate_offset_exists(5), set_latest(5)"))
	require.Equal(t, "<nil>", d.Row("SELECT nearest_offset(now())"))
}

// Without a snapshot it is not known what was active.
func TestPQSBegunInTheMiddle(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 10, false))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(10, 20)))
	require.NoError(t, s.EnablePQS(t.Context(), "pqs"))
	d.requireError("before the oldest known offset", "SELECT FROM pqs.active()")
	require.Len(t, d.Rows("SELECT FROM pqs.creates()"), 1)
}

// A contract on several synchronizers is one contract.
func TestPQSShowsAContractOnce(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	s := d.store()
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, 0, true))
	created, arrived, left, ended := storetest.NewUpdate(1, "sync::1"), storetest.NewUpdate(2, "sync::2"), storetest.NewUpdate(3, "sync::1"), storetest.NewUpdate(4, "sync::2")
	created.Created = []ledger.CreatedEvent{storetest.Creation(0, "c")}
	storetest.Assign(&arrived, 0, "c", "sync::1", "sync::2", 1)
	storetest.Unassign(&left, 0, "c", "sync::1", "sync::2", 1)
	ended.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "c")}
	d.append(l, 0, created, arrived, left, ended)
	require.NoError(t, s.EnablePQS(t.Context(), "pqs"))
	for offset, want := range []int{0, 1, 1, 1, 0} {
		require.Len(t, d.Rows("SELECT FROM pqs.active(NULL, $1)", offset), want, offset)
	}
	require.Equal(t, "1 4", d.Row("SELECT created_at_offset, archived_at_offset FROM pqs.creates()"))
	require.Len(t, d.Rows("SELECT FROM pqs.archives()"), 1)
}

// So is one that a snapshot has on several, with a counter that says that it has moved.
func TestPQSShowsACarriedContractOnce(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	d.seeded(storetest.ActiveEntry(2, 0, "c", "sync::1", 0), storetest.ActiveEntry(7, 0, "c", "sync::2", 1), storetest.ActiveEntry(8, 0, "moved", "sync::2", 1))
	require.NoError(t, d.store().EnablePQS(t.Context(), "pqs"))
	require.Equal(t, []string{"c (7,0)", "moved (8,0)"}, d.Rows("SELECT contract_id, create_event_id::text FROM pqs.active(NULL, 100) ORDER BY 1"))
	require.Equal(t, "3", d.Row("SELECT count(*) FROM pqs.active_contracts"), "and what an update has created")
}

// What was redacted says why, where the Participant Query Store has the id that it was redacted with.
func pqsShowsWhatWasRedacted(t *testing.T, d *testDB) {
	t.Helper()
	require.Empty(t, d.Rows("SELECT FROM creates() WHERE redaction_id IS NOT NULL UNION ALL SELECT FROM exercises() WHERE redaction_id IS NOT NULL"))
	d.Exec("SET search_path = indexer")
	d.Exec(`INSERT INTO redactions (redaction, kind, id, redacted_at, redacted_by, reason, erased)
		VALUES (1, 'contract', 'c3', now(), 'operator', 'request 1', '{}'), (2, 'update', 'update-30', now(), 'operator', 'request 2', '{}')`)
	d.Exec("SET search_path = pqs")
	require.Equal(t, []string{"c3 request 1"}, d.Rows("SELECT contract_id, redaction_id FROM creates() WHERE redaction_id IS NOT NULL"))
	require.Equal(t, []string{"c3 request 1"}, d.Rows("SELECT contract_id, redaction_id FROM active(NULL, 30) WHERE redaction_id IS NOT NULL"))
	require.Equal(t, []string{"c3 request 1"}, d.Rows("SELECT contract_id, redaction_id FROM archives() WHERE redaction_id IS NOT NULL"))
	require.Equal(t, []string{"c3 request 1", "unseen request 2"}, d.Rows("SELECT contract_id, redaction_id FROM exercises() WHERE redaction_id IS NOT NULL ORDER BY 1"))
	d.requireError("Cannot redact contract c3 because it is already redacted", "SELECT redact_contract('c3', 'again')")
	d.requireError("Cannot redact exercise with event ID (30,3) because it is already redacted", "SELECT redact_exercise('(30,3)', 'again')")
	d.requireError("Cannot redact exercise with event ID (50,0) because it is already redacted", "SELECT redact_exercise('(50,0)', 'again')")
	d.requireError("exercise with event ID (20,1) was not redacted", "SELECT redact_exercise('(20,1)', 'why')")
	d.requireError("contract c2 was not redacted", "SELECT redact_contract('c2', 'why')")
}

// pqsSurface is what clients know by name: functions with arguments, defaults and results, and the columns of types and
// relations, in their order.
const pqsSurface = `SELECT replace(x.line, 'pqs.', '') FROM (
	SELECT format('%s(%s) %s', p.proname, pg_get_function_arguments(p.oid), coalesce(pg_get_function_result(p.oid), 'procedure')) AS line
	FROM pg_proc p WHERE p.pronamespace = 'pqs'::regnamespace AND (p.proname NOT LIKE '\_\_%' OR p.proname IN ('__contract_tpe4name', '__exercise_tpe4name', '__contracts', '__exercises'))
	UNION ALL
	SELECT format('%s %s: %s', CASE c.relkind WHEN 'c' THEN 'type' ELSE 'relation' END, c.relname,
		(SELECT string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0))
	FROM pg_class c WHERE c.relnamespace = 'pqs'::regnamespace AND (c.relkind = 'c' OR c.relname IN ('transactions', 'active_contracts', 'events', 'contracts', '__transactions',
		'__watermark', '__packages', '__contract_tpe', '__exercise_tpe', '__events', '__contracts', '__exercises'))) x
ORDER BY x.line COLLATE "C"`

// Clients call functions by the names of their arguments and read columns by their place: neither changes.
func TestPQSSurface(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.NoError(t, d.store().EnablePQS(t.Context(), "pqs"))
	want, err := os.ReadFile("testdata/pqs_surface.txt")
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(want)), "\n"), d.Rows(pqsSurface))
}

// A template's contracts are found by the index of templates, at an offset too, and what nobody asks for is not looked
// up.
func TestPQSActiveUsesIndexes(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newPQS(t)
	d.Exec(`INSERT INTO indexer.active_contracts (activated_offset, reassignment_counter, activated_node_id, synchronizer_ref, template_ref, contract_id)
		SELECT i, 0, 1000, 1, 1000 + i % 100, i FROM generate_series(1, 10000) i`) // of other templates
	d.Exec("ANALYZE indexer.active_contracts")
	d.Exec("SET enable_seqscan = off")
	plan := d.plan("SELECT count(*) FROM active('asset:Main:Asset', 30)")
	require.NotContains(t, plan, "Function Scan on active", "planned as a part of the query")
	require.Contains(t, plan, "active_contracts_template")
	require.Regexp(t, `lifetimes\w*_pkey`, plan)
	require.NotRegexp(t, `created\w*_pkey`, plan, "no look-up")
	require.Regexp(t, `created_p\d+_ledger_offset_idx`, plan, "whether a contract has moved is seen without reading a snapshot")
	require.Regexp(t, `active_contracts_contract_id`, d.plan("SELECT contract_id, payload FROM active('asset:Main:Asset') WHERE contract_id = 'c1'"))
	require.Regexp(t, `created\w*_pkey`, d.plan("SELECT contract_id FROM creates('asset:Main:Asset', 30, 40)"))
}

// Functions mean the same whoever calls them, make no statement of what they are given, and say what they do.
func pqsIsClosed(t *testing.T, d *testDB) {
	t.Helper()
	require.Empty(t, d.Rows(`SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'pqs'::regnamespace
		AND (prosqlbody IS NULL AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=%') OR prosrc ~* '\mEXECUTE\M' OR obj_description(p.oid, 'pg_proc') IS NULL)`))
	require.Empty(t, d.Rows("SELECT c.relname FROM pg_class c WHERE relnamespace = 'pqs'::regnamespace AND relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NULL"))
}

// What is in the way of a migration is said, with what to do.
func TestMigrationsThatSomethingDependsOn(t *testing.T) {
	t.Parallel()
	d := newPQS(t)
	_, err := d.Conn.Exec(t.Context(), "DROP VIEW indexer.interface_names, ledger.interface_views")
	require.Error(t, err)
	s := d.store()
	storetest.RequireProblem(t, s.blocked(fmt.Errorf("migrate: %w", err)), "pqs", "indexer pqs disable")
	other := fmt.Errorf("another error")
	require.Equal(t, other, s.blocked(other))
}
