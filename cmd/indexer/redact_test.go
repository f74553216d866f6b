package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	l := grown(200)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	conn := connect(t, environ["INDEXER_DATABASE_URL"])
	var ended, active, update, busy string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT (SELECT min(c.contract_id) FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
			WHERE NOT EXISTS (SELECT FROM ledger.active_contracts x WHERE x.contract_id = c.contract_id)),
		(SELECT min(contract_id) FROM ledger.active_contracts),
		(SELECT min(e.update_id) FROM ledger.exercised_events e WHERE NOT EXISTS (SELECT FROM ledger.created_events c WHERE c.ledger_offset = e.ledger_offset)),
		(SELECT min(c.update_id) FROM ledger.created_events c JOIN ledger.active_contracts a USING (contract_id))`).Scan(&ended, &active, &update, &busy))

	stdout, _ := printed(t, config.ExitDone, environ, "redact", "--contract", ended, "--reason", "requested")
	require.Regexp(t, `(?m)^created +1$`, stdout)
	require.Contains(t, stdout, "nothing was changed: add --apply to erase this for good\n")
	shown, _ := printed(t, config.ExitDone, environ, "contract", ended)
	require.NotContains(t, shown, "redacted")
	stdout, _ = printed(t, config.ExitDone, environ, "redact", "--contract", ended, "--reason", "requested", "--apply")
	require.Regexp(t, `(?m)^created +1$`, stdout)
	require.Contains(t, stdout, "it is redacted, and does not come back when it is read again\n")
	shown, _ = printed(t, config.ExitDone, environ, "contract", ended, "--ledger-url=")
	require.Regexp(t, `content +redacted at 20\S+ by \S+: requested\n`, shown)
	require.NotContains(t, shown, "payload")
	stdout, _ = printed(t, config.ExitDone, environ, "redact", "--contract", ended, "--reason", "again", "--apply")
	require.Regexp(t, `^it was redacted at 20\S+ by \S+: requested\nno content of it is stored\n`, stdout)

	printed(t, config.ExitDone, environ, "redact", "--update", update, "--reason", "requested", "--apply")
	shown, _ = printed(t, config.ExitDone, environ, "update", update)
	require.Contains(t, shown, "stored as the ledger shows it, without its content: redacted at 20")
	stdout, _ = printed(t, config.ExitDone, environ, "verify", "--all")
	require.Regexp(t, `redacted +1 contracts and 1 updates, compared without what was erased\n`, stdout)

	for what, c := range map[string]struct {
		args []string
		says string
	}{
		"active":            {[]string{"--contract", active}, "is active\nWhat to do: redact it after it was archived"},
		"created an active": {[]string{"--update", busy}, ", which update " + busy + " created, is active"},
		"unknown":           {[]string{"--contract", "00nobody"}, "knows no contract 00nobody"},
		"unknown update":    {[]string{"--update", "1220"}, "knows no update 1220"},
		"of the network":    {[]string{"--contract", ended, "--network"}, "schema"},
	} {
		_, stderr := printed(t, config.ExitProblem, environ, append([]string{"redact", "--reason=r", "--apply"}, c.args...)...)
		require.Contains(t, stderr, c.says, what)
	}
	_, err := conn.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %q SET default_transaction_read_only = on", conn.Config().Database))
	require.NoError(t, err)
	code, _, stderr := command(t, environ, "redact", "--contract", ended, "--reason=r", "--apply")
	require.NotEqual(t, config.ExitDone, code)
	require.Contains(t, stderr, "read-only transaction")
}
