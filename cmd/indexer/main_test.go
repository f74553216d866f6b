package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

// asProgram is the variable that makes the tests' program the command: nothing has to be built for the tests that start
// it.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(throwaway.Tests(m))
}

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(store.Config{URL: url})
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Migrate(ctx)
	return err
}

// command runs the command with these variables and returns its exit code and what it printed.
func command(t *testing.T, environ map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	code, stdout, stderr, err := execute(t.Context(), environ, args...)
	require.NoError(t, err)
	return code, stdout, stderr
}

func execute(ctx context.Context, environ map[string]string, args ...string) (code int, stdout, stderr string, err error) {
	var program *config.Program
	select {
	case program = <-programs:
	default:
		if program, err = config.NewProgram("indexer", description, &grammar{}); err != nil {
			return 0, "", "", err
		}
	}
	defer func() {
		select {
		case programs <- program:
		default:
		}
	}()
	var out, errs bytes.Buffer
	code = program.Execute(ctx, args, listOf(environ), &out, &errs)
	return code, out.String(), errs.String(), nil
}

// programs are those that no test uses just now. To build one takes longer than most commands. It is no sync.Pool,
// which loses a part of them at random with the race detector.
var programs = make(chan *config.Program, 16)

// listOf is an environment as a list. It has no memory limit of one command: the tests' process runs several at a time.
func listOf(environ map[string]string) []string {
	list := []string{"GOMEMLIMIT=off"}
	for name, value := range environ {
		list = append(list, name+"="+value)
	}
	return list
}

func participantOf(t *testing.T, l *sandbox.Ledger, options sandbox.ServerOptions) string {
	t.Helper()
	server := httptest.NewServer(sandbox.NewServer(l, options))
	t.Cleanup(server.Close)
	return server.URL
}

func grown(updates int) *sandbox.Ledger {
	l := sandbox.NewLedger(sandbox.Options{Seed: 5})
	l.Grow(updates)
	return l
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	given := map[string]string{"INDEXER_DATABASE_URL": "postgres://127.0.0.1:1/d", "INDEXER_LEDGER_URL": "http://127.0.0.1:1"}
	for name, c := range map[string]struct {
		environ map[string]string
		args    []string
		says    string
	}{
		"no command":           {nil, nil, "expected one of"},
		"unknown command":      {nil, []string{"rum"}, "unexpected argument rum"},
		"unknown flag":         {nil, []string{"status", "--jason"}, "unknown flag --jason"},
		"no database":          {nil, []string{"status"}, "--database-url is missing"},
		"unknown variable":     {map[string]string{"INDEXER_DATABASE": "x"}, []string{"status"}, "INDEXER_DATABASE is not a setting"},
		"password":             {nil, []string{"migrate", "--database-url=postgres://u:hunter2@h/d"}, "has a password in it"},
		"nothing to read":      {nil, []string{"run", "--database-url=postgres://h/d"}, "--ledger-url and --scan-url are both missing"},
		"start":                {nil, []string{"run", "--database-url=postgres://h/d", "--ledger-url=http://h", "--start=then"}, "--start"},
		"a negative age":       {given, []string{"run", "--retain=-1d"}, "is not a duration such as 400d"},
		"exported, and no age": {given, []string{"run", "--retain-exported=/exports/ledger"}, "give --retain too"},
		"prune nothing":        {given, []string{"prune"}, "--before"},
		"prune at no time":     {given, []string{"prune", "--before=yesterday"}, "is neither an offset of at least 1, nor a date"},
		"no such export":       {given, []string{"prune", "--exported", filepath.Join(t.TempDir(), "nowhere")}, "nowhere"},
		"reanchor since":       {given, []string{"reanchor", "--since=then"}, "--since"},
		"reset to nowhere":     {given, []string{"reset"}, "--to-offset"},
		"reset below 0":        {given, []string{"reset", "--to-offset=-1"}, "at least 0"},
		"redact nothing":       {given, []string{"redact", "--reason=r"}, "--contract or --update must name"},
		"redact two things":    {given, []string{"redact", "--reason=r", "--contract=1", "--update=2"}, "can't be used together"},
		"redact for no reason": {given, []string{"redact", "--contract=1"}, "--reason is empty"},
		"verify nothing":       {given, []string{"verify", "--ledger-url="}, "--ledger-url and --scan-url are both missing"},
		"token without ledger": {given, []string{"verify", "--ledger-url=", "--scan-url=http://h", "--ledger-token-file=x"}, "--ledger-token-file is given and --ledger-url is not"},
		"show":                 {given, []string{"verify", "--show=-1"}, "--show must be at least 0"},
		"sample":               {given, []string{"verify", "--sample=-1"}, "--sample must be"},
		"range":                {given, []string{"verify", "--from=5", "--to=5"}, "--from must be less than --to"},
		"all and a range":      {given, []string{"verify", "--all", "--from=5"}, "--all and a range"},
		"offline repair":       {given, []string{"verify", "--offline", "--repair"}, "--offline reads nothing from the ledger"},
		"no network":           {given, []string{"verify", "--network"}, "--scan-url is missing"},
		// PostgreSQL would cut a longer name, and the publication would not be found again.
		"a long publication":    {given, []string{"publication", "enable", "--publication=" + strings.Repeat("a", 54)}, "up to 53 lower case letters"},
		"a strange one":         {given, []string{"publication", "enable", "--publication=a-b"}, "up to 53 lower case letters"},
		"healthcheck's address": {nil, []string{"healthcheck", "--listen=here"}, "--listen: address here"},
		"no listener":           {map[string]string{"INDEXER_LISTEN": ""}, []string{"healthcheck"}, "--listen: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, c.environ, c.args...)
			require.Equal(t, config.ExitUsage, code)
			require.Contains(t, stderr, "indexer: ")
			require.Contains(t, stderr, c.says)
			require.NotContains(t, stderr, "hunter2")
			require.Empty(t, stdout)
		})
	}
}

