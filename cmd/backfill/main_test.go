package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/base/version"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }

// command runs the command with these variables and returns its exit code and what it printed.
func command(t *testing.T, ctx context.Context, environ map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	list := []string{"GOMEMLIMIT=off"} // the tests' process runs several commands at a time
	for name, value := range environ {
		list = append(list, name+"="+value)
	}
	var out, errs bytes.Buffer
	code = run(ctx, args, list, &out, &errs)
	return code, out.String(), errs.String()
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

// world is a participant with some contracts, and a database.
func world(t *testing.T, options sandbox.ServerOptions) (l *sandbox.Ledger, environ map[string]string) {
	t.Helper()
	l = sandbox.NewLedger(sandbox.Options{Seed: 8, ActiveShare: 0.8})
	l.Grow(200)
	server := httptest.NewServer(sandbox.NewServer(l, options))
	t.Cleanup(server.Close)
	return l, map[string]string{"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_LEDGER_URL": server.URL}
}

func entriesStored(t *testing.T, environ map[string]string) (entries int64, finished bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), environ["INDEXER_DATABASE_URL"])
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT entries, finished_at IS NOT NULL FROM indexer.snapshots").Scan(&entries, &finished))
	return entries, finished
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ map[string]string
		args    []string
		says    string
	}{
		"no database":      {nil, nil, "--database-url is missing"},
		"no such command":  {map[string]string{"INDEXER_DATABASE_URL": "postgres://h/d", "INDEXER_LEDGER_URL": "http://h"}, []string{"past"}, "past"},
		"unknown flag":     {nil, []string{"--at", "7"}, "unknown flag --at"},
		"unknown command":  {nil, []string{"transactions"}, "unexpected argument transactions"},
		"unknown variable": {map[string]string{"INDEXER_OFFSET": "7"}, nil, "INDEXER_OFFSET is not a setting"},
		"offset":           {nil, []string{"--database-url=postgres://h/d", "--ledger-url=http://h", "--at-offset=-7"}, "--at-offset must be at least 0, not -7"},
		"no files":         {nil, []string{"network", "--database-url=postgres://h/d", "--scan-url=http://h", "--active-only"}, "--active-only is for bulk files: give --files"},
		"password":         {nil, []string{"--database-url", "postgres://u:hunter2@h/d"}, "has a password in it"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, t.Context(), c.environ, c.args...)
			require.Equal(t, config.ExitUsage, code)
			require.Contains(t, stderr, "backfill: ")
			require.Contains(t, stderr, c.says)
			require.NotContains(t, stderr, "hunter2")
			require.Empty(t, stdout)
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, t.Context(), nil, "--help")
	require.Equal(t, config.ExitDone, code)
	require.Contains(t, stdout, "Usage: backfill")
	require.Contains(t, stdout, "network")
	require.Empty(t, stderr)
	code, stdout, _ = command(t, t.Context(), nil, "snapshot", "--help")
	require.Equal(t, config.ExitDone, code)
	require.Contains(t, stdout, "--at-offset")
}

// Each variable that a flag names is a setting, and so are the indexer's: the two share an environment.
func TestEveryVariableIsKnown(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&grammar{}, kong.DefaultEnvars("INDEXER"))
	require.NoError(t, err)
	names := []string{"INDEXER_LISTEN", "INDEXER_START", "INDEXER_MIGRATE", "INDEXER_UNTIL_CURRENT"}
	for _, command := range parser.Model.Children {
		for _, flag := range command.Flags {
			names = append(names, flag.Envs...)
		}
	}
	require.Contains(t, names, "INDEXER_AT_OFFSET")
	var environ []string
	for _, name := range names {
		environ = append(environ, name+"=x")
	}
	var out, errs bytes.Buffer
	require.Equal(t, config.ExitDone, run(t.Context(), []string{"--help"}, environ, &out, &errs), errs.String())
}

func TestSeedsADatabase(t *testing.T) {
	t.Parallel()
	l, environ := world(t, sandbox.ServerOptions{})
	environ["INDEXER_DATABASE_URL"] = throwaway.Database(t)
	environ["INDEXER_LISTEN"] = "0.0.0.0:8080" // the indexer's
	code, stdout, stderr := command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	entries, finished := entriesStored(t, environ)
	require.True(t, finished)
	require.Positive(t, entries)
	require.Equal(t, fmt.Sprintf("stored %d entries of the snapshot at offset %d; `indexer run` continues from there\n", entries, l.End()), stdout)

	offset := l.End()
	code, stdout, stderr = command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Equal(t, fmt.Sprintf("the snapshot at offset %d was stored before; `indexer run` continues from there\n", offset), stdout)

	// Nothing has been indexed behind it, so it stays the snapshot of this database, whatever the ledger's end is now.
	l.Grow(5)
	code, stdout, stderr = command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, fmt.Sprintf("the snapshot at offset %d was stored before", offset))
	code, _, stderr = command(t, t.Context(), environ, "--at-offset", fmt.Sprint(l.End()))
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, fmt.Sprintf("the database already holds the ledger up to offset %d\nWhat to do: ", offset))
}

