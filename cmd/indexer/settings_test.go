package main

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// Every command does the same, and the same rows are stored, whatever is set for the database.
func TestSettingsOfTheDatabaseChangeNothing(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs the daemon, and command after command beside it")
	l := grown(150)
	scan := httptest.NewServer(sandbox.NewScan(l, sandbox.ScanOptions{}))
	t.Cleanup(scan.Close)
	database, usual := throwaway.Strange(t)
	environ := map[string]string{
		"INDEXER_DATABASE_URL": database, "INDEXER_LEDGER_URL": participantOf(t, l, sandbox.ServerOptions{}),
		"INDEXER_LISTEN": "", "INDEXER_SHAPE": "ledger-effects", "INDEXER_BLOBS": "true",
	}
	withScan := func(args ...string) []string { return append(args, "--scan-url="+scan.URL) }
	for _, args := range [][]string{
		{"migrate"}, withScan("run", "--until-current"), withScan("check"), {"status"}, {"update", l.UpdateID(20)},
		{"reset", "--to-offset=100", "--apply"}, {"run", "--until-current"}, withScan("verify", "--all", "--repair"), {"reanchor", "--since=1d", "--apply"},
	} {
		code, stdout, stderr := command(t, environ, args...)
		require.Equal(t, config.ExitDone, code, "%s\n%s\n%s", args, stdout, stderr)
	}
	require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.LedgerEffects, Blobs: true}, l.End()), storedRows(t, usual)))
}
