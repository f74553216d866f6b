package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/session"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// attacked is a database in which bob has what alice must not see: the texts of his rows all have the word secret.
type attacked struct {
	*testDB
	role    string
	alice   *pgx.Conn
	notices *[]string
}

// secret is what only bob sees.
const secret = "secret"

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	d := newDatabase(t)
	l := d.started()
	var updates []ledger.Update
	for i := range 5 {
		u := storetest.NewUpdate(ledger.Offset(2*i+1), "sync::1")
		c := storetest.Creation(0, fmt.Sprint("contract-of-alice-", i))
		c.Signatories, c.WitnessParties = []string{"alice"}, []string{"alice"}
		u.Created = append(u.Created, c)
		updates = append(updates, u)
	}
	updates = slices.Insert(updates, 2, bobsUpdate(4))
	updates = slices.Insert(updates, 4, bobsMove(6))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: 10, Updates: updates}}))
	lookUpBobs(t, l)
	makeTypedViews(t, l.store)
	history := d.leadTransactions(l.store)
	writeRecords(t, d, history)
	d.Exec(`INSERT INTO indexer.redactions (redaction, kind, id, redacted_at, redacted_by, reason, erased)
		SELECT row_number() OVER (), r.kind, r.id, now(), 'operator', r.id, '{}'
		FROM (VALUES ('contract', 'ended-` + secret + `'), ('update', 'update-of-` + secret + `'), ('contract', 'contract-of-alice-1'), ('update', 'update-1')) r (kind, id)`)
	d.Exec("INSERT INTO indexer.hosting (party, hosted, onboarded, asked_offset) VALUES ($1, true, false, 0)", "party-of-"+secret)
	require.NoError(t, l.store.EnablePQS(t.Context(), "pqs"))
	role, as := throwaway.Login(t, d.URL, "")
	_, err := l.store.Grant(t.Context(), Reader{Role: role, Parties: []string{"alice"}})
	require.NoError(t, err)
	d.Exec("GRANT CREATE, TEMPORARY ON DATABASE " + pgx.Identifier{d.Row("SELECT current_database()")}.Sanitize() + " TO " + role)
	a := &attacked{testDB: d, role: role}
	config, err := pgx.ParseConfig(as)
	require.NoError(t, err)
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices = append(notices, n.Message) }
	a.notices = &notices
	a.alice, err = pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.alice.Close(context.Background()) })
	var redacted string
	require.NoError(t, a.alice.QueryRow(t.Context(), "SELECT string_agg(id, ' ' ORDER BY id) FROM ledger.redactions").Scan(&redacted))
	require.Equal(t, "contract-of-alice-1 update-1", redacted)
	for _, statement := range []string{
		// They are called before everything else, as far as the planner lets them: they cost nothing, and are strict.
		"CREATE SCHEMA hers",
		`CREATE FUNCTION hers.tell(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT COST 0.0000001 PARALLEL SAFE AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$`,
		`CREATE FUNCTION hers.tell_any(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0000001 AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$`,
		`CREATE FUNCTION hers.before(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT COST 0.0000001 AS $$ BEGIN RAISE NOTICE '% %', $1, $2; RETURN true; END $$`,
		`CREATE OPERATOR hers.<<< (LEFTARG = text, RIGHTARG = text, FUNCTION = hers.before)`,
	} {
		_, err := a.alice.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	return a
}

// writeRecords writes a transfer of bob's to the transaction history.
func writeRecords(t *testing.T, d *testDB, history *TransactionsWriter) {
	t.Helper()
	fee := ledger.Decimal("0.1")
	tap := storetest.Tap("#" + secret + ":1")
	records := []ledger.Record{
		storetest.Payment("#"+secret+":0", "03:04:05", "bob-"+secret, &fee, storetest.Receiver("carol-"+secret, "5", &fee)), tap,
		{EventID: "#" + secret + ":2", Kind: ledger.RecordMint, Date: tap.Date, Word: "amulet", Mint: &ledger.OwnedAmount{Owner: "bob-" + secret, Amount: "77.77"}},
		{EventID: "#" + secret + ":3", Kind: ledger.RecordAbort, Date: tap.Date, Abort: &ledger.AbortedInstruction{InstructionCID: secret}},
		{EventID: "#" + secret + ":4", Kind: ledger.RecordUnknown, Raw: ledger.JSON(`{"of": "` + secret + `"}`)},
	}
	_, err := history.AppendTransactions(t.Context(), ledger.TransactionsPosition{}, nil, records)
	require.NoError(t, err)
}

