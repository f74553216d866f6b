package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
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

// SIGHUP puts in force what can change, says what can't, and keeps the old configuration where the new one has an
// error.
func TestReload(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs the program")
	name := filepath.Join(t.TempDir(), "c.yaml")
	database := throwaway.Migrated(t, migrate)
	write := func(more string) {
		t.Helper()
		text := "database-url: '" + database + "'\nlisten: ''\n" + more
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("log-level: info\n")
	p := start(t, map[string]string{"INDEXER_CONFIG": name, "INDEXER_LEDGER_URL": participantOf(t, grown(20), sandbox.ServerOptions{})}, "run")
	p.until("caught up")
	write("lookup-rate: 9\nmax-rate: 50\nverify-rate: 0\nblobs: true\n")
	p.signal(syscall.SIGHUP)
	require.Equal(t, "lookup-rate: 9, max-rate: 50", p.until("read the configuration again")["changed"])
	require.Equal(t, "blobs, verify-rate", p.until("these settings need a restart")["settings"])
	write("lookup-rate: 10\nmax-rat: 50\n")
	p.signal(syscall.SIGHUP)
	require.Contains(t, p.until("the configuration can't be used: the one before stays in force")["error"], "did you mean max-rate?")
	write("lookup-rate: 9\nmax-rate: 50\n")
	p.signal(syscall.SIGHUP)
	require.Empty(t, p.until("read the configuration again")["changed"])
	p.signal(syscall.SIGTERM)
	require.Equal(t, config.ExitDone, p.wait(), p.text())
}
