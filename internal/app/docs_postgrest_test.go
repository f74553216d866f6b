package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/store"
)

// testPostgRESTRules holds what PostgREST and pg_graphql need of a schema against the catalog.
func (d *documented) testPostgRESTRules(t *testing.T) {
	for rule, query := range map[string]string{
		"a function without names of its arguments, or with results among them": `
			SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'ledger'::regnamespace AND p.pronargs > 0
			AND (cardinality(p.proargnames) < p.pronargs OR '' = ANY (p.proargnames) OR p.proargmodes && '{o,b,v}')`,
		"a word that requests use otherwise": `
			WITH used (name, what) AS (
				SELECT unnest(p.proargnames), p.proname FROM pg_proc p WHERE p.pronamespace = 'ledger'::regnamespace
				UNION ALL
				SELECT a.attname, c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 WHERE c.relnamespace = 'ledger'::regnamespace)
			SELECT name, what FROM used WHERE name IN ('select', 'order', 'limit', 'offset', 'columns', 'on_conflict', 'and', 'or', 'not')`,
		"a function that GET can't call, beside the one that waits": `
			SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'ledger'::regnamespace AND p.provolatile = 'v' AND p.proname <> 'wait_for_offset'`,
		"a result that is neither a value nor rows with columns": `
			SELECT p.proname FROM pg_proc p JOIN pg_type r ON r.oid = p.prorettype WHERE p.pronamespace = 'ledger'::regnamespace
			AND (r.typtype = 'p' AND p.proallargtypes IS NULL OR p.prokind <> 'f')`,
		"a name that GraphQL does not allow": `
			SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
			WHERE c.relnamespace = 'ledger'::regnamespace AND (a.attname !~ '^[a-z][a-z0-9_]*$' OR c.relname !~ '^[a-z][a-z0-9_]*$')`,
	} {
		require.Empty(t, d.ask(t, query), rule)
	}
}

// roles runs docs/tools/postgrest.sql with names of this test's own. It returns how to connect as the one that logs in,
// and the other's name.
func (d *documented) roles(t *testing.T) (login, reads string) {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), d.database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	c := d.conn.Config()
	login, reads = c.Database+"_postgrest", c.Database+"_reads"
	for _, role := range []string{reads, login} {
		_, err := owner.Exec(t.Context(), "CREATE ROLE "+role+" NOINHERIT")
		require.NoError(t, err)
		t.Cleanup(func() {
			_, err := owner.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+role+"; DROP ROLE "+role)
			require.NoError(t, err)
		})
	}
	_, err = owner.Exec(t.Context(), "ALTER ROLE "+login+" LOGIN PASSWORD 'secret-of-a-test'")
	require.NoError(t, err)
	file, err := os.ReadFile("../../docs/tools/postgrest.sql")
	require.NoError(t, err)
	ran := 0
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "GRANT ") || strings.HasPrefix(line, "ALTER ROLE ") && !strings.Contains(line, "PASSWORD") {
			_, err := owner.Exec(t.Context(), strings.NewReplacer("reader", reads, "postgrest", login).Replace(line))
			require.NoError(t, err, line)
			ran++
		}
	}
	require.Equal(t, 5, ran)
	db, err := store.Open(store.Config{URL: d.database})
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Grant(t.Context(), store.Reader{Role: reads, AllParties: true})
	require.NoError(t, err)
	return fmt.Sprintf("host=%s port=%d user=%s password=secret-of-a-test dbname=%s", c.Host, c.Port, login, c.Database), reads
}

// selected is what a request selects, in SQL.
func selected(columns string) string {
	var list []string
	for column := range strings.SplitSeq(columns, ",") {
		if alias, expression, renamed := strings.Cut(column, ":"); renamed {
			column = strings.Replace(expression, "->>owner", "->>'owner'", 1) + " AS " + alias
		}
		list = append(list, column)
	}
	return strings.Join(list, ", ")
}

