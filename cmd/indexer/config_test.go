package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
)

// What `indexer config` prints is a configuration file of the same settings, without secrets.
func TestConfigPrintsAFile(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"INDEXER_DATABASE_URL": "postgres://u:hush@host/db", "INDEXER_PARTIES": "a,b"}
	code, printed, stderr := command(t, environ, "config", "--ledger-url=http://participant", "--max-rate=1.5", "--packages-interval=2h", "--no-topology")
	require.Equal(t, config.ExitDone, code, stderr)
	for _, line := range []string{
		"database-url: postgres://u:xxxxx@host/db # INDEXER_DATABASE_URL\n", "ledger-url: http://participant # flag\n", "max-rate: 1.5 # flag\n",
		"parties: [a, b] # INDEXER_PARTIES\n", "packages-interval: 2h0m0s # flag\n", "topology: false # flag\n", "lookup-rate: 5 # default\n",
	} {
		require.Contains(t, printed, line)
	}
	require.NotContains(t, printed, "hush")
	name := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(name, []byte(printed), 0o600))
	code, again, stderr := command(t, nil, "config", "--config="+name, "--json")
	require.Equal(t, config.ExitDone, code, stderr)
	var settings config.Settings
	require.NoError(t, json.Unmarshal([]byte(again), &settings))
	found := map[string]any{}
	for _, s := range settings {
		found[s.Name] = s.Value
	}
	require.Equal(t, []any{"http://participant", 1.5, []any{"a", "b"}, "2h0m0s", false},
		[]any{found["ledger-url"], found["max-rate"], found["parties"], found["packages-interval"], found["topology"]})
	require.Len(t, settings, strings.Count(printed, "\n"))

	code, _, stderr = command(t, nil, "run", "--config=nowhere.yaml")
	require.Equal(t, config.ExitUsage, code)
	require.Contains(t, stderr, "--config: open nowhere.yaml: no such file or directory")
}