// Who asks for the version needs nothing else, and the daemon says it first.
func TestVersion(t *testing.T) {
	t.Parallel()
	build, err := version.Read()
	require.NoError(t, err)
	for _, args := range [][]string{{"--version"}, {"run", "--version"}} {
		code, stdout, stderr := command(t, nil, args...)
		require.Equal(t, config.ExitDone, code)
		require.Equal(t, build.Line("indexer")+"\n", stdout)
		require.Empty(t, stderr)
	}
	code, _, stderr := command(t, map[string]string{"INDEXER_LOG_FORMAT": "json"},
		"run", "--database-url=postgres://127.0.0.1:1/d", "--ledger-url=http://127.0.0.1:1", "--ledger-token-file=missing")
	require.Equal(t, config.ExitProblem, code)
	first, last, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(first), &line))
	require.Equal(t, "starting", line["msg"])
	require.Equal(t, map[string]any{
		"program": "indexer", "version": build.Version, "commit": build.Commit, "schema_version": float64(build.Schema), "go_version": build.Go,
	}, without(line, "msg", "level", "time"))
	require.Contains(t, last, "there is no token to begin with")
}

func without(line map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		delete(line, key)
	}
	return line
}

// Each variable that a flag names is a setting: none is refused as misspelt.
func TestEveryVariableIsKnown(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&grammar{}, kong.DefaultEnvars("INDEXER"))
	require.NoError(t, err)
	var environ []string
	nodes := append(slices.Clone(parser.Model.Children), parser.Model.Node)
	for _, command := range parser.Model.Children {
		nodes = append(nodes, command.Children...)
	}
	for _, node := range nodes {
		for _, flag := range node.Flags {
			for _, name := range flag.Envs {
				environ = append(environ, name+"=x")
			}
		}
	}
	require.Greater(t, len(environ), 20)
	var out, errs bytes.Buffer
	require.Equal(t, config.ExitDone, run(t.Context(), []string{"--help"}, environ, &out, &errs), errs.String())
}

// Of a database in which nothing is indexed each command says so.
func TestNothingIsIndexed(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	environ := map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": participantOf(t, grown(10), sandbox.ServerOptions{}),
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"prune", "--exported", t.TempDir()}, "nothing has been indexed"}, {[]string{"prune", "--before=400d"}, "nothing has been indexed"},
		{[]string{"reset", "--to-offset=1"}, "nothing has been indexed"}, {[]string{"reset", "--to-offset=1", "--apply"}, "nothing has been indexed"},
		{[]string{"reanchor"}, "nothing has been indexed"}, {[]string{"reanchor", "--network"}, "`indexer reset --network --to-offset`"},
		{[]string{"redact", "--contract=1", "--reason=r"}, "knows no contract 1"},
		{[]string{"update", "x"}, "\nWhat to do: run `indexer run` or `backfill` first.\n"},
	} {
		_, stderr := printed(t, config.ExitProblem, environ, c.args...)
		require.Contains(t, stderr, c.says, c.args)
	}
	_, stderr := printed(t, config.ExitFailed, environ, "verify", "--offline")
	require.Contains(t, stderr, "nothing was compared")
	stdout, _ := printed(t, config.ExitDone, environ, "migrate")
	require.Contains(t, stdout, " is up to date\n")
}

