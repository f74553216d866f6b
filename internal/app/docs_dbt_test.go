package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"ledgerindexer/store"
)

// model is a file of the dbt project.
type model struct {
	name, sql    string
	materialized string   // view, table or incremental
	key          []string // of an incremental one that replaces rows
	after        []string // the models that it refers to
}

var (
	dbtConfig      = regexp.MustCompile(`\{\{ config\(([^}]*)\) \}\}\n`)
	dbtSource      = regexp.MustCompile(`\{\{ source\('ledger', '(\w+)'\) \}\}`)
	dbtRef         = regexp.MustCompile(`\{\{ ref\('(\w+)'\) \}\}`)
	dbtIncremental = regexp.MustCompile(`(?s)\{% if is_incremental\(\) %\}\n(.*?)\{% endif %\}\n`)
	dbtQuoted      = regexp.MustCompile(`'(\w+)'`)
)

const dbtFolder = "../../docs/dbt/"

// dbtFiles are the SQL files that a pattern names.
func dbtFiles(t *testing.T, pattern string) (files []model) {
	t.Helper()
	paths, err := filepath.Glob(dbtFolder + pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		m := model{name: strings.TrimSuffix(filepath.Base(path), ".sql"), sql: string(text), materialized: "table"}
		if strings.Contains(path, "/staging/") {
			m.materialized = "view"
		}
		if config := dbtConfig.FindStringSubmatch(m.sql); config != nil {
			m.materialized = "incremental"
			require.Contains(t, config[1], "materialized='incremental'", path)
			if _, key, found := strings.Cut(config[1], "unique_key="); found {
				for _, column := range dbtQuoted.FindAllStringSubmatch(key, -1) {
					m.key = append(m.key, column[1])
				}
			}
		}
		for _, ref := range dbtRef.FindAllStringSubmatch(m.sql, -1) {
			m.after = append(m.after, ref[1])
		}
		files = append(files, m)
	}
	return files
}

// render is what dbt makes of a model's text.
func (m *model) render(t *testing.T, upTo int64, again bool) string {
	t.Helper()
	sql := dbtConfig.ReplaceAllString(m.sql, "")
	kept := ""
	if again {
		kept = "$1"
	}
	sql = dbtIncremental.ReplaceAllString(sql, kept)
	sql = dbtSource.ReplaceAllString(sql, "ledger.$1")
	sql = dbtRef.ReplaceAllString(sql, "mart_of_dbt.$1")
	sql = strings.NewReplacer("{{ this }}", "mart_of_dbt."+m.name, "{{ var('up_to') }}", fmt.Sprint(upTo)).Replace(sql)
	require.NotRegexp(t, `\{[{%]`, sql, "%s: what this test does not render", m.name)
	return sql
}

// inOrder are models after those that they refer to.
func inOrder(t *testing.T, models []model) (ordered []model) {
	t.Helper()
	for len(ordered) < len(models) {
		before := len(ordered)
		for _, m := range models {
			known := func(name string) bool {
				return slices.ContainsFunc(ordered, func(o model) bool { return o.name == name })
			}
			if !known(m.name) && !slices.ContainsFunc(m.after, func(name string) bool { return !known(name) }) {
				ordered = append(ordered, m)
			}
		}
		require.Greater(t, len(ordered), before, "models refer to one another, or to none that there is")
	}
	return ordered
}

// build makes or continues a model as dbt does.
func (m *model) build(t *testing.T, conn *pgx.Conn, upTo int64, again bool) {
	t.Helper()
	name, sql := "mart_of_dbt."+m.name, m.render(t, upTo, again)
	var statements []string
	switch {
	case m.materialized == "view":
		statements = []string{"CREATE OR REPLACE VIEW " + name + " AS " + sql}
	case m.materialized == "incremental" && again:
		statements = []string{"CREATE TEMPORARY TABLE added AS " + sql}
		if len(m.key) > 0 {
			key := strings.Join(m.key, ", ")
			statements = append(statements, fmt.Sprintf("DELETE FROM %s WHERE (%s) IN (SELECT %s FROM added)", name, key, key))
		}
		statements = append(statements, "INSERT INTO "+name+" SELECT * FROM added", "DROP TABLE added")
	default:
		statements = []string{"DROP TABLE IF EXISTS " + name, "CREATE TABLE " + name + " AS " + sql}
	}
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err, "%s: %s", m.name, statement)
	}
}

