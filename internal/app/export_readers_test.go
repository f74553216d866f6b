package app

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readBy runs a command of readers.py, which reads what is exported with other programs' code, and returns the lines
// that it prints. packages is a folder of Python's packages that go before those installed; it may be empty.
func readBy(t *testing.T, packages, input string, args ...string) (lines []string) {
	t.Helper()
	python := filepath.Join(os.Getenv("TEST_READERS"), "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("the readers are not installed: `make readers` does it, and TEST_READERS names their folder")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"../features/export/exporttest/readers.py"}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1"}
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%q\n%s\n%s", args, input, stderr.String())
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" })
}

// duck runs a query in DuckDB: rows with tabs between the values.
func duck(t *testing.T, query string) []string {
	t.Helper()
	return readBy(t, "", query, "query")
}

// tablesRead reads the rows of tables of an export with an engine that knows Apache Iceberg.
func tablesRead(t *testing.T, packages, engine, folder string, names ...string) (rows map[string][]map[string]any) {
	t.Helper()
	args := []string{"rows", engine}
	for _, name := range names {
		args = append(args, filepath.Join(folder, name))
	}
	rows = map[string][]map[string]any{}
	for _, line := range readBy(t, packages, "", args...) {
		name, text, _ := strings.Cut(line, "\t")
		row := map[string]any{}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&row), text)
		rows[name] = append(rows[name], row)
	}
	return rows
}
