package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/layers"
)

// The files of the loops stand in few layers: each uses only files below, so that it can be read with what it uses.
func TestFilesStandInLayers(t *testing.T) {
	n := layers.Count(t, ".")
	require.LessOrEqual(t, n, 10)
	require.Greater(t, n, 3, "the layers are distinguished")
}
