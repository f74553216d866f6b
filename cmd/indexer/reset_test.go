package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	slow "ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
)

func TestReset(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs command after command")
	l := grown(200)
	environ, truth := indexed(t, l, sandbox.ServerOptions{}, nil)
	require.Empty(t, sandbox.Diff(truth, storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))))
	to := l.Offset(120)
	stdout, _ := printed(t, config.ExitDone, environ, "reset", fmt.Sprint("--to-offset=", to))
	lines := strings.Join(strings.Fields(stdout), " ")
	require.Contains(t, lines, fmt.Sprintf("the watermark went back from offset %d to %d TABLE ROWS REMOVED updates 79 created ", l.End(), to))
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, to), storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))))

	stdout, _ = printed(t, config.ExitDone, environ, "reset", fmt.Sprint("--to-offset=", to))
	require.Equal(t, fmt.Sprintf("nothing was stored after offset %d\n", to), stdout)
	printed(t, config.ExitDone, environ, "run", "--until-current")
	require.Empty(t, sandbox.Diff(truth, storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))), "resumed")
}

// storedRows reads the relations that the sandbox knows the truth of.
func storedRows(t *testing.T, db *pgx.Conn) map[string][]sandbox.Row {
	t.Helper()
	got := map[string][]sandbox.Row{}
	for _, relation := range sandbox.Relations() {
		rows, err := db.Query(t.Context(), "SELECT row_to_json(r) FROM ledger."+relation+" r")
		require.NoError(t, err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		require.NoError(t, err)
		for _, text := range texts {
			row, err := sandbox.DecodeRow(relation, text)
			require.NoError(t, err)
			got[relation] = append(got[relation], row)
		}
	}
	return got
}

func TestResetRefusals(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	environ := map[string]string{"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate)}
	_, stderr := printed(t, config.ExitUsage, environ, "reset")
	require.Contains(t, stderr, "--to-offset")
	_, stderr = printed(t, config.ExitUsage, environ, "reset", "--to-offset=-1")
	require.Contains(t, stderr, "at least 0")
	_, stderr = printed(t, config.ExitProblem, environ, "reset", "--to-offset=1")
	require.Contains(t, stderr, "nothing has been indexed")
}