func TestAProblemSaysWhatToDo(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, environ := world(t, sandbox.ServerOptions{})
	code, stdout, stderr := command(t, t.Context(), environ, "--at-offset", fmt.Sprint(l.End()+1))
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, fmt.Sprintf("offset %d is above the ledger's end %d\nWhat to do: give --at-offset ", l.End()+1, l.End()))
	require.Empty(t, stdout)
}

// Stopped in the middle it says so, and the next run continues.
func TestStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var pages atomic.Int32
	_, environ := world(t, sandbox.ServerOptions{StrictInterface: true, ListLimit: 20, Fault: func(r *http.Request) *sandbox.Fault {
		if !strings.HasSuffix(r.URL.Path, "/active-contracts") || ctx.Err() != nil {
			return nil
		}
		if pages.Add(1) == 8 {
			stop()
			return &sandbox.Fault{Reset: true}
		}
		return nil
	}})
	environ["INDEXER_AT_OFFSET"] = "100"
	code, stdout, stderr := command(t, ctx, environ)
	require.Equal(t, config.ExitFailed, code)
	require.Empty(t, stdout)
	entries, finished := entriesStored(t, environ)
	require.False(t, finished)
	require.Positive(t, entries)
	require.Contains(t, stderr, fmt.Sprintf("backfill: stopped with %d entries of the snapshot stored; run the same command again to continue\n", entries))

	code, stdout, stderr = command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "of the snapshot at offset 100;")
	total, finished := entriesStored(t, environ)
	require.True(t, finished)
	require.Greater(t, total, entries)
}

// What is set for the database changes nothing.
func TestBackfillWithStrangeSettings(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "migrates a database from nothing, which takes a second or more")
	l, environ := world(t, sandbox.ServerOptions{})
	database, usual := throwaway.Strange(t)
	environ["INDEXER_DATABASE_URL"] = database
	code, _, stderr := command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	rows, err := usual.Query(t.Context(), "SELECT row_to_json(r) FROM ledger.created_events r")
	require.NoError(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(t, err)
	const relation = "created_events"
	got := map[string][]sandbox.Row{}
	for _, text := range texts {
		row, err := sandbox.DecodeRow(relation, text)
		require.NoError(t, err)
		got[relation] = append(got[relation], row)
	}
	want := map[string][]sandbox.Row{relation: l.TruthFromSnapshot(sandbox.Scope{Shape: sandbox.LedgerEffects}, l.End(), l.End())[relation]}
	require.Empty(t, sandbox.Diff(want, got))
}

// A log that programs read ends with a line as the others are, whatever is backfilled.
func TestLastWordsInTheLog(t *testing.T) {
	t.Parallel()
	_, environ := world(t, sandbox.ServerOptions{})
	environ["INDEXER_LOG_FORMAT"], environ["INDEXER_LOG_LEVEL"] = "json", "error"
	for _, args := range [][]string{{"--at-offset=99999999"}} {
		code, _, stderr := command(t, t.Context(), environ, args...)
		require.Equal(t, config.ExitProblem, code)
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(stderr), &line), "one line and nothing else: %s", stderr)
		require.Equal(t, "ERROR", line["level"])
		require.Equal(t, "backfill", line["program"])
		require.NotEmpty(t, line["error"])
		require.NotEmpty(t, line["what_to_do"])
		require.EqualValues(t, config.ExitProblem, line["exit_code"])
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	build, err := version.Read()
	require.NoError(t, err)
	code, stdout, stderr := command(t, t.Context(), nil, "--version")
	require.Equal(t, config.ExitDone, code)
	require.Equal(t, build.Line("backfill")+"\n", stdout)
	require.Empty(t, stderr)
}

// The updates of a network have schemas of their own, which only the commands for them fill.
func TestANetwork(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, environ := world(t, sandbox.ServerOptions{})
	l := sandbox.NewLedger(sandbox.Options{Seed: 9})
	l.Grow(100)
	scan := sandbox.NewScan(l, sandbox.ScanOptions{SnapshotEvery: 3 * time.Second})
	server := httptest.NewServer(scan)
	t.Cleanup(server.Close)
	environ["INDEXER_SCAN_URL"] = server.URL
	for _, args := range [][]string{{"--network"}} {
		code, _, stderr := command(t, t.Context(), environ, args...)
		require.Equal(t, config.ExitUsage, code)
		require.Contains(t, stderr, "fill them with `backfill network`")
	}
	code, stdout, stderr := command(t, t.Context(), environ, "network")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Regexp(t, "^stored [1-9][0-9]* entries of the snapshot at offset [0-9]+; `indexer run` continues from there\n$", stdout)
	code, stdout, stderr = command(t, t.Context(), environ, "network")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "was stored before")
}
