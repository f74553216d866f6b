package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/layers"
)

// The files that put the parts together stand in few layers: each uses only files below.
func TestFilesStandInLayers(t *testing.T) {
	t.Parallel()
	n := layers.Count(t, ".")
	require.LessOrEqual(t, n, 10)
	require.Greater(t, n, 3, "the layers are distinguished")
}
