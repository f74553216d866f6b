package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/recorded"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// pqsReader makes a role that may read, with schema pqs in its search path, and returns a connection of it.
func pqsReader(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	role, as := throwaway.Login(t, database, "")
	code, _, stderr := command(t, map[string]string{"INDEXER_DATABASE_URL": database}, "grant", role, "--all-parties")
	require.Zero(t, code, stderr)
	_, err := connect(t, database).Exec(t.Context(), "ALTER ROLE "+pgx.Identifier{role}.Sanitize()+" SET search_path = pqs")
	require.NoError(t, err)
	return connect(t, as)
}

// documentedPQS are the statements that the documentation of the Participant Query Store has, by their first number.
// They are other people's text, and lie beside the project.
func documentedPQS(t *testing.T) (names []string, statements map[string][]string) {
	t.Helper()
	text, err := os.ReadFile(recorded.Beside(t, "reference/pqs.md"))
	require.NoError(t, err)
	_, text6, found := strings.Cut(string(text), "\n## 6. ")
	require.True(t, found)
	statements = map[string][]string{}
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(text6, -1) {
		name, statement := "", ""
		for line := range strings.Lines(block[1]) {
			if comment, is := strings.CutPrefix(line, "-- "); is {
				name = strings.TrimSpace(strings.FieldsFunc(comment, func(r rune) bool { return r == ' ' || r == ',' })[0])
				continue
			}
			statement += line
			if strings.HasSuffix(strings.TrimSpace(line), ";") {
				if statements[name] == nil {
					names = append(names, name)
				}
				statements[name] = append(statements[name], strings.TrimSuffix(strings.TrimSpace(statement), ";"))
				statement = ""
			}
		}
		require.Empty(t, statement)
	}
	return names, statements
}

// cannotRun are the documented statements, by number and place, that don't run here, with what is said then. All but
// those of redacting and resetting don't run there either, or name the parts of its tables.
var cannotRun = map[string]string{
	// On the Participant Query Store they run.
	"D5 2": `"__contracts_14" does not exist`, "D54 1": `"__contracts_14" does not exist`, "D63 1": `"__contracts_14" does not exist`,
	"D68 1": `"__contracts_14_token_quantity_idx" does not exist`,
	"D9 1":  "was not redacted", "D9 2": "was not redacted", "D41 1": "was not redacted", "D42 1": "was not redacted",
	"D10 2": "not reset by SQL",
	// There they don't run, or not since long ago.
	"D11 1": "must be owner of view active_contracts", // and a view has no index
	"D39 1": `column "0000000000000a8000" does not exist`, "D40 1": `column "0000000000000a8000" does not exist`,
	"E3 1": `column "1350" does not exist`, "E9 1": `column "1250" does not exist`, "E6 2": "syntax error", "E8 2": "user_id does not exist",
	"E13 1": `column "fqn_type" does not exist`, "E14 1": `column "fqn_type" does not exist`,
}

