package store

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
)

// schemaAt is a database whose schema is of an older release, and a provider of the migrations from there on.
func schemaAt(t *testing.T, version int64) (*testDB, *goose.Provider) {
	t.Helper()
	d := &testDB{t: t, url: throwaway.Database(t)}
	d.conn = d.connect()
	d.exec("CREATE SCHEMA indexer")
	db, err := sql.Open("pgx", d.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	provider, err := newProvider(db)
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), version)
	require.NoError(t, err)
	return d, provider
}

// What a database that began in the middle saw archived, before there were look-ups, is asked for.
func TestMigrateWantsWhatWasArchived(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stateKnown bool
		want       []string
	}{
		"began in the middle":    {false, []string{"older", "consumed"}},
		"all creations are here": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := schemaAt(t, 3)
			d.exec("INSERT INTO indexer.floors (stream, history_floor, state_floor) VALUES ('updates', 5, CASE WHEN $1 THEN 5 END)", c.stateKnown)
			d.exec("INSERT INTO indexer.templates (template_ref, template_id, package_id, package_name, module_name, entity_name) VALUES (1, 'p:M:E', 'p', 'p', 'M', 'E')")
			d.exec("CREATE TABLE indexer.created_all PARTITION OF indexer.created DEFAULT")
			d.exec("CREATE TABLE indexer.archived_all PARTITION OF indexer.archived DEFAULT")
			d.exec("CREATE TABLE indexer.exercised_all PARTITION OF indexer.exercised DEFAULT")
			d.exec("INSERT INTO indexer.created (ledger_offset, node_id, origin, contract_id, template_ref) VALUES (10, 0, 'transaction', 'known', 1)")
			d.exec("INSERT INTO indexer.archived (ledger_offset, node_id, contract_id, template_ref) VALUES (20, 0, 'known', 1), (20, 1, 'older', 1), (21, 0, 'older', 1)")
			d.exec(`INSERT INTO indexer.exercised (ledger_offset, node_id, contract_id, template_ref, choice, consuming, last_descendant_node_id, acs_delta)
				VALUES (30, 0, 'divulged', 1, 'Archive', true, 0, false), (30, 1, 'consumed', 1, 'Archive', true, 1, true)`)
			_, err := d.store().Migrate(t.Context())
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, d.rows("SELECT contract_id FROM indexer.lookups WHERE status = 'wanted'"))
		})
	}
}

// The right to create schemas is needed once: an upgrade, and each start, does without.
func TestMigrateWithoutTheRightToCreateSchemas(t *testing.T) {
	t.Parallel()
	newest, err := SchemaVersion()
	require.NoError(t, err)
	for _, version := range []int64{2, newest - 1, newest} {
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			t.Parallel()
			d := emptyDatabase(t)
			role, as := throwaway.Login(t, d.url, "")
			right := "CREATE ON DATABASE " + pgx.Identifier{d.row("SELECT current_database()")}.Sanitize()
			_, err := d.open(as, nil).Migrate(t.Context())
			requireProblem(t, err, "can't be used", "grant")
			require.ErrorContains(t, err, "permission denied for database")

			d.exec("GRANT " + right + " TO " + pgx.Identifier{role}.Sanitize())
			db, err := sql.Open("pgx", as)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			_, err = db.ExecContext(t.Context(), "CREATE SCHEMA indexer")
			require.NoError(t, err)
			provider, err := newProvider(db)
			require.NoError(t, err)
			_, err = provider.UpTo(t.Context(), version)
			require.NoError(t, err)
			d.exec("REVOKE " + right + " FROM " + pgx.Identifier{role}.Sanitize())

			s := d.open(as, nil)
			applied, err := s.Migrate(t.Context())
			require.NoError(t, err)
			require.Len(t, applied, int(newest-version))
			require.NoError(t, s.CheckSchema(t.Context()))
			l := d.lead(s, RoleUpdates)
			require.NoError(t, l.Start(t.Context(), "participant::1", testScope, 0, true))
			require.NoError(t, l.Append(t.Context(), testScope, everyKind(0)))
			require.Equal(t, "4", d.watermark())
		})
	}
}

