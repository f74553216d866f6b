package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
)

// What the tasks beside the stream brought is part of the report, and why they fail.
func TestStatusOfTheTasks(t *testing.T) {
	database := throwaway.Migrated(t, migrate)
	environ := map[string]string{"INDEXER_DATABASE_URL": database}
	conn := connect(t, database)
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	text := func() string {
		t.Helper()
		code, stdout, stderr := command(t, environ, "status", "--sample=0")
		require.Zero(t, code, stderr)
		return squeezed(stdout)
	}
	require.Contains(t, text(), "packages not read yet")
	require.NotContains(t, text(), "lookups")

	exec(`INSERT INTO indexer.lookups (ledger_offset, node_id, contract_id, status, reason)
		VALUES (1, 0, 'a', 'wanted', NULL), (2, 0, 'b', 'found', NULL), (3, 0, 'c', 'found', NULL), (4, 0, 'd', 'not_found', NULL),
		(5, 0, 'e', 'unusable', 'nonsense')`)
	exec(`INSERT INTO indexer.tasks (task, succeeded_at, failed_at, failure) VALUES
		('lookups', '2026-01-01T10:00:00Z', '2026-01-01T11:00:00Z', E'no right\x1b[31m of "\\x07"'), ('packages', NULL, '2026-01-02T11:00:00Z', 'absent')`)
	require.Contains(t, text(), "lookups 1 wanted, 2 found, 1 not found, 1 unusable\nfailed 2026-01-01T11:00:00Z: no right\\x1b[31m of \"\\x07\"\n")
	require.Contains(t, text(), "packages not read yet\nfailed 2026-01-02T11:00:00Z: absent")
	status := statusOf(t, environ)
	require.Equal(t, map[string]any{
		"wanted": 1.0, "found": 2.0, "not_found": 1.0, "unusable": 1.0, "failing": true,
		"succeeded_at": "2026-01-01T10:00:00Z", "failed_at": "2026-01-01T11:00:00Z", "failure": "no right\x1b[31m of \"\\x07\"",
	}, status["lookups"])

	exec(`INSERT INTO indexer.vetted_packages (synchronizer_ref, package_id) VALUES (1, 'p'), (1, 'q'), (2, 'p')`)
	exec(`UPDATE indexer.tasks SET succeeded_at = '2026-01-03T12:00:00Z'`)
	require.Contains(t, text(), "packages 3 vetted on 2 synchronizers, read 2026-01-03T12:00:00Z")
	require.NotContains(t, text(), "failed", "it works again")
	status = statusOf(t, environ)
	require.Equal(t, map[string]any{
		"vetted": 3.0, "synchronizers": 2.0, "changes": 0.0, "failing": false,
		"succeeded_at": "2026-01-03T12:00:00Z", "failed_at": "2026-01-02T11:00:00Z", "failure": "absent",
	}, status["packages"])
}
