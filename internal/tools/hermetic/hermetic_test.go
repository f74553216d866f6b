package hermetic

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test program has nothing of whoever runs it, and what it starts has what it chose.
func TestWhoRunsTheTestsDoesNotMatter(t *testing.T) {
	t.Parallel()
	const child = "TEST_HERMETIC_CHILD"
	theirs := []string{"INDEXER_SCAN_URL", "PGHOST", "OTEL_EXPORTER_OTLP_ENDPOINT", "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS",
		"HTTPS_PROXY", "https_proxy", "SANDBOX_UPDATES", "TZ", "LC_ALL"}
	inherited := func() (names []string) {
		for _, name := range theirs {
			if _, there := os.LookupEnv(name); there {
				names = append(names, name)
			}
		}
		return names
	}
	switch os.Getenv(child) {
	case "of somebody":
		require.Empty(t, inherited())
		require.Equal(t, "/cache", os.Getenv("GOCACHE"))
	case "of a test":
		require.Equal(t, theirs, inherited())
	default:
		require.Empty(t, inherited())
		run := func(what string, environment ...string) {
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
			cmd.Env = append(environment, child+"="+what, "GOCACHE=/cache")
			for _, name := range theirs {
				cmd.Env = append(cmd.Env, name+"=theirs")
			}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		run("of somebody")
		run("of a test", os.Environ()...)
	}
}

// Every package with tests has its environment cleared.
func TestEveryTestChoosesItsEnvironment(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	tested, hermetic := map[string]bool{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		tested[folder] = true
		for _, imported := range file.Imports {
			if imported.Path.Value == `"ledgerindexer/internal/tools/hermetic"` {
				hermetic[folder] = true
			}
		}
		return nil
	}))
	delete(tested, filepath.Join(root, "internal", "tools", "hermetic"))
	require.Greater(t, len(tested), 30)
	for folder := range tested {
		require.True(t, hermetic[folder], `the tests of %s import none of _ "ledgerindexer/internal/tools/hermetic"`, folder)
	}
}