// failing returns the names of the project's tests that find something.
func failing(t *testing.T, conn *pgx.Conn, upTo int64) (names []string) {
	t.Helper()
	for _, test := range dbtFiles(t, "tests/*.sql") {
		var found int64
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM ("+test.render(t, upTo, true)+") f").Scan(&found), test.name)
		if found > 0 {
			names = append(names, test.name)
		}
	}
	return names
}

// testDBT builds the models up to an offset, continues them to the end, and compares them with the ledger.
func (d *documented) testDBT(t *testing.T) {
	role, as := limitedRole(t, d.database, "_dbt", store.Reader{AllParties: true}) // as the page says
	recipe := statements(section(t, dbtFolder+"README.md", "The role needs", "`~/.dbt"))
	require.Equal(t, "CREATE ROLE dbt LOGIN PASSWORD '...'", recipe[0])
	for _, statement := range recipe[1:] {
		execute(t, d.database, strings.NewReplacer("mart", "mart_of_dbt", "dbt", pgx.Identifier{role}.Sanitize()).Replace(statement))
	}
	conn, err := pgx.Connect(t.Context(), as)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	run := func(statement string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	var declared struct {
		Sources []struct {
			Name   string
			Tables []struct{ Name string }
		}
	}
	text, err := os.ReadFile(dbtFolder + "models/sources.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &declared))
	require.Len(t, declared.Sources, 1)
	var sources []string
	for _, table := range declared.Sources[0].Tables {
		sources = append(sources, table.Name)
	}
	models := inOrder(t, append(dbtFiles(t, "models/staging/*.sql"), dbtFiles(t, "models/marts/*.sql")...))
	for _, m := range append(dbtFiles(t, "tests/*.sql"), models...) {
		for _, source := range dbtSource.FindAllStringSubmatch(m.sql, -1) {
			require.Contains(t, sources, source[1], "%s: a source that sources.yml does not have", m.name)
		}
		if m.materialized == "incremental" && m.name != "turns" {
			require.Contains(t, m.after, "turns", "%s: what changes while a run copies is known only if the run noted the last rewrite before", m.name)
		}
	}
	counts := func() map[string]int {
		n := map[string]int{}
		for _, m := range models {
			n[m.name] = count(t, d.database, "mart_of_dbt."+m.name)
		}
		return n
	}
	var before map[string]int
	for turn, upTo := range []int64{d.n, d.ledger.End()} {
		for _, m := range models {
			m.build(t, conn, upTo, turn > 0)
		}
		require.Empty(t, failing(t, conn, upTo))
		if turn == 0 {
			before = counts()
		}
	}
	after := counts()
	for _, name := range []string{"accounts", "archivals", "account_lives", "turns"} {
		require.Greater(t, after[name], before[name], name)
	}
	accounts := only(d.rows["created_events"], both(is("entity_name", "Account"), is("origin", "transaction"), is("acs_delta", true)))
	require.Equal(t, len(accounts), after["accounts"])
	require.Equal(t, len(only(d.rows["archived_events"], is("acs_delta", true))), after["archivals"])
	require.Equal(t, len(d.rows["transfer_receivers"]), after["payments"])

	run("DELETE FROM mart_of_dbt.accounts WHERE ledger_offset = (SELECT min(ledger_offset) FROM mart_of_dbt.accounts)")
	run("INSERT INTO mart_of_dbt.payments SELECT * FROM mart_of_dbt.payments LIMIT 1")
	execute(t, d.database, "INSERT INTO indexer.rewrites (rewrite, stream, from_exclusive, to_inclusive, reason) VALUES (1, 'updates', 0, 1, 'repaired')")
	defer execute(t, d.database, "DELETE FROM indexer.rewrites")
	require.Equal(t, []string{"accounts_are_all_here", "keys_are_unique", "nothing_was_rewritten"}, failing(t, conn, d.ledger.End()))
}
