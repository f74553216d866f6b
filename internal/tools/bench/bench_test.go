package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
)

// TestMain is the program of the benchmark where that starts itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == serveCommand || os.Args[1] == profileCommand) {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	code := throwaway.Main(m)
	if err := os.RemoveAll(programsFolder); err != nil {
		panic(err)
	}
	os.Exit(code)
}

var programsFolder string // empty: nothing was built

// built builds what is measured, once for all tests.
var built = sync.OnceValue(func() (err error) {
	if programsFolder, err = os.MkdirTemp("", "bench-programs-"); err != nil {
		return err
	}
	return buildPrograms(context.Background(), programsFolder)
})

// builtPrograms is the flag that names the programs.
func builtPrograms(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the benchmark needs go in PATH")
	}
	require.NoError(t, built())
	return "--programs=" + programsFolder
}

// All that is measured against a limit, once and small: every run checks that what was served is there.
func TestRuns(t *testing.T) {
	brief.Skip(t) // the programs that it builds and runs have no race detector
	for _, program := range []string{"psql", "pg_dump"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the benchmark needs %s in PATH", program)
		}
	}
	var out, log bytes.Buffer
	titles := []string{"Targets", "Catch-up", "Snapshot", "Transaction history", "Updates of a network", "Growth", "Pruning"}
	args := []string{"--only=catchup,snapshot,history,network,growth", "--servers=lists", "--runs=1", "--updates=1000", "--contracts=500",
		"--records=500", "--growth=3000", "--warm-up=0", "--no-fsync", "--profile=" + t.TempDir(), builtPrograms(t)}
	code := Main(t.Context(), args, strings.NewReader(""), &out, &log)
	t.Log(log.String())
	require.Zero(t, code)
	for _, title := range titles {
		require.Contains(t, out.String(), "\n## "+title+"\n")
	}
}

// Every question is asked in every form of a small database, and the answers are the same; the report keeps its place.
func TestQuestions(t *testing.T) {
	brief.Long(t, "writes a database and asks it all questions")
	var out, log bytes.Buffer
	code := Main(t.Context(), []string{"--only=sql", "--scale=0.002", "--runs=1", "--no-cold", "--warm-up=0", "--no-fsync", builtPrograms(t)},
		strings.NewReader(""), &out, &log)
	t.Log(log.String())
	require.Zero(t, code)
	for _, theme := range questionThemes {
		questions, err := readQuestions(theme)
		require.NoError(t, err)
		require.NotEmpty(t, questions)
		for _, q := range questions {
			require.Contains(t, out.String(), "\n| "+q.title+" | ")
		}
	}
}

func TestQuestionsAreFilledIn(t *testing.T) {
	filled, err := fill("SELECT :n::bigint, :'n', '%:Ent', x::text[:n]", map[string]string{"n": "1'2"})
	require.NoError(t, err)
	require.Equal(t, "SELECT 1'2::bigint, '1''2', '%:Ent', x::text[1'2]", filled)
	_, err = fill("SELECT :nothing", nil)
	require.ErrorContains(t, err, "nothing")
}

// An answer that differs in one row, or in how often it has one, is another answer.
func TestAnswersAreCompared(t *testing.T) {
	require.NoError(t, sameRows([]string{"a", "b"}, []string{"a", "b"}))
	require.ErrorContains(t, sameRows([]string{"a", "b"}, []string{"a", "c"}), "only ours has b; only this one has c")
	require.Error(t, sameRows([]string{"a", "a"}, []string{"a"}))
}

// What a server takes is what its processes took, those that have ended included. It has the settings that it was
// given.
func TestProcessorTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the processor time of other processes in /proc")
	}
	d, err := startDatabase(t.Context(), 0, false, map[string]string{"work_mem": "5MB"})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.server.Stop()) }()
	u, err := d.measured(func() error {
		return d.exec(t.Context(), "SELECT count(*) FROM generate_series(1, 3000000)") // by a process that ends
	})
	require.NoError(t, err)
	require.Positive(t, u.postgres)
	memory, err := queryOne[string](t.Context(), d, "SELECT current_setting('work_mem')")
	require.NoError(t, err)
	require.Equal(t, "5MB", memory)
}

func TestProcessors(t *testing.T) {
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("without taskset nothing has processors of its own")
	}
	numbers, err := processors(t.Context())
	require.NoError(t, err)
	require.Len(t, numbers, runtime.NumCPU())
}

// The server's processes run on the one half and this one on the other, and all of them everywhere again afterwards.
func TestPlace(t *testing.T) {
	all, err := processors(t.Context())
	if err != nil || len(all) < 2 {
		t.Skip("PostgreSQL can't have a processor for itself")
	}
	d, err := startDatabase(t.Context(), 0, false, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.server.Stop()) }()
	h := &harness{db: d}
	half := len(all) / 2
	for _, halves := range [][2][]string{{all[:half], all[half:]}, {all, all}} {
		require.NoError(t, h.pinAll(t.Context(), halves[0], halves[1]))
		servers, err := query[int](t.Context(), d, "SELECT pid FROM pg_stat_activity WHERE backend_type <> 'autovacuum worker'")
		require.NoError(t, err)
		for _, pid := range servers { // one of them is that of a new connection, and has ended
			if placed, err := processorsOf(t.Context(), pid); !hasEnded(pid) {
				require.NoError(t, err)
				require.Equal(t, halves[0], placed)
			}
		}
		placed, err := processorsOf(t.Context(), d.postmaster)
		require.NoError(t, err)
		require.Equal(t, halves[0], placed)
		placed, err = processors(t.Context())
		require.NoError(t, err)
		require.Equal(t, halves[1], placed)
	}
}

// Where PostgreSQL can't have processors of its own, everything else is measured all the same.
func TestApartIsLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var said []string
	h := &harness{flags: &flags{}, say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	require.NoError(t, h.apart(t.Context()))
	require.Len(t, said, 1)
	require.Contains(t, said[0], "taskset")
	h.Only = []string{"catchup", apartName}
	require.ErrorContains(t, h.apart(t.Context()), "taskset")
}

func TestCommandLine(t *testing.T) {
	var out bytes.Buffer
	for _, wrong := range []string{"--only=nothing", "--only=sql,tail", "--scale=0", "--servers=nothing", "--runs=0", "--tail-time=0s"} {
		_, err := parse([]string{wrong}, &out)
		name, _, _ := strings.Cut(wrong, "=")
		require.ErrorContains(t, err, name)
	}
	f, err := parse(nil, &out)
	require.NoError(t, err)
	require.Equal(t, 5, f.Runs)
	require.True(t, f.Limit)
	require.Empty(t, (&harness{flags: f}).otherSettings())
	f, err = parse([]string{"--setting=work_mem=8MB", "--setting=max_wal_size=4GB"}, &out)
	require.NoError(t, err)
	require.Equal(t, " but max_wal_size of 4GB, work_mem of 8MB", (&harness{flags: f}).otherSettings())
	_, err = parse([]string{"--help"}, &out)
	require.ErrorIs(t, err, config.ErrHelp)
	require.Contains(t, out.String(), "catchup")
}