// A database that holds updates is migrated, and goes on from there.
func TestMigrateADatabaseOf3(t *testing.T) {
	t.Parallel()
	d, provider := schemaAt(t, 3)
	ctx := t.Context()
	_, err := provider.Up(ctx) // this release's writer needs its own schema
	require.NoError(t, err)
	l := d.lead(d.store(), RoleUpdates)
	require.NoError(t, l.Start(ctx, "participant::1", testScope, 0, true))
	first := oneCreation(0, 10)
	first[0].Updates[0].Created[0].Argument = ledger.JSON(`"\u0000"`)
	require.NoError(t, l.Append(ctx, testScope, first))
	l.Close()
	_, err = provider.DownTo(ctx, 3)
	require.NoError(t, err)
	facts := d.facts(0, 100)
	require.NotEmpty(t, facts)

	applied, err := d.store().Migrate(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, applied)
	require.Equal(t, "00004_lookups_and_packages.sql", applied[0])
	require.Equal(t, facts, d.facts(0, 100))
	require.Equal(t, []string{"contract-10"}, d.rows("SELECT contract_id FROM ledger.active_contracts"))
	require.Equal(t, []string{"pkg-1 asset <nil>"}, d.rows("SELECT package_id, package_name, package_version FROM ledger.packages"), "from the template ids that were there")

	l = d.lead(d.store(), RoleUpdates)
	u := newUpdate(20, "sync::1")
	u.Archived = []ledger.ArchivedEvent{archival(0, "contract-10"), archival(1, "unseen")}
	require.NoError(t, l.Append(ctx, testScope, []ledger.Page{{From: 10, To: 20, Updates: []ledger.Update{u}}}))
	require.Equal(t, []string{"unseen"}, wantedLookups(t, l))
	contract := ledger.Contract{ContractID: "unseen", TemplateID: testTemplate, PackageName: "asset", Argument: ledger.JSON(`"\u0000"`)}
	require.NoError(t, l.SaveLookups(ctx, []ledger.Lookup{{ContractID: "unseen", Status: ledger.LookupFound, Contract: &contract}}))
	require.Equal(t, []string{"lookups 20 1", "updates 10 0"}, d.rows("SELECT stream, ledger_offset, node_id FROM ledger.exact_payloads ORDER BY 1"))

	// And back: what came before is untouched.
	_, err = provider.DownTo(ctx, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"updates 10 0"}, d.rows("SELECT stream, ledger_offset, node_id FROM ledger.exact_payloads"))
	require.Equal(t, "2", d.row("SELECT count(*) FROM ledger.updates"))
	_, err = provider.Up(ctx)
	require.NoError(t, err)
	require.NoError(t, d.store().CheckSchema(ctx))
}

// Going back from the transaction history leaves nothing of it, and all of the rest as it was; and it can be begun again.
func TestMigrateBackFromTheHistory(t *testing.T) {
	t.Parallel()
	d, provider := schemaAt(t, 4)
	ctx := t.Context()
	comments := func() []string {
		return d.rows(`SELECT objoid::regclass, objsubid, description FROM pg_description
			WHERE objoid IN ('ledger.exact_payloads'::regclass, 'ledger.stream_checkpoints'::regclass) ORDER BY 1, 2`)
	}
	before := comments()
	_, err := provider.Up(ctx)
	require.NoError(t, err)
	require.NotEqual(t, before, comments())
	l := d.started()
	require.NoError(t, l.Append(ctx, testScope, everyKind(0)))
	page, err := ledger.DecodeTransactions([]byte(historyPage))
	require.NoError(t, err)
	transactions := d.lead(d.store(), RoleTransactions)
	_, err = transactions.AppendTransactions(ctx, ledger.HistoryPosition{}, page)
	require.NoError(t, err)
	transactions.Close()
	l.Close()
	facts := d.facts(0, 100)
	require.NotEmpty(t, d.rows("SELECT FROM ledger.exact_payloads WHERE stream = 'transactions'"))

	_, err = provider.DownTo(ctx, 4)
	require.NoError(t, err)
	require.Equal(t, before, comments())
	require.Equal(t, facts, d.facts(0, 100))
	require.Equal(t, []string{"updates"}, d.rows("SELECT DISTINCT stream FROM ledger.exact_payloads"))
	require.Equal(t, []string{"updates"}, d.rows("SELECT stream FROM ledger.stream_checkpoints"))

	_, err = provider.Up(ctx)
	require.NoError(t, err)
	transactions = d.lead(d.store(), RoleTransactions)
	at, err := transactions.HistoryPosition(ctx)
	require.NoError(t, err)
	require.Equal(t, ledger.HistoryPosition{}, at)
	_, err = transactions.AppendTransactions(ctx, at, page)
	require.NoError(t, err)
	require.Empty(t, d.rebuild(historyPage))
}

