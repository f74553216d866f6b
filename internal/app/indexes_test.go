package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// What is indexed is the very expression of the typed view's column, of each type: the planner uses the index, and
// finds the same rows. The daemon writes on, and verification and repairs know nothing of indexes.
func TestTypedViewsUseIndexes(t *testing.T) {
	t.Parallel()
	brief.Long(t, "makes ten indexes beside the daemon")
	database, l, server := typedWorld.indexed(t)
	_, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)

	daemonCfg := indexerFor(database, server, effects())
	daemonCfg.PackagesInterval = often
	daemon := startIndexer(t, daemonCfg)
	conn := open(t, database)
	type indexed struct{ view, column, kind string }
	var made []indexed
	for _, x := range []struct{ view, template, path, column string }{
		{"bank_account", "bank:Bank.Account:Account", "owner", "owner"}, {"bank_account", "Account", "limit", `"limit"`}, {"bank_account", "Account", "opened", "opened"},
		{"trade_agreement", "Agreement", "settlesAt", "settles_at"}, {"bank_account", "Account", "status", "status"},
		{"bank_holding", "bank:Bank.Cash:Holding", "holding.amount.initialAmount", "holding_amount_initial_amount"},
		{"trade_agreement", "Agreement", "terms", "terms_tag"}, {"trade_agreement", "Agreement", "notional", "notional"},
		{"splice_api_token_holding_v1_holding", "splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding", "owner", "owner"},
		{"splice_api_token_holding_v1_holding", "splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding", "amount", "amount"},
	} {
		cfg := Index{Database: config.Database{DatabaseURL: database}, Template: x.template, Path: x.path, Anyway: true}
		report, err := CreateIndex(t.Context(), cfg, testLogger(t))
		require.NoError(t, err, x.path)
		require.True(t, report.Changed, x.path)
		require.Zero(t, report.Unfinished)
		made = append(made, indexed{x.view, x.column, report.Type})
	}
	l.Grow(100)
	waitFor(t, database, lastUpdate(l))

	kinds := map[string]int{}
	for _, x := range made {
		kinds[x.kind]++
		rows := func(query string) (list []string) {
			result, err := conn.Query(t.Context(), query)
			require.NoError(t, err, query)
			list, err = pgx.CollectRows(result, pgx.RowTo[string])
			require.NoError(t, err, query)
			return list
		}
		values := rows(fmt.Sprintf("SELECT quote_literal(%s) FROM typed.%s WHERE %[1]s IS NOT NULL ORDER BY active DESC, ledger_offset LIMIT 1", x.column, x.view))
		require.Len(t, values, 1, x)
		query := fmt.Sprintf("SELECT contract_id || ledger_offset FROM typed.%s WHERE %s = %s", x.view, x.column, values[0])
		query += " ORDER BY 1"
		_, err := conn.Exec(t.Context(), "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = off")
		require.NoError(t, err)
		want := rows(query)
		require.NotEmpty(t, want, query)
		_, err = conn.Exec(t.Context(), "RESET enable_indexscan; RESET enable_bitmapscan")
		require.NoError(t, err)
		require.Equal(t, want, rows(query), query)
		plan := fmt.Sprint(explained(t, conn, query))
		require.Regexp(t, `Index Scan (using|on) (created|interface_views)_p\d+_field_`, plan, query)
	}
	for _, kind := range []string{"text", "numeric(38,10)", "date", "timestamp with time zone"} {
		require.Positive(t, kinds[kind], kind)
	}
	// So do queries that people write without views.
	plan := fmt.Sprint(explained(t, conn, "SELECT contract_id FROM ledger.created_events WHERE payload ->> 'owner' = 'x'"))
	require.Regexp(t, `Index Scan (using|on) created_p0_field_`, plan)

	examples := statements(section(t, "../../docs/types.md", "which typed views use by themselves:", "A path has dots"))
	require.Len(t, examples, 2)
	for _, query := range examples {
		query = strings.Replace(query, "active AND ", "", 1) // so small a ledger has fewer active contracts of a template than of an owner
		require.Regexp(t, `Index Scan (using|on) created_p0_field_`, fmt.Sprint(explained(t, conn, query)), query)
	}

	require.NoError(t, daemon.finish())
	_, err = RunVerify(t.Context(), VerifyConfig{Database: config.Database{DatabaseURL: database}, Sources: config.Sources{LedgerURL: server}, Verify: config.Verify{Repair: true}},
		testLogger(t), func(d audit.Difference) { t.Errorf("verify: %v", d) })
	require.NoError(t, err)

	reports, err := ListIndexes(t.Context(), config.Database{DatabaseURL: database}, testLogger(t))
	require.NoError(t, err)
	require.Len(t, reports, len(made))
	cfg := Index{Database: config.Database{DatabaseURL: database}, Template: "Account", Path: "mandates"}
	_, err = CreateIndex(t.Context(), cfg, testLogger(t))
	require.ErrorContains(t, err, "it is no single value but List of Record Bank.Account:Mandate")
	cfg.Path = "meta"
	_, err = CreateIndex(t.Context(), cfg, testLogger(t))
	var usage *config.UsageError
	require.ErrorAs(t, err, &usage)
}

