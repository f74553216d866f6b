package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

func TestExport(t *testing.T) {
	t.Parallel()
	l := grown(120)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	folder := filepath.Join(t.TempDir(), "made")
	stdout, _ := printed(t, config.ExitDone, environ, "export", "--to", folder, "--updates=20", fmt.Sprint("--through=", l.Offset(30)))
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], fmt.Sprintf("after offset 0 up to %d: ", l.Offset(19)))
	require.Contains(t, lines[1], fmt.Sprintf("after offset %d up to %d: ", l.Offset(19), l.Offset(30)))
	stdout, _ = printed(t, config.ExitDone, environ, "export", "--to", folder)
	require.Contains(t, stdout, fmt.Sprintf("after offset %d up to ", l.Offset(30)))
	stdout, _ = printed(t, config.ExitDone, environ, "export", "--to", folder, "--check")
	require.Equal(t, "there is nothing new to export\n", stdout)

	manifests, err := filepath.Glob(filepath.Join(folder, "manifests", "*.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifests[0], []byte("{"), 0o600))
	_, stderr := printed(t, config.ExitProblem, environ, "export", "--to", folder)
	require.Contains(t, stderr, "is damaged")
	for _, flags := range [][]string{{}, {"--to", folder, "--updates=0"}, {"--to", folder, "--follow", "--through=5"}} {
		_, stderr = printed(t, config.ExitUsage, environ, append([]string{"export"}, flags...)...)
		require.Contains(t, stderr, "--")
	}
}
