package app

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// A program that has the generated structs reads every row of every typed view, and loses nothing of it.
func TestGeneratedTypesReadEveryRow(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	if testing.Short() {
		t.Skip("it builds a program")
	}
	l := sandbox.NewLedger(sandbox.Options{Seed: 67})
	l.Grow(500)
	database, _ := withTypes(t, l, sandbox.ServerOptions{}, effects(), everyTypeKnown)
	reports, err := CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)
	generate := func(cfg Codegen) string {
		text, err := GenerateTypes(t.Context(), cfg, testLogger(t))
		require.NoError(t, err)
		return string(text)
	}
	source := generate(Codegen{Views: viewsOf(database), Package: "rows"})
	require.Equal(t, source, generate(Codegen{Views: viewsOf(database), Package: "rows"}))
	for _, has := range []string{"\npackage rows\n", "\tLimit *string `db:\"limit\"` // limit: Optional of Numeric 10\n", "\tActive bool `db:\"active\"`", "\tOpened *time.Time `db:\"opened\"`", "\tPayload json.RawMessage `db:\"payload\"`"} {
		require.Contains(t, strings.Join(strings.FieldsFunc(source, func(r rune) bool { return r == ' ' }), " "), has)
	}
	one := generate(Codegen{Views: viewsOf(database, "bank:Bank.Account:Account")})
	require.Contains(t, one, "\npackage typed\n")
	require.Equal(t, 3, strings.Count(one, " struct {\n"), "the template and two choices")

	output := runGenerated(t, source, database)
	for _, r := range reports {
		require.Contains(t, output, fmt.Sprintf("%s %d\n", r.Name, count(t, database, "typed."+r.Name)))
	}
	require.Equal(t, len(reports), strings.Count(output, "\n"))

	script := generate(Codegen{Views: viewsOf(database), TypeScript: true})
	require.Equal(t, len(reports), strings.Count(script, "export interface "))
	require.Contains(t, script, "  /** limit: Optional of Numeric 10 */\n  limit: string | null;\n")
	checkTypeScript(t, script)
}

// runGenerated builds a program of testdata with the generated package rows, and returns what it prints about a database.
func runGenerated(t *testing.T, source, database string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "rows.go", source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	all := "package main\n\nimport (\n\t\"context\"\n\t\"errors\"\n\n\t\"github.com/jackc/pgx/v5\"\n\n\t\"ledgerindexer/rows\"\n)\n\nfunc readAll(ctx context.Context, conn *pgx.Conn) error {\n\treturn errors.Join(\n"
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			name := d.Specs[0].(*ast.TypeSpec).Name.Name
			view, _, _ := strings.Cut(strings.TrimPrefix(d.Doc.Text(), name+" is a row of typed."), ":")
			all += fmt.Sprintf("\t\tread[rows.%[1]s](ctx, conn, %[2]q, rows.Select%[1]s),\n", name, view)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	for from, to := range map[string]string{"../../go.mod": "go.mod", "../../go.sum": "go.sum", "testdata/codegen/main.go": "main.go"} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		write(to, string(text))
	}
	write("all.go", all+"\t)\n}\n")
	write("rows/rows.go", source)
	for _, args := range [][]string{{"vet", "./..."}, {"run", ".", database}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		var stdout, stderr bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=-mod=mod")
		require.NoError(t, cmd.Run(), "%s", &stderr)
		if args[0] == "run" {
			return stdout.String()
		}
	}
	return ""
}

// checkTypeScript lets the compiler of TypeScript check a file, where it is installed.
func checkTypeScript(t *testing.T, script string) {
	t.Helper()
	compiler, err := exec.LookPath("tsc")
	if err != nil {
		t.Log("the compiler of TypeScript (tsc) is not installed: what is written is not checked by it")
		return
	}
	name := filepath.Join(t.TempDir(), "rows.ts")
	require.NoError(t, os.WriteFile(name, []byte(script), 0o666))
	output, err := exec.CommandContext(t.Context(), compiler, "--noEmit", "--strict", name).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func TestGenerateTypesRefusals(t *testing.T) {
	t.Parallel()
	database := throwaway.Migrated(t, migrate)
	_, err := GenerateTypes(t.Context(), Codegen{Views: viewsOf(database)}, testLogger(t))
	var problem *ledger.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.What, "no typed view was made in schema typed")

	execute(t, database, `INSERT INTO indexer.typed_views (view_schema, view_name, kind, package_name, module_name, entity_name, choice, columns) VALUES
		('typed', 'p_t', 'template', 'p', 'M', 'T', '', '[{"name": "contract_id", "path": ["@contract_id"], "type": "text"}, {"name": "x", "path": ["x"], "type": "money"}]')`)
	_, err = GenerateTypes(t.Context(), Codegen{Views: viewsOf(database)}, testLogger(t))
	require.ErrorContains(t, err, `column x of view typed.p_t has type "money"`)

	var usage *config.UsageError
	_, err = GenerateTypes(t.Context(), Codegen{Views: viewsOf(database, "U")}, testLogger(t))
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "there are p:M:T")
	for _, name := range []string{"func", "a-b", "1", "a b", "a\nb"} {
		_, err = GenerateTypes(t.Context(), Codegen{Views: viewsOf(database), Package: name}, testLogger(t))
		require.ErrorAs(t, err, &usage, name)
	}
}