// relations are all that she reads, with the columns.
func (a *attacked) relations() map[string][]string {
	a.T.Helper()
	found := map[string][]string{}
	rows, err := a.alice.Query(a.T.Context(), `SELECT c.oid::regclass::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace IN ('ledger'::regnamespace, 'pqs'::regnamespace, 'typed'::regnamespace) AND c.relkind = 'v' ORDER BY 1, a.attnum`)
	require.NoError(a.T, err)
	var relation, column string
	_, err = pgx.ForEachRow(rows, []any{&relation, &column}, func() error { found[relation] = append(found[relation], column); return nil })
	require.NoError(a.T, err)
	require.Greater(a.T, len(found), 50)
	return found
}

// try runs a statement as she does. It returns what came of it: rows, notices and the error, as text.
func (a *attacked) try(query string) string {
	a.T.Helper()
	*a.notices = nil
	var b strings.Builder
	rows, err := a.alice.Query(a.T.Context(), query)
	if err == nil {
		for rows.Next() {
			values, err := rows.Values()
			require.NoError(a.T, err)
			fmt.Fprintf(&b, "%s\n", values)
		}
		err = rows.Err()
	}
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String() + strings.Join(*a.notices, "\n")
}

// requireNothing fails where something of bob's came of a statement, or where the statement did not run.
func (a *attacked) requireNothing(query string) string {
	a.T.Helper()
	got := a.try(query)
	require.NotContains(a.T, strings.ReplaceAll(got, query, ""), secret, query)
	require.NotContains(a.T, got, "77.77", query)
	require.NotContains(a.T, got, hex.EncodeToString([]byte(secret)), query)
	return got
}

// Nothing of what a limited role may not see comes out of any column of any relation: not as a row, not by a function
// in a condition that tells what it is given, strict or not, nor by a cast that fails with the value in its error.
func TestAttackByConditions(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs a statement for each column, in several forms")
	a := newAttacked(t)
	seen := false
	for relation, columns := range a.relations() {
		require.NotContains(t, a.requireNothing("SELECT * FROM "+relation), "ERROR", relation)
		require.NotContains(t, a.requireNothing("SELECT count(*) FROM "+relation), "ERROR", relation)
		var anything []string
		for _, column := range columns {
			name := "x." + pgx.Identifier{column}.Sanitize()
			anything = append(anything, "hers.tell_any("+name+")")
			// The planner places each condition by itself. They are true of whatever is not NULL; the cast fails at the first
			// row.
			got := a.requireNothing(fmt.Sprintf("SELECT 1 FROM %s x WHERE hers.tell(%[2]s) AND hers.tell(%[2]s::text) AND %[2]s::text OPERATOR(hers.<<<) 'x'", relation, name))
			seen = seen || strings.Contains(got, "alice")
			a.requireNothing(fmt.Sprintf("SELECT 1 FROM %s x WHERE %s::text::integer > 0", relation, name))
		}
		a.requireNothing("SELECT 1 FROM " + relation + " x WHERE " + strings.Join(anything, " AND ")) // not strict, which leaves outer joins as they are
		first := pgx.Identifier{columns[0]}.Sanitize()
		a.requireNothing(fmt.Sprintf("SELECT x.%[2]s FROM %[1]s x GROUP BY 1 HAVING hers.tell(x.%[2]s::text)", relation, first))
		a.requireNothing(fmt.Sprintf("SELECT 1 FROM %[1]s x JOIN %[1]s y ON hers.tell(x.%[2]s::text || y.%[2]s::text)", relation, first))
		a.requireNothing("SELECT 1 FROM " + relation + " x WHERE hers.tell(x::text)")
	}
	require.True(t, seen, "the functions were called with what she may see")
}

