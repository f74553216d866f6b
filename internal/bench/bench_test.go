package bench

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain is the program of the benchmark where that starts itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == serveCommand || os.Args[1] == profileCommand) {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// All that is measured against a limit, once and small: every run checks that what was served is there.
func TestRuns(t *testing.T) {
	for _, program := range []string{"psql", "pg_dump", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the benchmark needs %s in PATH", program)
		}
	}
	var out, log bytes.Buffer
	args := []string{"--only=catchup,snapshot,history,growth", "--servers=lists", "--runs=1", "--updates=2000", "--contracts=1000", "--records=500",
		"--growth=3000", "--warm-up=0", "--profile=" + t.TempDir()}
	code := Main(t.Context(), args, strings.NewReader(""), &out, &log)
	t.Log(log.String())
	require.Zero(t, code)
	for _, title := range []string{"Targets", "Catch-up", "Snapshot", "Transaction history", "Growth"} {
		require.Contains(t, out.String(), "\n## "+title+"\n")
	}
}

func TestCommandLine(t *testing.T) {
	var out bytes.Buffer
	for _, wrong := range []string{"--only=nothing", "--servers=nothing", "--runs=0", "--tail-time=0s"} {
		_, err := parse([]string{wrong}, &out)
		name, _, _ := strings.Cut(wrong, "=")
		require.ErrorContains(t, err, name)
	}
	f, err := parse(nil, &out)
	require.NoError(t, err)
	require.Equal(t, 5, f.Runs)
	require.True(t, f.Limit)
	_, err = parse([]string{"--help"}, &out)
	require.ErrorIs(t, err, helpShown{})
	require.Contains(t, out.String(), "catchup")
}
