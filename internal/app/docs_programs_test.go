package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// The page about types for programs is followed as it is written.
func TestTypesForPrograms(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	sqlc, err := exec.LookPath("sqlc")
	if built, _ := filepath.Glob("../../bin/sqlc-*/sqlc"); err != nil && len(built) == 1 {
		sqlc, err = filepath.Abs(built[0])
	}
	if err != nil {
		t.Skip("sqlc is not installed (make tools)")
	}
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("psql is not installed")
	}
	database, _, _ := typedWorld.indexed(t)
	_, err = CreateViews(t.Context(), viewsOf(database), testLogger(t))
	require.NoError(t, err)

	const page = "../../docs/tools/programs.md"
	folder := t.TempDir()
	run := func(input string, command ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir, cmd.Stdin = folder, strings.NewReader(input)
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	run(strings.Join(blocks(t, page, "psql"), "\n"), "psql", "-X", database)
	for name, language := range map[string]string{"queries.sql": "sqlc", "sqlc.yaml": "yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(blocks(t, page, language)[0]+"\n"), 0o600))
	}
	run("", sqlc, "generate")
	generated, err := os.ReadFile(filepath.Join(folder, "ledgerviews", "queries.sql.go"))
	require.NoError(t, err)
	row := strings.Join(strings.Fields(string(generated)), " ")
	require.Contains(t, row, "type LargeAccountsRow struct { ContractID *string Owner *string Limit pgtype.Numeric }")
}