// Nor by the tables themselves, roles or settings, nor by what she asks one question after another.
func TestAttackByRights(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs statement after statement as another role")
	a := newAttacked(t)
	require.Contains(t, a.try("SELECT affected_transactions::text FROM pqs.validate_reset_offset(3)"), "[3]", "bob's update is not counted")

	// Sequences of queries by time: the update of bob's has a time of its own, which nothing tells.
	var hers, his string
	require.NoError(t, a.alice.QueryRow(t.Context(), "SELECT ledger.time_at(3)::text").Scan(&hers))
	require.NoError(t, a.alice.QueryRow(t.Context(), "SELECT ledger.time_at(4)::text").Scan(&his))
	require.Equal(t, hers, his)
	require.Contains(t, a.try("SELECT count(*)::text FROM ledger.updates WHERE record_time > '2000-01-01'"), "[5]")

	for _, statement := range []string{
		"SELECT * FROM indexer.created", "SELECT * FROM indexer.my_lists", "SELECT * FROM indexer.reader_parties", "SELECT * FROM indexer.party_lists",
		"SELECT indexer.receivers_of(1)", "SET SESSION AUTHORIZATION postgres", "SELECT set_config('session_authorization', 'postgres', false)",
		"SELECT table_to_xml('indexer.created'::regclass, true, false, '')", "COPY indexer.created TO STDOUT", "LOCK TABLE ledger.updates IN ACCESS EXCLUSIVE MODE",
		"CREATE POLICY p ON ledger.updates USING (true)", "ALTER VIEW ledger.updates SET (security_invoker = false)", "CREATE TRIGGER t AFTER INSERT ON indexer.created EXECUTE FUNCTION hers.tell(1)",
	} {
		require.Contains(t, a.requireNothing(statement), "ERROR", statement)
	}
	require.Contains(t, a.requireNothing("SET row_security = off; SELECT * FROM ledger.updates"), "ERROR")
	a.requireNothing("RESET row_security")
	for _, query := range []string{
		"SELECT * FROM pg_stats", "SELECT * FROM pg_stats_ext", "SELECT * FROM pg_stats_ext_exprs", "SELECT query FROM pg_stat_activity WHERE usename <> current_user", "SELECT * FROM pg_policies WHERE qual LIKE '%bob%'",
		"SELECT database_to_xml(true, false, '')",
	} {
		a.requireNothing(query)
	}
	// Plans name what is looked for, and no value of what is there.
	for relation := range a.relations() {
		a.requireNothing("EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM " + relation)
	}
}

// Prepared plans and cached functions follow the role that runs them.
func TestAttackByPlansOfOthers(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	a := newAttacked(t)
	a.Exec("PREPARE all_contracts AS SELECT contract_id FROM ledger.active_contracts")
	for range 7 {
		require.Greater(t, len(a.Rows("EXECUTE all_contracts")), 5)
	}
	a.Exec("SET ROLE " + a.role)
	require.Len(t, a.Rows("EXECUTE all_contracts"), 5)
	a.Exec("RESET ROLE")
	require.Greater(t, len(a.Rows("EXECUTE all_contracts")), 5)
}

// A role that is renamed loses its grant, and with it its rights: it must not see everything once nobody else is
// limited.
func TestAttackByANewName(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs statement after statement as another role")
	for name, settle := range map[string]func(*attacked) error{
		"another is granted": func(a *attacked) error {
			_, err := a.store().Grant(a.T.Context(), Reader{Role: a.Row("SELECT current_user::text"), AllParties: true})
			return err
		},
		"the old name is revoked": func(a *attacked) error {
			_, err := a.store().Revoke(a.T.Context(), a.role)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttacked(t)
			a.Exec("ALTER ROLE " + a.role + " RENAME TO " + a.role + "_new")
			t.Cleanup(func() {
				_, err := a.Conn.Exec(context.Background(), "ALTER ROLE "+a.role+"_new RENAME TO "+a.role)
				require.NoError(t, err)
			})
			require.NotContains(t, a.requireNothing("SELECT contract_id FROM ledger.created_events"), "alice")
			require.NoError(t, settle(a))
			require.Contains(t, a.requireNothing("SELECT contract_id FROM ledger.created_events"), "ERROR")
		})
	}
}

