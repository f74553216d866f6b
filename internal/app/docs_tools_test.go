package app

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// blocks are the fenced blocks of a language in a document.
func blocks(t *testing.T, path, language string) (list []string) {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, part := range strings.Split(string(file), "\n```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(part, "\n```")
		require.True(t, closed, "%s: a block is not closed", path)
		list = append(list, block)
	}
	return list
}

// macros are what Grafana makes of its own words.
var macros = strings.NewReplacer(
	"$__timeGroupAlias(record_time, $__interval)", `floor(extract(epoch FROM record_time) / 60) * 60 AS "time"`,
	"$__timeGroupAlias(t.date, $__interval)", `floor(extract(epoch FROM t.date) / 60) * 60 AS "time"`,
	"$__timeFilter(record_time)", "record_time BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-02T00:00:00Z'",
	"$__timeFilter(t.date)", "t.date BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-02T00:00:00Z'",
)

// testTools runs the SQL of the pages about tools. What makes something is the owner's.
func (d *documented) testTools(t *testing.T) {
	owner, err := pgx.Connect(t.Context(), d.database)
	require.NoError(t, err)
	defer owner.Close(context.WithoutCancel(t.Context()))
	pages, err := filepath.Glob("../../docs/tools/*.md")
	require.NoError(t, err)
	ran := 0
	for _, page := range pages {
		for _, block := range blocks(t, page, "sql") {
			for statement := range strings.SplitSeq(strings.TrimSuffix(macros.Replace(block), ";"), ";\n") {
				ran++
				if strings.HasPrefix(statement, "CREATE ") || strings.HasPrefix(statement, "GRANT ") {
					_, err := owner.Exec(t.Context(), strings.ReplaceAll(statement, "analyst", pgx.Identifier{d.conn.Config().User}.Sanitize()))
					require.NoError(t, err, statement)
					continue
				}
				require.NotEmpty(t, d.ask(t, d.query(t, statement)), statement)
			}
		}
	}
	require.Greater(t, ran, 10)
}

// environment is where a program of libpq finds the database, as the role that reads it.
func (d *documented) environment() []string {
	c := d.conn.Config()
	return append(os.Environ(), "PGHOST="+c.Host, "PGPORT="+text(c.Port), "PGUSER="+c.User, "PGPASSWORD="+c.Password, "PGDATABASE="+c.Database, "PGOPTIONS=")
}

// program runs a program in a folder of its own, and returns what it printed.
func (d *documented) program(t *testing.T, input string, command ...string) (folder, printed string) {
	t.Helper()
	folder = t.TempDir()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = folder, d.environment(), strings.NewReader(input)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Run(), "%s\n%s", input, &output)
	return folder, output.String()
}

// testPSQL runs the page about psql in psql.
func (d *documented) testPSQL(t *testing.T) {
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("psql is not installed")
	}
	folder, printed := d.program(t, strings.Join(blocks(t, "../../docs/tools/psql.md", "psql"), "\n"), "psql", "-X")
	require.Contains(t, printed, `"owner"`, "the payload")
	file, err := os.ReadFile(filepath.Join(folder, "created.csv"))
	require.NoError(t, err)
	require.Equal(t, len(d.rows["created_events"])+1, bytes.Count(file, []byte("\n")))
}

// checks are what must be true after the page about Python has run.
const checks = `
from decimal import Decimal

with engine.connect() as db:
    want = db.execute(text("SELECT sum(amount) FROM ledger.holding_totals WHERE admin_signed")).scalar()
    rows = db.execute(text("SELECT count(*) FROM ledger.created_events")).scalar()
assert isinstance(want, Decimal) and sum(by_instrument) == want, (by_instrument, want)
assert len(created) == rows > 1000, (len(created), rows)
assert len(frame) == rows and offset > 0, (len(frame), rows, offset)
assert not frame.duplicated(["ledger_offset", "node_id"]).any()
print("all is true")
`

// testPython runs the page about Python in a Python that has what it needs.
func (d *documented) testPython(t *testing.T) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import pandas, psycopg2, sqlalchemy").Run() == nil {
			_, printed := d.program(t, strings.Join(blocks(t, "../../docs/tools/python.md", "python"), "\n")+checks, python, "-")
			require.Contains(t, printed, "all is true")
			return
		}
	}
	t.Skip("no Python with pandas, psycopg2 and SQLAlchemy is installed")
}