func statusOf(t *testing.T, environ map[string]string) map[string]any {
	t.Helper()
	code, stdout, stderr := command(t, environ, "status", "--json")
	require.Equal(t, config.ExitDone, code, stderr)
	var status map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &status), stdout)
	return status
}

func TestStatus(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate)}
	status := statusOf(t, environ)
	require.NotEmpty(t, status["database"])
	require.Regexp(t, `^\d+\.\d+`, status["postgresql"])
	require.Greater(t, status["size"].(map[string]any)["ledger_bytes"], 1e6)
	require.Equal(t, map[string]any{
		"database": status["database"], "postgresql": status["postgresql"], "size": status["size"], "streams": []any{}, "tasks": []any{}, "unknown_elements": 0.0, "leads": false,
		"lookups":  map[string]any{"wanted": 0.0, "found": 0.0, "not_found": 0.0, "unusable": 0.0},
		"packages": map[string]any{"vetted": 0.0, "synchronizers": 0.0, "changes": 0.0},
	}, status)
	_, stdout, _ := command(t, environ, "status")
	require.Contains(t, stdout, "nothing indexed yet")

	l := grown(50)
	environ["INDEXER_LEDGER_URL"] = participantOf(t, l, sandbox.ServerOptions{})
	environ["INDEXER_LISTEN"] = ""
	require.Equal(t, map[string]any{"end_offset": float64(l.End()), "lag_offsets": nil, "last_update_seconds": nil}, statusOf(t, environ)["ledger"])

	code, _, stderr := command(t, environ, "run", "--until-current")
	require.Equal(t, config.ExitDone, code, stderr)
	indexed := l.End()
	require.Equal(t, map[string]any{"end_offset": float64(indexed), "lag_offsets": 0.0}, without(statusOf(t, environ)["ledger"].(map[string]any), "last_update_seconds"))
	l.Grow(10)
	status = statusOf(t, environ)
	require.Equal(t, l.ParticipantID(), status["participant_id"])
	require.Contains(t, status["leader"], " pid ")
	stream := status["streams"].([]any)[0].(map[string]any)
	require.Equal(t, "updates", stream["stream"])
	require.EqualValues(t, indexed, stream["watermark"])
	require.EqualValues(t, indexed, stream["frontier"])
	require.Equal(t, []any{map[string]any{"from_exclusive": 0.0, "to_inclusive": float64(indexed)}}, stream["coverage"])
	require.EqualValues(t, l.Offset(0), stream["first_update"])
	require.EqualValues(t, 0, stream["history_floor"])
	require.EqualValues(t, 0, stream["state_floor"])
	shown, err := time.Parse(time.RFC3339Nano, stream["record_time"].(string))
	require.NoError(t, err)
	ends := status["ledger"].(map[string]any)
	require.InDelta(t, time.Since(shown).Seconds(), ends["last_update_seconds"], 3600, "what is shown was recorded long ago")
	require.Equal(t, map[string]any{"end_offset": float64(l.End()), "lag_offsets": float64(l.End() - indexed)}, without(ends, "last_update_seconds"))

	_, stdout, _ = command(t, environ, "status")
	for _, text := range []string{"watermark ", "active set known from offset 0", " offsets ahead; the last update here is ", "in the database; "} {
		require.Contains(t, strings.Join(strings.Fields(stdout), " "), strings.TrimSpace(text))
	}
	_, err = connect(t, environ["INDEXER_DATABASE_URL"]).Exec(t.Context(),
		"UPDATE indexer.updates SET record_time = now() + interval '1 hour' WHERE record_time IS NOT NULL")
	require.NoError(t, err)
	require.EqualValues(t, 0, statusOf(t, environ)["ledger"].(map[string]any)["last_update_seconds"], "the ledger's clock is ahead")
}

// A ledger that can't be reached is part of the report.
func TestStatusWithoutTheLedger(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	environ := map[string]string{"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": "http://127.0.0.1:1"}
	ends := statusOf(t, environ)["ledger"].(map[string]any)
	require.Contains(t, ends["error"], "connection refused")
	require.Equal(t, map[string]any{"lag_offsets": nil, "last_update_seconds": nil}, without(ends, "error"))
	_, stdout, _ := command(t, environ, "status")
	require.Regexp(t, `\nledger +lag unknown: .*connection refused`, stdout)
	environ["INDEXER_LEDGER_URL"] = participantOf(t, grown(5), sandbox.ServerOptions{StrictInterface: true})
	require.Contains(t, statusOf(t, environ)["ledger"].(map[string]any)["error"], "does not report its ledger end")
}

