package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nothing imports packages as empty ones: how the files of one package use one another is known without the others.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// usesOf returns, for each file of a package, the files whose functions, types, constants and variables it uses.
func usesOf(t *testing.T, folder string) map[string]map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	fset, uses := token.NewFileSet(), map[string]map[string]string{}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		files, uses[filepath.Base(name)] = append(files, file), map[string]string{}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}} // what others have is missing
	pkg, _ := config.Check(folder, fset, files, &info)
	for id, object := range info.Uses {
		fn, isFunc := object.(*types.Func)
		isMethod := isFunc && fn.Signature().Recv() != nil
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !isMethod {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(object.Pos()).Filename)
		if from != to {
			uses[from][to] = object.Name()
		}
	}
	return uses
}

// The files of store and audit stand in few layers: each uses only files below, so that it can be read with what it
// uses.
func TestFilesStandInLayers(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{".", "audit"} {
		n := layers(t, usesOf(t, folder))
		require.LessOrEqual(t, n, 10, folder)
		require.Greater(t, n, 3, "%s: the layers are distinguished", folder)
	}
}

// layers counts the layers of files. Files that use one another in a circle fail the test.
func layers(t *testing.T, uses map[string]map[string]string) (n int) {
	t.Helper()
	below := map[string]bool{} // in layers that are complete
	for ; len(below) < len(uses); n++ {
		var layer []string
		for file, used := range uses {
			open := slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(other string) bool { return !below[other] })
			if !below[file] && !open {
				layer = append(layer, file)
			}
		}
		if len(layer) == 0 {
			for file := range below {
				delete(uses, file)
			}
			require.Fail(t, "files use one another in a circle", "%v", uses)
		}
		for _, file := range layer {
			below[file] = true
		}
	}
	return n
}

// Each room of the store has a rule of the linter that says what it must not use, and doc.go names it.
func TestEachRoomHasARule(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../.golangci.yaml")
	require.NoError(t, err)
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	rooms, err := os.ReadDir("internal")
	require.NoError(t, err)
	for _, room := range rooms {
		if room.Name() == "dbsqlc" { // generated
			continue
		}
		require.Contains(t, string(rules), "**/store/internal/"+room.Name()+"/*.go")
		require.Regexp(t, `[ ,]`+room.Name()+` \(`, strings.ReplaceAll(string(doc), "\n//", ""), "doc.go doesn't say what is in the room")
	}
}
