package ledger

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every member that the decoder knows is in one of the samples, from which the tests of decoding take their bodies.
func TestEveryMemberIsInASample(t *testing.T) {
	t.Parallel()
	samples := bytes.Join([][]byte{
		plainUpdates(), everyUpdate(), plainEntries(), everyEntry(), plainRecords(), everyRecord(), []byte(lookedUp()), everyNetworkUpdate(),
		servedUpdates(t),
		vettedPage(`"x"`, sampleVetted, noneVetted),
		// Of pages, and of the answer to a change of what is vetted: their tests have bodies of their own.
		[]byte(`"lowestPageOffsetExclusive" "updates" "highestPageOffsetInclusive" "activeContracts" "activeAtOffset" "pastVettedPackages" "newVettedPackages"`),
		[]byte(networkSnapshot),
	}, nil)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := 0
	var missing []string
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			function, ok := call.Fun.(*ast.Ident)
			name, literal := call.Args[0].(*ast.BasicLit)
			if ok && literal && (function.Name == "must" || function.Name == "may") {
				found++
				if !bytes.Contains(samples, []byte(`"`+strings.Trim(name.Value, "`\"")+`"`)) {
					missing = append(missing, source+": "+name.Value)
				}
			}
			return true
		})
	}
	require.Empty(t, missing)
	require.Greater(t, found, 100)
}