// Databases that can't be reached are no problem of the operator's making: trying again may help.
func TestStatusWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	code, _, stderr := command(t, map[string]string{"INDEXER_DATABASE_URL": "postgres://u:hunter2@127.0.0.1:1/d"}, "status")
	require.Equal(t, config.ExitFailed, code)
	require.Equal(t, "indexer: database 127.0.0.1:1 d: failed to connect to `user=u database=d`: 127.0.0.1:1 (127.0.0.1): dial error: "+
		"dial tcp 127.0.0.1:1: connect: connection refused\n", stderr, "in one line, and once, though it was tried with TLS and without")
}

func TestAProblemEndsTheRunWithWhatToDo(t *testing.T) {
	t.Parallel()
	l := grown(20)
	environ := map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": participantOf(t, l, sandbox.ServerOptions{}),
		"INDEXER_LISTEN": "", "INDEXER_START": "1000000",
	}
	code, _, stderr := command(t, environ, "run")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "indexer: offset 1000000 is above the ledger's end ")
	require.Contains(t, stderr, "\nWhat to do: give --start an offset up to the ledger's end.\n")
}

// A log that programs read ends with a line as the others are. Commands that print for people talk to them.
func TestLastWordsInTheLog(t *testing.T) {
	t.Parallel()
	environ := map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Database(t), "INDEXER_LEDGER_URL": participantOf(t, grown(5), sandbox.ServerOptions{}),
		"INDEXER_LISTEN": "", "INDEXER_LOG_FORMAT": "json", "INDEXER_LOG_LEVEL": "error",
	}
	code, _, stderr := command(t, environ, "run", "--migrate=check", "--until-current")
	require.Equal(t, config.ExitProblem, code)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(stderr), &line), "one line and nothing else: %s", stderr)
	require.Equal(t, "ERROR", line["level"])
	require.Equal(t, "ended with an error", line["msg"])
	require.Equal(t, "indexer", line["program"])
	require.EqualValues(t, config.ExitProblem, line["exit_code"])
	require.Contains(t, line["error"], "has schema version 0")
	require.Contains(t, line["what_to_do"], "run `indexer migrate`")
	require.NotEmpty(t, line["time"])

	for _, args := range [][]string{{"status"}, {"status", "--json"}} {
		code, stdout, stderr := command(t, environ, args...)
		require.Equal(t, config.ExitProblem, code)
		require.Contains(t, stderr, "has schema version 0")
		require.Contains(t, stderr, "\nWhat to do: run `indexer migrate`")
		require.Empty(t, stdout)
	}

	environ["INDEXER_DATABASE_URL"] = throwaway.Migrated(t, migrate)
	code, _, stderr = command(t, environ, "run", "--until-current")
	require.Equal(t, config.ExitDone, code)
	require.Empty(t, stderr)

	code, _, stderr = command(t, environ, "run", "--start=then")
	require.Equal(t, config.ExitUsage, code)
	require.True(t, strings.HasPrefix(stderr, "indexer: run: --start: "), stderr)
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Error("asked for", r.URL.Path)
		}
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte("state of things\n" + strings.Repeat("x", 10_000)))
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	for _, listen := range []string{address, ":" + port, "0.0.0.0:" + port, "[::]:" + port} {
		code, stdout, stderr := command(t, map[string]string{"INDEXER_LISTEN": listen}, "healthcheck")
		require.Equal(t, config.ExitDone, code, stderr)
		require.Contains(t, stdout, "state of things\n")
		require.Len(t, stdout, 4096)
	}
	proxied := start(t, map[string]string{"HTTP_PROXY": server.URL}, "healthcheck", "--listen=nowhere.invalid:80")
	require.Equal(t, config.ExitFailed, proxied.wait(), "the proxy is for what the daemon asks, not for the daemon")
	status.Store(http.StatusServiceUnavailable)
	code, stdout, stderr := command(t, nil, "healthcheck", "--listen", address)
	require.Equal(t, config.ExitFailed, code)
	require.Contains(t, stdout, "state of things\n")
	require.Equal(t, "indexer: not ready\n", stderr)
	code, stdout, stderr = command(t, nil, "healthcheck", "--listen=127.0.0.1:1")
	require.Equal(t, config.ExitFailed, code)
	require.Contains(t, stderr, "no indexer answers at --listen 127.0.0.1:1: start `indexer run`, or give the address that it listens on: ")
	require.Contains(t, stderr, "connection refused")
	require.Empty(t, stdout)
}