// sqlOf is the query that PostgREST makes of one of the page's requests, which use a few of its words only.
func (d *documented) sqlOf(t *testing.T, request string) string {
	t.Helper()
	quoted := func(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }
	_, rest, _ := strings.Cut(request, " ")
	target, body, _ := strings.Cut(rest, " ")
	path, query, _ := strings.Cut(target, "?")
	name, isCall := strings.CutPrefix(path, "/rpc/")
	named := map[string]bool{}
	for _, argument := range texts(t, d.database, "SELECT unnest(proargnames[:pronargs]) FROM pg_proc WHERE proname = $1 AND pronamespace = 'ledger'::regnamespace", name) {
		named[argument] = isCall
	}
	var arguments, conditions []string
	columns, order, limit := "*", "", ""
	if body != "" {
		var given map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &given), request)
		for argument, value := range given {
			arguments = append(arguments, argument+" => "+quoted(text(value)))
		}
	}
	for part := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		operator, operand, _ := strings.Cut(value, ".")
		switch {
		case key == "":
		case named[key]:
			arguments = append(arguments, key+" => "+quoted(value))
		case key == "select":
			columns = selected(value)
		case key == "order":
			order = " ORDER BY " + strings.ReplaceAll(value, ".", " ")
		case key == "limit":
			limit = " LIMIT " + value
		case operator == "is":
			conditions = append(conditions, key+" IS "+operand)
		default:
			sign, known := map[string]string{"eq": " = ", "gt": " > ", "cs": " @> "}[operator]
			require.True(t, known, request)
			conditions = append(conditions, key+sign+quoted(operand))
		}
	}
	from := "ledger." + strings.TrimPrefix(name, "/")
	if isCall {
		from += "(" + strings.Join(arguments, ", ") + ") x"
	}
	return "SELECT " + columns + " FROM " + from + " WHERE " + strings.Join(append(conditions, "true"), " AND ") + order + limit
}

// testPostgREST makes the requests of the page about PostgREST.
func (d *documented) testPostgREST(t *testing.T) {
	requests := map[string]int{} // and how many rows they bring
	for request := range strings.SplitSeq(blocks(t, "../../docs/tools/postgrest.md", "http")[0], "\n") {
		for _, name := range []string{"contract", "party", "n"} {
			request = strings.ReplaceAll(request, "$"+name, d.given[name])
		}
		requests[request] = len(d.ask(t, d.sqlOf(t, request)))
		require.Positive(t, requests[request], request)
	}
	require.Len(t, requests, 20)
	login, reads := d.roles(t)
	conn, err := pgx.Connect(t.Context(), login)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SELECT FROM ledger.updates LIMIT 1")
	require.ErrorContains(t, err, "permission denied", "the role that logs in reads nothing itself")
	_, err = conn.Exec(t.Context(), "SET ROLE "+reads+"; SELECT FROM ledger.updates LIMIT 1")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))

	program, err := exec.LookPath("postgrest")
	if err != nil {
		t.Skip("postgrest is not installed: its requests are not made")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, listener.Close())
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "PGRST_DB_URI="+login, "PGRST_DB_SCHEMAS=ledger", "PGRST_DB_ANON_ROLE="+reads, "PGRST_SERVER_HOST=127.0.0.1", "PGRST_SERVER_PORT="+port)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Start())
	defer func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}()
	base := "http://127.0.0.1:" + port
	eventually(t, "PostgREST answers", func() bool {
		response, err := http.Get(base + "/rpc/latest_offset")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	for request, rows := range requests {
		require.Len(t, d.request(t, base, request), rows, request)
	}
	require.Equal(t, []any{json.Number(fmt.Sprint(d.ledger.End()))}, d.request(t, base, "GET /rpc/latest_offset"))
}

// request makes a request of the page, and returns its rows, or the one value.
func (d *documented) request(t *testing.T, base, line string) []any {
	t.Helper()
	method, rest, _ := strings.Cut(line, " ")
	target, body, _ := strings.Cut(rest, " ")
	path, query, _ := strings.Cut(target, "?")
	var encoded []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		encoded = append(encoded, name+"="+url.QueryEscape(value))
	}
	request, err := http.NewRequestWithContext(t.Context(), method, base+path+"?"+strings.Join(encoded, "&"), strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", line, answer)
	decoder := json.NewDecoder(strings.NewReader(string(answer)))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "%s: %s", line, answer)
	if rows, is := value.([]any); is {
		return rows
	}
	return []any{value}
}
