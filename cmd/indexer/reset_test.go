package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
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
	plan := strings.Join(strings.Fields(stdout), " ")
	rows := plan[strings.Index(plan, " updates 79 created "):strings.Index(plan, " the indexer would read it again")]
	require.Equal(t, fmt.Sprintf("the watermark would go back from offset %d to %d TABLE ROWS%s the indexer would read it again, "+
		"as far as its source still serves it; nothing was changed: add --apply", l.End(), to, rows), plan)
	require.Empty(t, sandbox.Diff(truth, storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))), "nothing was changed")
	stdout, _ = printed(t, config.ExitDone, environ, "reset", fmt.Sprint("--to-offset=", to), "--apply")
	require.Equal(t, fmt.Sprintf("the watermark went back from offset %d to %d TABLE ROWS REMOVED%s", l.End(), to, rows), strings.Join(strings.Fields(stdout), " "))
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects}, to), storedRows(t, connect(t, environ["INDEXER_DATABASE_URL"]))))

	stdout, _ = printed(t, config.ExitDone, environ, "reset", fmt.Sprint("--to-offset=", to), "--apply")
	require.Equal(t, fmt.Sprintf("nothing is stored after offset %d\n", to), stdout)
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