// Whoever brings the statements of the Participant Query Store's documentation runs them, with rights in schema pqs
// alone.
func TestDocumentedStatementsOfPQS(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs a hundred statements")
	names, documented := documentedPQS(t)
	l := grown(400)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, map[string]string{"INDEXER_INTERFACES": "#bank-api:Bank.Api.HoldingV1:Holding"})
	printed(t, config.ExitDone, environ, "pqs", "enable")
	conn := pqsReader(t, environ["INDEXER_DATABASE_URL"])
	ctx := t.Context()

	var ended, event string
	var middle int64
	var at time.Time
	require.NoError(t, conn.QueryRow(ctx, "SELECT contract_id FROM archives() ORDER BY archived_at_offset LIMIT 1").Scan(&ended))
	require.NoError(t, conn.QueryRow(ctx, "SELECT exercise_event_id::text FROM exercises() LIMIT 1").Scan(&event))
	require.NoError(t, conn.QueryRow(ctx, `SELECT "offset", effective_at FROM transactions ORDER BY 1 OFFSET 200 LIMIT 1`).Scan(&middle, &at))
	ago := fmt.Sprintf("'%d seconds'", int(time.Since(at).Seconds())) // so long ago is in the middle of the ledger
	here, there := fmt.Sprint("'", middle, "'"), fmt.Sprint("'", l.End(), "'")
	values := strings.NewReplacer(
		"'package:My.Module:Template'", "'bank:Bank.Cash:Holding'", "'register:DA.Register:TokenOpen'", "'splice-amulet:Splice.Amulet:LockedAmulet'",
		"'register:DA.Register:Token'", "'splice-amulet:Splice.Amulet:Amulet'", "'TokenOpen'", "'LockedAmulet'", "'Token'", "'Amulet'",
		"'register:DA.Register:IssuerApproval'", "'bank:Bank.Account:Account'", "'DA.Register:IssuerApproval'", "'Bank.Account:Account'",
		"'IssuerApproval'", "'Account'", "'IssuerProposal'", "'Offer'", "'MyModule:MyTemplate'", "'Bank.Account:Account'",
		"'mypackage:My.App:MyTemplate'", "'bank:Bank.Account:Account'", "'your-module:YourTemplate'", "'Bank.Cash:LockedHolding'",
		"'test:Test.User:User'", "'bank:Bank.Account:Account'", "'test:Test.User:Alias'", "'bank:Bank.Cash:Holding'",
		"%MyTemplate%", "%Account%", "'Licensing:License'", "'Bank.Account:Account'",
		"'from_offset'", here, "'to_offset'", there, "'some_offset'", here, "'from'", here, "'to'", there, "'last_memoized_offset'", here, "'<offset>'", here,
		"'10'", here, "'<contract_id>'", "'"+ended+"'", "'<redaction_id>'", "'why'", "'<event_id>'", "'"+event+"'",
		"'30 days'", ago, "'3 days'", ago, "'90 days'", ago, "'PT2H'", ago,
		"active(?)", "active('Bank.Cash:LockedHolding')", "(?, ?)", "(0, 0)", "LIMIT ?", "LIMIT 10", "= ?", "= 'x'", "<clause>", "payload IS NOT NULL",
		"the_source", "active()", "the_key", "contract_id", "page_size", "10", "page_num", "1", "prev_page_last_key", "''")
	ran, failed := 0, map[string]string{}
	for _, name := range names {
		_, err := conn.Exec(ctx, "RESET ALL")
		require.NoError(t, err)
		for i, statement := range documented[name] {
			statement = values.Replace(statement)
			require.NotRegexp(t, `\?( |$|;|\))|'<`, statement, "a placeholder that the test does not know")
			if _, err := conn.Exec(ctx, statement); err != nil {
				failed[fmt.Sprint(name, " ", i+1)] = err.Error()
				continue
			}
			ran++
		}
	}
	for name, why := range cannotRun {
		require.Contains(t, failed[name], why, name)
		delete(failed, name)
	}
	require.Empty(t, failed, "they should run")
	require.Equal(t, 83, ran, "all that the page has")
	t.Logf("%d documented statements ran, %d can't", ran, len(cannotRun))
}

func TestPQSCommands(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	environ, _ := indexed(t, grown(120), sandbox.ServerOptions{}, nil)
	database := environ["INDEXER_DATABASE_URL"]
	stdout, _ := printed(t, config.ExitDone, environ, "pqs", "enable")
	require.Contains(t, stdout, "ALTER ROLE role SET search_path = pqs")
	reader := pqsReader(t, database)
	count := func() (n int) {
		t.Helper()
		require.NoError(t, reader.QueryRow(t.Context(), "SELECT count(*) FROM active()").Scan(&n))
		return n
	}
	require.Positive(t, count())
	printed(t, config.ExitDone, environ, "pqs", "enable")
	require.Positive(t, count(), "rights stay")

	owner := connect(t, database)
	exec := func(statement string) {
		t.Helper()
		_, err := owner.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	exec("CREATE VIEW public.report AS SELECT contract_id FROM pqs.active()")
	_, stderr := printed(t, config.ExitProblem, environ, "pqs", "disable")
	require.Contains(t, stderr, "view public.report")
	require.Positive(t, count())
	exec("DROP VIEW public.report")
	printed(t, config.ExitDone, environ, "pqs", "enable", "--pqs-schema=other")
	stdout, _ = printed(t, config.ExitDone, environ, "pqs", "disable")
	require.Equal(t, "schema pqs is removed\n", stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "pqs", "disable")
	require.Equal(t, "there is no schema pqs\n", stdout)
	var n int
	require.NoError(t, owner.QueryRow(t.Context(), "SELECT count(*) FROM other.active()").Scan(&n))
	require.Positive(t, n, "the other one is there")

	exec("CREATE SCHEMA mine")
	_, stderr = printed(t, config.ExitProblem, environ, "pqs", "enable", "--pqs-schema=mine")
	require.Contains(t, stderr, "not made by")
	_, stderr = printed(t, config.ExitProblem, environ, "pqs", "disable", "--pqs-schema=mine")
	require.Contains(t, stderr, "not made by")
	_, stderr = printed(t, config.ExitProblem, environ, "pqs", "enable", "--pqs-schema=select")
	require.Contains(t, stderr, "word of SQL")
	for _, name := range []string{"Pqs", "ledger", "indexer", "public", "a b", "x;y"} {
		_, stderr = printed(t, config.ExitUsage, environ, "pqs", "enable", "--pqs-schema="+name)
		require.Contains(t, stderr, "--pqs-schema")
	}
}
