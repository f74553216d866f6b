// Package layers counts, for tests, in how many layers the files of a package stand.
package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Count returns in how many layers the files of a folder's package stand, without its tests: each file uses functions,
// types, methods, constants and variables of files in the layers below it only. Files that use one another in a circle
// fail the test.
func Count(t *testing.T, folder string) int {
	t.Helper()
	return count(t, usesOf(t, folder))
}

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

func count(t *testing.T, uses map[string]map[string]string) (n int) {
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
