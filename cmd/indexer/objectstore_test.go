package main

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/features/export/exporttest"
	"ledgerindexer/sandbox"
)

// Exporting, importing and pruning with an object store, which is accessed by variables of the process. So it does not
// run in parallel.
func TestObjectStore(t *testing.T) {
	l := grown(120)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	_, stderr := printed(t, config.ExitUsage, environ, "export", "--to", "s3://exports/ledger")
	require.Contains(t, stderr, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	store := exporttest.Store(t, "exports", nil)
	t.Setenv("AWS_ENDPOINT_URL", store)
	t.Setenv("AWS_ACCESS_KEY_ID", "someone")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "unspoken")

	printed(t, config.ExitDone, environ, "export", "--to", "s3://exports/ledger", "--updates=20")
	stdout, _ := printed(t, config.ExitDone, environ, "export", "--to", "s3://exports/ledger/", "--check")
	require.Equal(t, "there is nothing new to export\n", stdout)
	table, err := http.Get(store + "/exports/ledger/updates/metadata/v1.metadata.json")
	require.NoError(t, err)
	metadata, err := io.ReadAll(table.Body)
	require.NoError(t, err)
	require.NoError(t, table.Body.Close())
	require.Contains(t, string(metadata), `"location": "s3://exports/ledger/updates"`)
	stdout, _ = printed(t, config.ExitDone, environ, "prune", "--exported", "s3://exports/ledger", fmt.Sprint("--before=", l.Offset(30)), "--apply")
	require.Contains(t, stdout, fmt.Sprintf("events are complete, and what was active is known, from offset %d on\n", l.Offset(19)))
	_, stderr = printed(t, config.ExitProblem, environ, "export", "--to", "s3://nowhere/ledger")
	require.Contains(t, stderr, "make bucket nowhere")
	require.NotContains(t, stderr, "unspoken")
}
