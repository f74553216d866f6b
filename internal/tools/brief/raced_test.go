package brief

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

// Each name in the Makefile's lists is of a test, and a test that tries less with the race detector, or nothing, is
// none of those that run only with it: nothing would run it in full.
func TestRacedTests(t *testing.T) {
	lists := listsOf(t)
	store, app, notRaced := lists["RACED_IN_STORE"], lists["RACED_IN_APP"], lists["NOT_RACED"]
	check := func(folder string, raced func(test string) bool, names ...string) {
		tests := testsOf(t, folder)
		for _, name := range names {
			require.True(t, slices.ContainsFunc(tests, func(f test) bool { return matches(name, f.name) }), "%s has no test %s", folder, name)
		}
		for _, f := range tests {
			require.False(t, f.lessRaced && raced(f.name), "%s of %s tries less with the race detector, and runs with it only", f.name, folder)
		}
	}
	anyOf := func(names []string) func(string) bool {
		return func(test string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return matches(name, test) })
		}
	}
	check("store", anyOf(store), store...)
	check("internal/app", anyOf(app), app...)
	for _, folder := range lists["RACED"] {
		check(folder, func(test string) bool { return !anyOf(notRaced)(test) })
	}
	var tests []test
	for _, folder := range []string{"ingest", "participant", "scan"} { // those that are named with the list
		tests = append(tests, testsOf(t, folder)...)
	}
	for _, name := range notRaced {
		require.True(t, slices.ContainsFunc(tests, func(f test) bool { return matches(name, f.name) }), name)
	}
}

func matches(name, test string) bool { return regexp.MustCompile("^(" + name + ")$").MatchString(test) }

// listsOf are the lists of words in the Makefile, by their names.
func listsOf(t *testing.T) map[string][]string {
	text, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	lists := map[string][]string{}
	for _, found := range regexp.MustCompile(`(?m)^(\w*RACED\w*) := (.*)$`).FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
		lists[found[1]] = strings.Fields(found[2])
	}
	require.Len(t, lists, 4)
	return lists
}

type test struct {
	name      string
	lessRaced bool // it calls a function of this package that heeds the race detector
}

func testsOf(t *testing.T, folder string) (tests []test) {
	files, err := filepath.Glob("../../../" + folder + "/*_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			found := test{name: f.Name.Name}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok {
					from, ok := call.X.(*ast.Ident)
					found.lessRaced = found.lessRaced || ok && slices.Contains([]string{"brief", "slow"}, from.Name) &&
						slices.Contains([]string{"Run", "Skip", "Once", "Sample"}, call.Sel.Name)
				}
				return true
			})
			tests = append(tests, found)
		}
	}
	return tests
}