// What a release changes of who sees what counts once it has migrated, or has begun where the migration was cut off
// before that.
func TestMigratingSettlesWhatARoleSees(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	a := newAttacked(t)
	a.Exec(`DROP POLICY parties ON indexer.created; CREATE POLICY parties ON indexer.created FOR SELECT USING (true);
		ALTER TABLE indexer.exercised DISABLE ROW LEVEL SECURITY; REVOKE SELECT ON ledger.updates FROM ` + a.role + `;
		CREATE VIEW ledger.later WITH (security_invoker = true) AS SELECT c.contract_id FROM indexer.created c`)
	const created, exercised, updates, later = "SELECT contract_id FROM ledger.created_events", "SELECT choice FROM ledger.exercised_events", "SELECT update_id FROM ledger.updates", "SELECT * FROM ledger.later"
	for query, says := range map[string]string{created: secret, exercised: secret, updates: "ERROR", later: "ERROR"} {
		require.Contains(t, a.try(query), says, query)
	}
	_, err := a.store().Migrate(t.Context())
	require.NoError(t, err)
	for query, says := range map[string]string{created: "alice", exercised: "", updates: "update-1", later: "alice"} {
		got := a.requireNothing(query)
		require.NotContains(t, got, "ERROR", query)
		require.Contains(t, got, says, query)
	}
}

// A schema of hers that looks like one of ours is none: others get no rights to it, which an owner that is no superuser
// could not give.
func TestAttackByASchemaThatLooksLikeOurs(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	a := newAttacked(t)
	comment := strings.ReplaceAll(a.Row("SELECT obj_description('pqs'::regnamespace, 'pg_namespace')"), "'", "''")
	for _, statement := range []string{"CREATE SCHEMA like_ours", "COMMENT ON SCHEMA like_ours IS '" + comment + "'"} {
		require.Empty(t, a.try(statement))
	}
	other := a.newRole("_other")
	_, err := a.store().Grant(t.Context(), Reader{Role: other, AllParties: true})
	require.NoError(t, err)
	require.Equal(t, "true false", a.Row("SELECT has_schema_privilege($1, 'pqs', 'USAGE') || ' ' || has_schema_privilege($1, 'like_ours', 'USAGE')", other))
}

// newRole makes a role.
func (a *attacked) newRole(suffix string) string {
	a.T.Helper()
	role := a.role + suffix
	a.Exec("CREATE ROLE " + role)
	a.T.Cleanup(func() { dropRole(a.T, a.Conn, role) })
	return role
}

func dropRole(t testing.TB, conn *pgx.Conn, role string) {
	t.Helper()
	for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
		_, err := conn.Exec(context.Background(), statement)
		require.NoError(t, err, statement)
	}
}

// What shows what its owner sees is a reason not to limit a role that may read it with the rights of others. What it
// was granted itself is taken away.
func TestAttackByWhatOthersMayRead(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs statement after statement as another role")
	a := newAttacked(t)
	team := a.newRole("_team")
	a.Exec("CREATE MATERIALIZED VIEW ledger.by_hand AS SELECT contract_id FROM indexer.created")
	grant := func() error {
		_, err := a.store().Grant(t.Context(), Reader{Role: a.role, Parties: []string{"alice"}})
		return err
	}
	a.Exec("GRANT SELECT ON ledger.by_hand TO " + a.role)
	require.NoError(t, grant())
	require.Contains(t, a.requireNothing("SELECT * FROM ledger.by_hand"), "ERROR")

	a.Exec("GRANT SELECT ON ledger.by_hand TO " + team)
	require.NoError(t, grant())
	a.Exec("GRANT " + team + " TO " + a.role)
	require.ErrorContains(t, grant(), "it is a member of "+team+", which may read ledger.by_hand, which shows what its owner sees")
	a.Exec("REVOKE " + team + " FROM " + a.role)
	require.NoError(t, grant())

	// A view of the owner's over what she reads shows her no more.
	a.Exec("CREATE SCHEMA mart; CREATE VIEW mart.contracts AS SELECT contract_id, payload FROM ledger.created_events; GRANT USAGE ON SCHEMA mart TO " + a.role + "; GRANT SELECT ON mart.contracts TO " + a.role)
	require.Contains(t, a.requireNothing("SELECT * FROM mart.contracts"), "alice")

	a.Exec("GRANT SELECT ON ledger.by_hand TO PUBLIC")
	require.ErrorContains(t, grant(), "it may read ledger.by_hand")
	readers, err := a.store().Readers(t.Context())
	require.NoError(t, err)
	require.Contains(t, readers[0].Unlimited, "it may read ledger.by_hand")
}

