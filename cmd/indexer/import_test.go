package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
)

func TestImport(t *testing.T) {
	t.Parallel()
	l := grown(60)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	folder := filepath.Join(t.TempDir(), "made")
	printed(t, config.ExitDone, environ, "export", "--to", folder, "--updates=20", fmt.Sprint("--through=", l.Offset(30)))
	other := map[string]string{"INDEXER_DATABASE_URL": throwaway.Database(t)}
	stdout, _ := printed(t, config.ExitDone, other, "import", folder)
	require.Contains(t, stdout, fmt.Sprintf("imported 31 updates; events are complete after offset 0 up to %d, where `indexer run` continues\n", l.Offset(30)))
	require.Contains(t, stdout, "packages; 0 windows have the digests with which they were sealed\n")
	stdout, _ = printed(t, config.ExitDone, other, "import", folder)
	require.Contains(t, stdout, "imported 0 updates; ")
	_, stderr := printed(t, config.ExitProblem, environ, "import", folder)
	require.Contains(t, stderr, "the export only up to")
	_, stderr = printed(t, config.ExitProblem, other, "import", folder, "--network")
	require.Contains(t, stderr, "leave --network out")
	_, stderr = printed(t, config.ExitUsage, other, "import", filepath.Join(folder, "nowhere"))
	require.Contains(t, stderr, "nowhere")
	_, stderr = printed(t, config.ExitUsage, other, "import")
	require.Contains(t, stderr, "<dir>")
}