// explained is the plan of a query.
func explained(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN "+query)
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return plan
}

// Of a network no packages are served: the values say of which type a field is, a view that was made, or the package of
// a participant whose ledger lies in the same database. An index of no field needs none of them.
func TestIndexesOfANetwork(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, scan := scanOf(77, 400, sandbox.ScanOptions{})
	database := databaseOfBoth(t)
	require.NoError(t, RunIndexer(t.Context(), networkFor(database, serveScan(t, scan)), testLogger(t)))
	of := config.Database{DatabaseURL: database, Schemas: config.Schemas{Network: true}}
	create := func(index Index) (IndexReport, error) {
		index.Database = of
		return CreateIndex(t.Context(), index, testLogger(t))
	}
	made := func(index Index) string {
		report, err := create(index)
		require.NoError(t, err)
		require.True(t, report.Changed)
		return report.Type
	}
	require.Empty(t, made(Index{Template: "splice-amulet:Splice.Amulet:Amulet"}))
	require.Empty(t, made(Index{Template: "Amulet", Choice: "Amulet_Expire"}))
	require.Empty(t, made(Index{Template: "Amulet", Key: true}))
	require.Equal(t, "text", made(Index{Template: "Amulet", Path: "owner", Anyway: true}))
	require.Equal(t, "numeric(38,10)", made(Index{Template: "LockedAmulet", Path: "amulet.amount.initialAmount"}))
	require.Equal(t, "timestamp with time zone", made(Index{Template: "Amulet", Path: "at", Choice: "Amulet_Expire"}))
	for _, wrong := range []Index{{Template: "Ambulet"}, {Template: "Amulet", Path: "keeper"}, {Template: "Amulet", Choice: "Amulet_Eat"}} {
		_, err := create(wrong)
		var usage *config.UsageError
		require.ErrorAs(t, err, &usage)
		require.Regexp(t, `splice-amulet:Splice.Amulet:Amulet`, err.Error())
	}

	views := ViewsSchema{Database: of, Schema: "typed_network"}
	view := func(template string) ViewReport {
		reports, err := CreateViews(t.Context(), Views{ViewsSchema: views, Templates: []string{template}}, testLogger(t))
		require.NoError(t, err)
		return reports[0]
	}
	require.Positive(t, view("Amulet").Inferred)
	execute(t, database, `UPDATE network_indexer.created SET payload = jsonb_set(payload, '{amount,createdAt,number}', '"007"')
		WHERE payload #> '{amount,createdAt,number}' IS NOT NULL`)
	require.Equal(t, "bigint", made(Index{Template: "Amulet", Path: "amount.createdAt.number"}), "as the view has it, which uses no other index")

	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), effects())
	cfg.PackagesInterval = often
	daemon := startIndexer(t, cfg)
	waitFor(t, database, lastUpdate(l))
	waitUntil(t, database, everyTypeKnown)
	require.NoError(t, daemon.finish())
	require.Zero(t, view("LockedAmulet").Inferred, "the participant's packages say it")
	reports, err := RefreshViews(t.Context(), views, testLogger(t))
	require.NoError(t, err)
	for _, r := range reports {
		require.Empty(t, r.Failure)
		unknown := strings.HasPrefix(r.Of, "choice Amulet_ExpireV2 of ") // of a later version than any package that is here
		require.Equal(t, unknown, r.Inferred > 0, r.Of)
	}
	require.Equal(t, "timestamp with time zone", made(Index{Template: "LockedAmulet", Path: "lock.expiresAt"}))
}

// Where a participant's package is not there, an index of no field needs none, and one of a field has the type of the
// values only if asked.
func TestIndexesWithoutPackages(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 78})
	l.Grow(200)
	database, _ := withTypes(t, l, sandbox.ServerOptions{Fault: noPackages}, effects(), noTypeKnown)
	create := func(index Index) (IndexReport, error) {
		index.DatabaseURL = database
		return CreateIndex(t.Context(), index, testLogger(t))
	}
	_, err := create(Index{Template: "bank:Bank.Account:Account"})
	require.NoError(t, err)
	_, err = create(Index{Template: "Account", Path: "limit"})
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.Do, "--infer")
	report, err := create(Index{Template: "Account", Path: "limit", Infer: true})
	require.NoError(t, err)
	require.Equal(t, "numeric(38,10)", report.Type)
}
