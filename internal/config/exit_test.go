package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	problem := &ledger.Problem{What: "the participant is pruned", Do: "seed again", Err: errors.New("HTTP 400")}
	for name, c := range map[string]struct {
		err  error
		code int
		says string
	}{
		"done":   {nil, 0, ""},
		"help":   {ErrHelp, 0, ""},
		"failed": {errors.New("disk full"), 1, "program: disk full\n"},
		"usage":  {&UsageError{errors.New("unknown flag")}, 2, "program: unknown flag\n"},
		"problem in the settings": {&UsageError{&ledger.Problem{What: "no token", Do: "put it there"}}, 3,
			"program: no token\nWhat to do: put it there.\n"},
		"problem": {problem, 3, "program: the participant is pruned: HTTP 400\nWhat to do: seed again.\n"},
		"problem, wrapped": {fmt.Errorf("read updates after offset 7: %w", problem), 3,
			"program: read updates after offset 7: the participant is pruned: HTTP 400\nWhat to do: seed again.\n"},
		"bug, wrapped": {fmt.Errorf("read updates: %w", &ledger.Bug{What: "no sense", Err: errors.New("HTTP 400")}), 1,
			"program: read updates: no sense: HTTP 400\n" +
				"What to do: report this mistake in program, with these lines and the participant's version.\n"},
		"bug without a cause": {&ledger.Bug{What: "no sense"}, 1, "program: no sense\n" +
			"What to do: report this mistake in program, with these lines and the participant's version.\n"},
	} {
		var out bytes.Buffer
		require.Equal(t, c.code, exitCode("program", c.err, &out), name)
		require.Equal(t, c.says, out.String(), name)
	}
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := Log{LogFormat: "json", LogLevel: "debug"}.Logger(&out)
	logger.Debug("read", "offset", 7)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "DEBUG", line["level"])
	require.Equal(t, "read", line["msg"])
	require.EqualValues(t, 7, line["offset"])

	out.Reset()
	logger = Log{LogFormat: "text", LogLevel: "warn"}.Logger(&out)
	logger.Info("caught up")
	require.Empty(t, out.String())
	logger.Warn("retrying", "wait", "2s")
	require.Contains(t, out.String(), `level=WARN msg=retrying wait=2s`)
}

func TestHolderNamesThisProcess(t *testing.T) {
	t.Parallel()
	require.Contains(t, Holder(), fmt.Sprintf("pid %d", os.Getpid()))
}

// The second signal ends the process: the commands' tests send it to one.
func TestTheFirstSignalEndsTheContext(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		ctx, stop := stopOnSignal(t.Context())
		require.NoError(t, ctx.Err())
		require.NoError(t, syscall.Kill(os.Getpid(), signal))
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		stop()
	}
	ctx, stop := stopOnSignal(t.Context())
	stop()
	require.Error(t, ctx.Err(), "without a signal the context ends with its use")
}

// An error may repeat what a server said.
func TestErrorsDoNothingToATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := &ledger.Problem{What: "it said \x1b[2J\u009b1m\u202e\xff é\nWhat to do: x", Do: "look\nat \x07 it"}
	require.Equal(t, ExitProblem, exitCode("indexer", err, &out))
	require.Equal(t, "indexer: it said \\x1b[2J\\u009b1m\\u202e\ufffd é\n  What to do: x\nWhat to do: look\nat \\a it.\n", out.String())
}
