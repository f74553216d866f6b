package codegen

import (
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/typed"
)

// accounts is a view with a column of each type.
func accounts() View {
	v := View{Schema: "typed", Name: "bank_account", Of: "template bank:Bank.Account:Account", Comments: map[string]string{
		"contract_id": "The contract.", "limit": "limit: Optional of Numeric 10", "payload": "The whole payload\nas served.",
	}}
	for _, c := range []struct{ name, path, kind string }{
		{"contract_id", "@contract_id", "text"}, {"ledger_offset", "@ledger_offset", "bigint"}, {"node_id", "@node_id", "integer"}, {"active", "@active", "boolean"},
		{"signatories", "@signatories", "text[]"}, {"payload", "@payload", "jsonb"}, {"owner", "owner", "text"}, {"limit", "limit", "numeric(38,10)"},
		{"opened", "opened", "date"}, {"closes_at", "closesAt", "timestamp with time zone"}, {"count", "count", "bigint"}, {"open", "open", "boolean"}, {"status_tag", "#tag", "text"},
	} {
		v.Columns = append(v.Columns, typed.Column{Name: c.name, Path: []string{c.path}, Type: c.kind})
	}
	return v
}

func TestGo(t *testing.T) {
	t.Parallel()
	source, err := Go("rows", []View{accounts()})
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/rows.go.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), string(source))
	require.Regexp(t, regexp.MustCompile(`(?m)\A^// Code generated .* DO NOT EDIT\.$`), string(source), "tools know it by this line")
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	source, err := TypeScript([]View{accounts()})
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/rows.ts.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), string(source))
}

func TestCapitalized(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"bank_account": "BankAccount", "contract_id": "ContractID", "id": "ID", "type": "Type", "_1": "X1", "x_1": "X_1", "x1": "X1", "parties_1": "Parties_1", "": "X", "_": "X",
		"ünïcode": "Ünïcode", "漢字": "X漢字", "a$b": "A_b", "a b\x00": "A_b_", "ßx": "Xßx",
	} {
		require.Equal(t, want, capitalized(name), name)
	}
}

// hostile are views whose names are reserved words, fold to one another, or are anything.
func hostile() []View {
	var columns []typed.Column
	comments := map[string]string{}
	for i, name := range []string{
		"type", "func", "default", "class", "constructor", "select", "id", "i_d", "_id", "x_1", "x1", "x_1_2", "a__b", "a_b", "ab", "ünïcode", "漢字", "1", "", `"`, "`", "*/", "a\nb", "\x00",
		strings.Repeat("long", 15),
	} {
		columns = append(columns, typed.Column{Name: name, Path: []string{name}, Type: []string{"text", "jsonb", "date"}[i%3]})
		comments[name] = name + "*/\n`// "
	}
	var views []View
	for _, name := range []string{"date", "json", "select_a", "a", "type", "interface", "a_b", "ab", "i_d", "id", "object", "1", "`", "*/", "\n", "string"} {
		views = append(views, View{Schema: "typed", Name: name, Of: "*/ \n type x int", Columns: columns, Comments: comments})
	}
	return views
}

// Whatever names are, the file of Go is one that compiles, is formatted, and has all views and columns.
func TestGoOfAnyNames(t *testing.T) {
	t.Parallel()
	source, err := Go("rows", hostile())
	require.NoError(t, err)
	formatted, err := format.Source(source)
	require.NoError(t, err)
	require.Equal(t, string(formatted), string(source))
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "rows.go", source, parser.ParseComments)
	require.NoError(t, err)
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	_, err = config.Check("rows", files, []*ast.File{file}, nil)
	require.NoError(t, err)
	structs := 0
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		require.Len(t, s.Fields.List, len(hostile()[structs].Columns))
		for i, f := range s.Fields.List {
			require.True(t, f.Names[0].IsExported())
			tag, err := strconv.Unquote(f.Tag.Value)
			require.NoError(t, err)
			name, err := strconv.Unquote(strings.TrimPrefix(tag, "db:"))
			require.NoError(t, err)
			require.Equal(t, hostile()[structs].Columns[i].Name, name)
		}
		structs++
		return true
	})
	require.Equal(t, len(hostile()), structs)
}

// Nor does a name break out of its place in TypeScript: each line is one of few forms.
func TestTypeScriptOfAnyNames(t *testing.T) {
	t.Parallel()
	source, err := TypeScript(hostile())
	require.NoError(t, err)
	lines := regexp.MustCompile(`^(//.*|  /\*\* (?:[^*]|\*[^/])* \*/|/\*\* (?:[^*]|\*[^/])* \*/|export interface \p{Lu}[\p{L}\p{Nd}_]* \{|  ([A-Za-z_]\w*|"(?:[^"\\]|\\.)*"): [a-zA-Z\[\] |]+;|\}|)$`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSuffix(line, "\n")
		require.Regexp(t, lines, line)
		if strings.HasPrefix(line, "export") {
			require.False(t, seen[line], "it is there twice: %s", line)
			seen[line] = true
		}
	}
	require.Len(t, seen, len(hostile()))
	require.NotContains(t, seen, "export interface Date {", "columns have that type")

	compiler, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("the compiler of TypeScript (tsc) is not installed")
	}
	name := filepath.Join(t.TempDir(), "rows.ts")
	require.NoError(t, os.WriteFile(name, source, 0o666))
	output, err := exec.CommandContext(t.Context(), compiler, "--noEmit", "--strict", name).CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func TestAnyNameIsAnIdentifier(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		name := capitalized(rapid.String().Draw(r, "name"))
		if !token.IsIdentifier(name) || !token.IsExported(name) {
			r.Fatalf("%q", name)
		}
	})
}
