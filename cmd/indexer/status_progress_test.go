package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
)

// Long work that is under way is part of the report, as a process told of it lately.
func TestStatusOfTheProgress(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	database := throwaway.Migrated(t, migrate)
	environ := map[string]string{"INDEXER_DATABASE_URL": database}
	text := func() string { return statusText(t, environ) }
	require.NotContains(t, text(), "under way")
	require.NotContains(t, statusOf(t, environ), "under_way")

	conn := connect(t, database)
	_, err := conn.Exec(t.Context(), `
		INSERT INTO indexer.progress
			(stream, unit, began_at, from_exclusive, reached, to_inclusive, done, per_second, time_left, updated_at) VALUES
			('updates', 'updates', '2026-01-01T10:00:00Z', 1000, 2500, 5100000, 900, 21300.4, '00:04:00.5', now() - interval '10 seconds'),
			('snapshot', 'contracts', now(), 0, 70000, NULL, 70000, 5000, NULL, now()),
			('transactions', 'records', now(), 0, 12, NULL, 12, 0.4, NULL, now())`)
	require.NoError(t, err)
	shown := text()
	for _, line := range []string{
		`under way catching up: offset 2,500 of 5,100,000, 21,300 updates/s, 4 min left \(1\d s ago\)\n`,
		`under way storing the snapshot: contract 70,000, 5,000 contracts/s \(\d+ s ago\)\n`,
		`under way reading the transaction history: record 12, 0 records/s \(\d+ s ago\)\n`,
	} {
		require.Regexp(t, line, shown)
	}
	list := statusOf(t, environ)["under_way"].([]any)
	require.Len(t, list, 3)
	updates := list[2].(map[string]any)
	require.NotEmpty(t, updates["recorded_at"])
	delete(updates, "recorded_at")
	require.Equal(t, map[string]any{
		"stream": "updates", "unit": "updates", "began_at": "2026-01-01T10:00:00Z", "from": 1000.0, "at": 2500.0, "end": 5100000.0,
		"done": 900.0, "per_second": 21300.4, "seconds_left": 240.5,
	}, updates)
	require.NotContains(t, list[0], "end")
	require.NotContains(t, list[0], "seconds_left")

	_, err = conn.Exec(t.Context(), `UPDATE indexer.progress SET updated_at = now() - interval '1 minute'`)
	require.NoError(t, err)
	require.NotContains(t, text(), "under way", "whoever told is gone")
}
