package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
)

func statusText(t *testing.T, environ map[string]string) string {
	t.Helper()
	code, stdout, stderr := command(t, environ, "status")
	require.Zero(t, code, stderr)
	return squeezed(stdout)
}

// What the tasks beside the stream brought is part of the report, and why they fail.
func TestStatusOfTheTasks(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	database := throwaway.Migrated(t, migrate)
	environ := map[string]string{"INDEXER_DATABASE_URL": database}
	conn := connect(t, database)
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	text := func() string { return statusText(t, environ) }
	require.Contains(t, text(), "packages not read yet")
	require.NotContains(t, text(), "lookups")

	exec(`INSERT INTO indexer.lookups (ledger_offset, node_id, contract_id, status, reason)
		VALUES (1, 0, 'a', 'wanted', NULL), (2, 0, 'b', 'found', NULL), (3, 0, 'c', 'found', NULL), (4, 0, 'd', 'not_found', NULL),
		(5, 0, 'e', 'unusable', 'nonsense')`)
	exec(`INSERT INTO indexer.tasks (task, succeeded_at, failed_at, failure) VALUES
		('lookups', '2026-01-01T10:00:00Z', '2026-01-01T11:00:00Z', E'no right\x1b[31m of "\\x07"'), ('vetting', NULL, '2026-01-02T11:00:00Z', 'absent'), ('updates', NULL, '2026-01-02T12:00:00Z', 'pruned; what to do: seed')`)
	require.Contains(t, text(), "updates nothing indexed yet\nfailed 2026-01-02T12:00:00Z: pruned; what to do: seed\n")
	require.Contains(t, text(), "lookups 1 wanted, 2 found, 1 not found, 1 unusable\npackages not read yet\n"+
		"task lookups failed 2026-01-01T11:00:00Z: no right\\x1b[31m of \"\\x07\"\ntask vetting failed 2026-01-02T11:00:00Z: absent\n")
	status := statusOf(t, environ)
	require.Equal(t, map[string]any{"wanted": 1.0, "found": 2.0, "not_found": 1.0, "unusable": 1.0}, status["lookups"])
	require.Equal(t, []any{
		map[string]any{"name": "lookups", "failing": true,
			"succeeded_at": "2026-01-01T10:00:00Z", "failed_at": "2026-01-01T11:00:00Z", "failure": "no right\x1b[31m of \"\\x07\""},
		map[string]any{"name": "updates", "failing": true, "failed_at": "2026-01-02T12:00:00Z", "failure": "pruned; what to do: seed"},
		map[string]any{"name": "vetting", "failing": true, "failed_at": "2026-01-02T11:00:00Z", "failure": "absent"},
	}, status["tasks"])

	exec(`INSERT INTO indexer.vetted_packages (synchronizer_ref, package_id) VALUES (1, 'p'), (1, 'q'), (2, 'p')`)
	exec(`UPDATE indexer.tasks SET succeeded_at = '2026-01-03T12:00:00Z'`)
	require.Contains(t, text(), "packages 3 vetted on 2 synchronizers, read 2026-01-03T12:00:00Z")
	require.NotContains(t, text(), "failed", "it works again")
	status = statusOf(t, environ)
	require.Equal(t, map[string]any{"vetted": 3.0, "synchronizers": 2.0, "changes": 0.0}, status["packages"])
	require.Equal(t, map[string]any{
		"name": "vetting", "failing": false, "succeeded_at": "2026-01-03T12:00:00Z", "failed_at": "2026-01-02T11:00:00Z", "failure": "absent",
	}, status["tasks"].([]any)[2])
}

// How far everything was verified is part of the report, and what differs.
func TestStatusOfTheVerification(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	database := throwaway.Migrated(t, migrate)
	environ := map[string]string{"INDEXER_DATABASE_URL": database}
	text := func() string { return statusText(t, environ) }
	require.NotContains(t, text(), "verified")
	require.NotContains(t, statusOf(t, environ), "verified")

	_, err := connect(t, database).Exec(t.Context(), `
		INSERT INTO indexer.checkpoints (stream, ledger_offset) VALUES ('updates', 100);
		INSERT INTO indexer.floors (stream, history_floor) VALUES ('updates', 5);
		INSERT INTO indexer.tasks (task, failed_at, failure) VALUES ('verification', '2026-01-01T11:00:00Z', 'no answer');
		INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest) VALUES
			('updates', 5, 40, now(), 'equal', 0, sha256('')), ('updates', 40, 50, now(), 'different', 3, sha256('')),
			('updates', 50, 60, now(), 'not_shown', 0, sha256('')),
			('transactions', 0, 9, now(), 'pruned', 0, sha256('')), ('transactions', 9, 12, now(), 'pruned', 0, sha256(''))`)
	require.NoError(t, err)
	require.Contains(t, text(), "verified up to offset 40, 60 behind the watermark\n1 of 5 windows differ from their source: run `indexer verify --repair`\n"+
		"1 of 5 windows could not be compared: their source does not show them any more\n"+
		"2 of 5 windows can't be compared: what they follow from was pruned here\n")
	require.Contains(t, text(), "task verification failed 2026-01-01T11:00:00Z: no answer")
	require.Equal(t, map[string]any{
		"offset": 40.0, "behind_offsets": 60.0, "seq": 0.0, "windows": 5.0, "different_windows": 1.0, "not_shown_windows": 1.0, "pruned_windows": 2.0,
	}, statusOf(t, environ)["verified"])
}
