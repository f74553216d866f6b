package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// dar writes a DAR file with the packages that participants serve, and returns its path.
func dar(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "packages.dar")
	require.NoError(t, os.WriteFile(path, sandbox.Archive(), 0o600))
	return path
}

// Of a network no packages are served: a DAR file says of which type a field is, a view that was made, or the package of
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
	require.Empty(t, made(Index{Of: "lifetimes"}))
	require.Empty(t, made(Index{Of: "exercises"}))
	require.Empty(t, made(Index{Of: "keys"}))
	var problem *ledger.Problem
	_, err := create(Index{Template: "Amulet", Path: "owner", Anyway: true})
	require.ErrorAs(t, err, &problem)
	require.Regexp(t, `no type is known; events name packages that are not here, which --dar FILE gives: .*splice-amulet [0-9a-f]{64}`, problem.What)
	given := []string{dar(t)}
	require.Equal(t, "text", made(Index{Template: "Amulet", Path: "owner", Anyway: true, DAR: given}))
	require.Equal(t, "numeric(38,10)", made(Index{Template: "LockedAmulet", Path: "amulet.amount.initialAmount", DAR: given}))
	require.Equal(t, "timestamp with time zone", made(Index{Template: "Amulet", Path: "at", Choice: "Amulet_Expire", DAR: given}))
	for _, wrong := range []Index{{Template: "Ambulet"}, {Template: "Amulet", Path: "keeper"}, {Template: "Amulet", Choice: "Amulet_Eat"}} {
		wrong.DAR = given
		_, err := create(wrong)
		var usage *config.UsageError
		require.ErrorAs(t, err, &usage)
		require.Regexp(t, `splice-amulet:Splice.Amulet:Amulet`, err.Error())
	}

	views := ViewsSchema{Database: of, Schema: "typed_network", DAR: given}
	view := func(template string) ViewReport {
		reports, err := CreateViews(t.Context(), Views{ViewsSchema: views, Templates: []string{template}}, testLogger(t))
		require.NoError(t, err)
		return reports[0]
	}
	require.True(t, view("Amulet").New)
	require.Positive(t, count(t, database, "typed_network."+view("Amulet").Name))
	_, err = create(Index{Template: "NoSuch", Path: "x", DAR: given})
	require.ErrorContains(t, err, `there is no template or interface "NoSuch"`)
	views.DAR = nil
	reports, err := RefreshViews(t.Context(), views, testLogger(t))
	require.NoError(t, err)
	for _, r := range reports {
		require.Contains(t, r.Failure, "no package that is here has it; it stays as it is")
	}
	listed, err := ListViews(t.Context(), views, testLogger(t))
	require.NoError(t, err)
	require.Len(t, listed, len(reports))

	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{}), effects())
	cfg.PackagesInterval = often
	daemon := startIndexer(t, cfg)
	waitFor(t, database, lastUpdate(l))
	waitUntil(t, database, everyTypeKnown)
	require.NoError(t, daemon.finish())
	require.True(t, view("LockedAmulet").New, "the participant's packages say it")
	reports, err = RefreshViews(t.Context(), views, testLogger(t))
	require.NoError(t, err)
	for _, r := range reports {
		require.Empty(t, r.Failure)
		require.Empty(t, r.Changes)
	}
	require.Equal(t, "timestamp with time zone", made(Index{Template: "LockedAmulet", Path: "lock.expiresAt"}))
}

// A package that a participant does not give is named, and can be given in a file.
func TestIndexesWithoutPackages(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 78})
	l.Grow(200)
	noPackages := func(r *http.Request) *sandbox.Fault {
		if strings.HasPrefix(r.URL.Path, "/v2/packages/") {
			return &sandbox.Fault{Status: 404, ContentType: "application/json", Body: `{"code":"PACKAGE_NOT_FOUND"}`}
		}
		return nil
	}
	database, _ := withTypes(t, l, sandbox.ServerOptions{Fault: noPackages}, effects(), "EXISTS (SELECT FROM ledger.packages WHERE types = 'missing')")
	create := func(index Index) (IndexReport, error) {
		index.DatabaseURL = database
		return CreateIndex(t.Context(), index, testLogger(t))
	}
	_, err := create(Index{Of: "lifetimes"})
	require.NoError(t, err)
	_, err = create(Index{Template: "Account", Path: "limit"})
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Regexp(t, `--dar FILE gives: .*bank [0-9a-f]{64}`, problem.What)
	_, err = create(Index{Template: "Account", Path: "limit", DAR: []string{"/nowhere.dar"}})
	var usage *config.UsageError
	require.ErrorAs(t, err, &usage)
	report, err := create(Index{Template: "Account", Path: "limit", DAR: []string{dar(t)}})
	require.NoError(t, err)
	require.Equal(t, "numeric(38,10)", report.Type)
}
