package store

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/layers"
)

// The files of store and audit stand in few layers: each uses only files below, so that it can be read with what it
// uses.
func TestFilesStandInLayers(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{".", "audit"} {
		n := layers.Count(t, folder)
		require.LessOrEqual(t, n, 10, folder)
		require.Greater(t, n, 3, "%s: the layers are distinguished", folder)
	}
}

// Each internal package of the store has a rule of the linter that says what it must not use, and doc.go names it.
func TestEachInternalPackageHasARule(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../.golangci.yaml")
	require.NoError(t, err)
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	folders, err := os.ReadDir("internal")
	require.NoError(t, err)
	for _, folder := range folders {
		if folder.Name() == "dbsqlc" { // generated
			continue
		}
		require.Contains(t, string(rules), "**/store/internal/"+folder.Name()+"/*.go")
		require.Regexp(t, `[ ,]`+folder.Name()+` \(`, strings.ReplaceAll(string(doc), "\n//", ""), "doc.go doesn't say what is in the package")
	}
}