// Coverage names the parties of the scope to its owner, to a limited role its own, and none to a role that inherits
// from that.
func TestAttackOnThePartiesOfTheScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	scope := storetest.Scope
	scope.Parties = []string{"alice", "bob"}
	l := d.leadUpdates(d.store())
	require.NoError(t, l.Start(t.Context(), "participant::1", scope, 0, true))
	require.NoError(t, l.Append(t.Context(), scope, []ledger.Page{{From: 0, To: 10}}))
	roles := &attacked{testDB: d, role: d.Row("SELECT current_database()")}
	limited := roles.newRole("_limited")
	_, err := l.store.Grant(t.Context(), Reader{Role: limited, Parties: []string{"alice"}})
	require.NoError(t, err)
	member := roles.newRole("_member")
	d.Exec("GRANT " + limited + " TO " + member)
	parties := func() string { return d.Row("SELECT parties::text FROM ledger.coverage") }
	require.Equal(t, "{alice,bob}", parties())
	for role, want := range map[string]string{limited: "{alice}", member: "{}"} {
		d.Exec("SET ROLE " + role)
		shown := parties()
		d.Exec("RESET ROLE")
		require.Equal(t, want, shown)
	}
}

// Every relation of the schemas shows tables for which it is decided what a limited role sees, and reads them with its
// rights. What comes without a decision fails here.
func TestEveryRelationIsDecidedOn(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.NoError(t, d.store().EnablePQS(t.Context(), "pqs"))
	readable := readableNames()
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(readable))), len(readable), "said once")
	// From the relations and functions that are read, down to the tables.
	beneath := d.Rows(`WITH RECURSIVE uses (classid, objid, refclassid, refobjid) AS (
			SELECT CASE WHEN d.classid = 'pg_rewrite'::regclass THEN 'pg_class'::regclass ELSE d.classid END,
				coalesce((SELECT r.ev_class FROM pg_rewrite r WHERE d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid), d.objid), d.refclassid, d.refobjid
			FROM pg_depend d WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass)
		), reached (classid, objid) AS (
			SELECT 'pg_class'::regclass, c.oid FROM pg_class c WHERE c.relkind = 'v' AND c.relnamespace IN ('ledger'::regnamespace, 'pqs'::regnamespace)
			UNION ALL SELECT 'pg_proc'::regclass, p.oid FROM pg_proc p WHERE p.pronamespace IN ('ledger'::regnamespace, 'pqs'::regnamespace) AND NOT p.prosecdef
			UNION SELECT u.refclassid::regclass, u.refobjid FROM uses u JOIN reached r ON r.classid = u.classid AND r.objid = u.objid
			WHERE u.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass)
				AND NOT EXISTS (SELECT FROM pg_class c WHERE u.classid = 'pg_class'::regclass AND c.oid = u.objid AND c.relname = ANY ($1::text[]))
				AND NOT EXISTS (SELECT FROM pg_proc p WHERE u.refclassid = 'pg_proc'::regclass AND p.oid = u.refobjid AND p.prosecdef)
		)
		SELECT DISTINCT c.relname::text FROM reached r JOIN pg_class c ON r.classid = 'pg_class'::regclass AND c.oid = r.objid
		WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind IN ('r', 'p') AND NOT (c.relispartition AND c.relname LIKE '%\_all') ORDER BY 1`, ownersViews)
	require.Greater(t, len(beneath), 40)
	for _, table := range beneath {
		require.True(t, slices.Contains(readable, table), "%s is shown, and tables.All does not say to whom", table)
	}
	require.Equal(t, storetest.Sorted(ownersViews), d.Rows(`SELECT c.relname::text FROM pg_class c WHERE c.relkind = 'v'
		AND c.relnamespace IN ('indexer'::regnamespace, 'ledger'::regnamespace, 'pqs'::regnamespace) AND coalesce('security_invoker=true' <> ALL (c.reloptions), true) ORDER BY 1`),
		"a view without security_invoker shows all that its owner sees")
	// With their owner's rights run functions of which each was looked at.
	require.Equal(t, []string{
		"indexer.ends_are_kept", "indexer.receivers_of", "ledger.latest_offset", "ledger.oldest_offset", "ledger.state_floor", "ledger.verified_offset", "ledger.verified_seq",
		"pqs.__contract_type", "pqs.__interface_package", "pqs.__state_offset", "pqs.validate_offset_exists",
	}, storetest.Sorted(d.Rows(`SELECT n.nspname || '.' || p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE p.prosecdef AND n.nspname IN ('indexer', 'ledger', 'pqs')`)))
	for _, table := range tables.Readable() {
		if table.Seen == tables.Everyone {
			require.Empty(t, d.Rows(`SELECT a.attname FROM pg_attribute a WHERE a.attrelid = ('indexer.' || $1::text)::regclass AND a.attname ~ 'part(y|ies)|stakeholders|seen_by'`, table.Name), table.Name)
		}
	}
}

