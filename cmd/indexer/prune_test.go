package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	l := grown(200)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	before := fmt.Sprint("--before=", l.Offset(120))
	stdout, _ := printed(t, config.ExitDone, environ, "prune", before)
	require.Contains(t, stdout, fmt.Sprintf("updates after offset 0 up to %d, which was recorded at 20", l.Offset(120)-1))
	require.Contains(t, strings.Join(strings.Fields(stdout), " "), "TABLE PARTITIONS ROWS ON THE DISK updates 1 120 ")
	require.Contains(t, stdout, " rows that stay are in the same partitions, and would be copied\n")
	require.Contains(t, stdout, "nothing was changed: add --apply")
	status, _ := printed(t, config.ExitDone, environ, "status")
	require.Contains(t, squeezed(status), "events complete after offset 0\n")
	require.NotContains(t, status, "pruned")

	stdout, _ = printed(t, config.ExitDone, environ, "prune", before, "--apply")
	require.Contains(t, stdout, " rows that stay are in the same partitions, and were copied\n")
	require.Contains(t, stdout, fmt.Sprintf(" went; what was active at offset %d stays: ", l.Offset(120)-1))
	require.Contains(t, stdout, fmt.Sprintf("events are complete, and what was active is known, from offset %d on\n", l.Offset(120)-1))
	status, _ = printed(t, config.ExitDone, environ, "status")
	require.Contains(t, squeezed(status), fmt.Sprintf("pruned up to offset %d\n", l.Offset(120)-1))
	require.Equal(t, len(l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, l.End())["active_contracts"]),
		len(storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))["active_contracts"]))

	stdout, _ = printed(t, config.ExitDone, environ, "prune", before, "--apply")
	require.Equal(t, fmt.Sprintf("there is nothing to prune: the events that are stored begin after offset %d\n", l.Offset(120)-1), stdout)

	folder := t.TempDir()
	printed(t, config.ExitDone, environ, "export", "--to", folder, fmt.Sprint("--through=", l.Offset(150)))
	stdout, _ = printed(t, config.ExitDone, environ, "prune", "--exported", folder, "--apply", fmt.Sprint("--before=", l.Offset(180)))
	require.Contains(t, stdout, fmt.Sprintf("up to offset %d, and not further: no manifest in %s has what is after offset %[1]d\n", l.Offset(150), folder))
	require.Contains(t, stdout, fmt.Sprintf("events are complete, and what was active is known, from offset %d on\n", l.Offset(150)))
	stdout, _ = printed(t, config.ExitDone, environ, "prune", "--exported", folder)
	require.Contains(t, stdout, "there is nothing to prune")
	_, stderr := printed(t, config.ExitProblem, environ, "prune", "--before=2100-01-01", "--apply")
	require.Contains(t, stderr, "nothing would be left")
	_, stderr = printed(t, config.ExitProblem, environ, "prune", fmt.Sprint("--before=", l.End()+1))
	require.Contains(t, stderr, "nothing would be left")
}