// Going back from the verifications leaves nothing of them, and all of the rest as it was.
func TestMigrateBackFromTheVerifications(t *testing.T) {
	t.Parallel()
	d, provider := schemaAt(t, 7)
	ctx := t.Context()
	catalog := func() []string {
		return d.rows(`SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace IN ('ledger'::regnamespace, 'indexer'::regnamespace)
				AND c.relkind <> 'i' AND NOT c.relispartition
			UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace IN ('ledger'::regnamespace, 'indexer'::regnamespace) ORDER BY 1`)
	}
	before := catalog()
	_, err := provider.Up(ctx)
	require.NoError(t, err)
	l := d.started()
	require.NoError(t, l.Append(ctx, testScope, oneCreation(0, 1)))
	_, err = l.SealUpdates(ctx, oneCreation(0, 1)[0])
	require.NoError(t, err)
	require.Equal(t, "1", d.verifiedOffset())
	l.Close()
	_, err = provider.DownTo(ctx, 7)
	require.NoError(t, err)
	require.Equal(t, before, catalog())
	require.Empty(t, d.rows("SELECT to_regclass('indexer.verifications') WHERE to_regclass('indexer.verifications') IS NOT NULL"))
	require.Equal(t, []string{"history", "transactions", "updates"}, d.rows("SELECT role FROM indexer.leadership ORDER BY 1"))
	_, err = provider.Up(ctx)
	require.NoError(t, err)
	require.Equal(t, "0", d.verifiedOffset())
}

// Lists of parties that rows hold become numbers of lists, and numbers become lists again: what analysts read, what they made
// of it, and what is sealed stays.
func TestMigrateListsOfParties(t *testing.T) {
	t.Parallel()
	i := newItself(t, 300, fromSnapshot, ledger.ShapeLedgerEffects, 20)
	ctx := t.Context()
	db, err := sql.Open("pgx", i.url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	provider, err := newProvider(db)
	require.NoError(t, err)
	schema := func(d *testDB) []string {
		return d.rows(`SELECT c.oid::regclass, CASE WHEN relkind = 'v' THEN pg_get_viewdef(c.oid) END, obj_description(c.oid, 'pg_class'), (
				SELECT string_agg(concat_ws(' ', attname, atttypid::regtype, attnotnull, col_description(attrelid, attnum)), ', ' ORDER BY attnum)
				FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0)
			FROM pg_class c WHERE relnamespace IN ('ledger'::regnamespace, 'indexer'::regnamespace) AND relkind IN ('r', 'v', 'p') AND NOT relispartition ORDER BY c.oid::regclass::text`)
	}
	before, _ := schemaAt(t, 11)
	i.exec("CREATE VIEW public.mine AS SELECT ledger_offset, node_id, signatories, witness_parties FROM ledger.created_events")
	i.exec("GRANT SELECT ON ledger.exercised_events TO public")
	shown := func() []string {
		var all []string
		for _, relation := range []string{"ledger.created_events", "ledger.archived_events", "ledger.exercised_events", "ledger.reassignments",
			"ledger.active_contracts", "ledger.holdings", "public.mine"} {
			list := i.rows("SELECT row_to_json(x)::text FROM " + relation + " x ORDER BY 1")
			require.NotEmpty(t, list, relation)
			all = append(all, list...)
		}
		return append(all, i.rows("SELECT relname, relacl FROM pg_class WHERE relacl IS NOT NULL AND relnamespace = 'ledger'::regnamespace")...)
	}
	digests := func() (list []string) {
		require.NoError(t, i.store.readOnly(ctx, func(tx pgx.Tx) error {
			for _, stream := range []string{ledger.SealedUpdates, ledger.SealedSnapshot} {
				digest, err := i.store.rowsDigest(ctx, tx, stream, 0, 1<<40)
				require.NoError(t, err)
				list = append(list, fmt.Sprintf("%x", digest))
			}
			return nil
		}))
		return list
	}
	now, rows, seals := schema(i.testDB), shown(), digests()

	_, err = provider.DownTo(ctx, 11)
	require.NoError(t, err)
	require.Equal(t, schema(before), schema(i.testDB))
	require.Equal(t, rows, shown())
	require.NotEmpty(t, i.rows("SELECT FROM indexer.exercised WHERE cardinality(acting_parties) > 0"))
	require.Equal(t, seals, digests(), "what older releases have sealed holds")

	_, err = provider.Up(ctx)
	require.NoError(t, err)
	require.Equal(t, now, schema(i.testDB))
	require.Equal(t, rows, shown())
	require.Equal(t, seals, digests())
	l := i.lead(i.store, RoleUpdates)
	watermark, _, err := l.Watermark(ctx)
	require.NoError(t, err)
	require.NoError(t, l.Append(ctx, i.scope, everyKind(watermark)))
	require.Equal(t, "0", i.row("SELECT count(*) - count(DISTINCT parties) FROM indexer.party_lists"))
	require.Empty(t, i.differences(nil))
}
