package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

func TestViews(t *testing.T) {
	t.Parallel()
	slow.Long(t, "runs the daemon, and command after command beside it")
	l := grown(300)
	environ := map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": participantOf(t, l, sandbox.ServerOptions{}), "INDEXER_LISTEN": "",
	}
	_, stderr := printed(t, config.ExitProblem, environ, "views", "create", "--all")
	require.Contains(t, stderr, "no package is stored")
	stdout, _ := printed(t, config.ExitDone, environ, "views", "refresh")
	require.Equal(t, "no view was made\n", stdout)

	code, _, stderr := command(t, environ, "run", "--until-current", "--packages-interval=0")
	require.Equal(t, config.ExitDone, code, stderr)
	_, stderr = printed(t, config.ExitProblem, environ, "views", "create", "--template=Entry")
	require.Contains(t, stderr, "no package is stored")
	require.Regexp(t, `which --dar FILE gives: .*registry [0-9a-f]{64}`, stderr)
	dar := filepath.Join(t.TempDir(), "packages.dar")
	require.NoError(t, os.WriteFile(dar, sandbox.Archive(), 0o600))
	stdout, _ = printed(t, config.ExitDone, environ, "views", "create", "--template=Entry", "--dar", dar, "--schema=given")
	require.Regexp(t, `(?m)^made given.registry_entry, of template registry:Registry.Entry:Entry: [0-9]+ columns$`, stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "views", "list")
	require.Regexp(t, `(?m)^given.registry_entry +[0-9]+ +template registry:Registry.Entry:Entry$`, stdout)
	stdout, _ = printed(t, config.ExitFailed, environ, "views", "refresh", "--schema=given")
	require.Contains(t, stdout, "no package that is here has it; it stays as it is")
	stdout, _ = printed(t, config.ExitDone, environ, "views", "refresh", "--schema=given", "--dar", dar)
	require.Equal(t, 3, strings.Count(stdout, ": as it was\n"))
	_, stderr = printed(t, config.ExitUsage, environ, "views", "create", "--template=Entri", "--dar", dar)
	require.Contains(t, stderr, `there is no template or interface "Entri"`)
	printed(t, config.ExitDone, environ, "views", "drop", "--all", "--schema=given")

	p := start(t, environ, "run")
	db := connect(t, environ["INDEXER_DATABASE_URL"])
	for known := false; !known; time.Sleep(20 * time.Millisecond) {
		require.NoError(t, db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM ledger.packages WHERE package_name = 'registry' AND types = 'known')`).Scan(&known))
	}
	stdout, _ = printed(t, config.ExitDone, environ, "views", "create", "--template=Entry")
	require.Contains(t, stdout, "made typed.registry_entry, of template registry:Registry.Entry:Entry: ")
	require.Contains(t, stdout, "made typed.registry_entry_replace, of choice Entry_Replace of registry:Registry.Entry:Entry: ")
	stdout, _ = printed(t, config.ExitDone, environ, "views", "create", "--template", "#registry:Registry.Entry:Entry")
	require.Equal(t, 3, strings.Count(stdout, ": as it was\n"))
	stdout, _ = printed(t, config.ExitDone, environ, "views", "refresh")
	require.Equal(t, 3, strings.Count(stdout, ": as it was\n"))
	stdout, _ = printed(t, config.ExitDone, environ, "views", "list")
	require.Contains(t, stdout, "typed.registry_entry_read")

	stdout, _ = printed(t, config.ExitDone, environ, "views", "create", "--template=Entry", "--schema=mart")
	require.Contains(t, stdout, "made mart.registry_entry, ")
	stdout, _ = printed(t, config.ExitDone, environ, "views", "drop", "--all")
	require.Contains(t, stdout, "dropped typed.registry_entry, of template registry:Registry.Entry:Entry\n")
	stdout, _ = printed(t, config.ExitDone, environ, "views", "drop", "--all")
	require.Equal(t, "there was no view to drop\n", stdout)
	stdout, _ = printed(t, config.ExitDone, environ, "views", "list", "--schema=typed")
	require.Equal(t, "no view was made\n", stdout)

	for says, args := range map[string][]string{
		"name templates or interfaces": {"create"}, "or take them --all": {"create", "--all", "--template=Entry"}, "there is no template or interface": {"create", "--template=Nothing"},
		"is the indexer's own": {"create", "--all", "--schema=ledger"}, "begins with no digit": {"refresh", "--schema=1"},
	} {
		_, stderr := printed(t, config.ExitUsage, environ, append([]string{"views"}, args...)...)
		require.Contains(t, stderr, says)
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, config.ExitDone, p.wait())
}