// No lock that a reader can take holds the writers up, whatever he is granted, nor a session of his that has the name
// of a leader's: a term ends, another process leads, and writes into a new partition, while his transaction stays open.
func TestAttackByLocks(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "tries every kind of lock as another role")
	for name, grant := range map[string]Reader{"limited": {Parties: []string{"alice"}}, "all parties": {AllParties: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttacked(t)
			grant.Role = a.role
			_, err := a.store().Grant(t.Context(), grant)
			require.NoError(t, err)
			require.Empty(t, a.Rows("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"),
				"an advisory lock is everybody's")
			for _, role := range session.Leases {
				require.Empty(t, a.try("SET application_name = '"+session.DefaultSchemas.SessionPrefix(role)+"1'"))
			}
			taken := a.takeEveryLock()
			require.Contains(t, taken, "ledger.updates ACCESS SHARE")
			for _, lock := range taken {
				require.True(t, strings.HasSuffix(lock, " ACCESS SHARE"), lock)
			}

			a.EndLock(LeaseUpdates)
			l := a.leadUpdates(a.store())
			require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(10, 7_000_000)))
			require.Equal(t, "7000000", a.Watermark())
			a.EndLock(LeaseTransactions)
			a.leadTransactions(a.store())
			a.lead(a.store(), LeasePruning)
			a.lead(a.store(), LeaseRepair)
			var still int
			require.NoError(t, a.alice.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND mode = 'AccessShareLock'").Scan(&still))
			require.GreaterOrEqual(t, still, len(taken))
		})
	}
}

// takeEveryLock takes, in a transaction that stays open, each lock that she can of what there is, and returns which
// these are.
func (a *attacked) takeEveryLock() (taken []string) {
	a.T.Helper()
	require.Empty(a.T, a.try("BEGIN"))
	for _, relation := range a.Rows(`SELECT c.oid::regclass::text FROM pg_class c
		WHERE c.relkind IN ('r', 'p', 'v') AND c.relnamespace IN ('indexer'::regnamespace, 'ledger'::regnamespace, 'pqs'::regnamespace) ORDER BY 1`) {
		if !strings.Contains(relation, ".") {
			relation = "indexer." + relation
		}
		for _, mode := range []string{
			"ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE",
		} {
			require.Empty(a.T, a.try("SAVEPOINT before"))
			got := a.try("LOCK TABLE " + relation + " IN " + mode + " MODE NOWAIT")
			if got == "" {
				taken = append(taken, relation+" "+mode)
				continue
			}
			require.Contains(a.T, got, "permission denied")
			require.Empty(a.T, a.try("ROLLBACK TO before"))
		}
	}
	return taken
}
