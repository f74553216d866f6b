package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/sandbox"
)

func floors(t *testing.T, environ map[string]string) (floors string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), environ["INDEXER_DATABASE_URL"])
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT ledger.oldest_offset() || ' ' || ledger.state_floor()").Scan(&floors))
	return floors
}

// History is filled in below a snapshot in pieces, and then whole.
func TestFillsInHistory(t *testing.T) {
	t.Parallel()
	l, environ := world(t, sandbox.ServerOptions{})
	end := l.End()
	code, _, stderr := command(t, t.Context(), environ, "history")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "nothing has been indexed yet")
	code, _, stderr = command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)

	code, _, stderr = command(t, t.Context(), environ, "history", fmt.Sprint("--to=", end+5))
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "beyond the watermark")
	code, stdout, stderr := command(t, t.Context(), environ, "history", "--from=20", "--to=50")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "updates after offset 20 up to 50; ")
	require.Contains(t, stdout, fmt.Sprintf("; history after offset 50 up to %d is missing\n", end))
	require.Equal(t, fmt.Sprint(end, " ", end), floors(t, environ))
	code, stdout, stderr = command(t, t.Context(), environ, "history", "--from=40", "--newest-first")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, fmt.Sprintf("events are complete after offset 20, and what was active is known from offset %d on\n", end))
	code, stdout, stderr = command(t, t.Context(), environ, "history")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "events are complete after offset 0, and what was active is known from offset 0 on\n")
	require.Equal(t, "0 0", floors(t, environ))
	code, stdout, stderr = command(t, t.Context(), environ, "history")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "there was no history to fill in; ")
}

// With a snapshot at its lower end, history tells from there on what was active.
func TestFillsInHistoryFromASnapshotOn(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs command after command")
	l, environ := world(t, sandbox.ServerOptions{})
	code, _, stderr := command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	quiet, busy := int64(0), int64(0)
	for at := int64(60); quiet == 0 || busy == 0; at++ {
		if l.InFlight(at) {
			busy = at
		} else {
			quiet = at
		}
	}
	code, _, stderr = command(t, t.Context(), environ, "history", fmt.Sprint("--from=", busy), "--with-snapshot")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, fmt.Sprintf("the snapshot at offset %d can't be carried: reassignments are in flight", busy))
	require.Contains(t, stderr, "What to do: choose another offset with --from")
	code, stdout, stderr := command(t, t.Context(), environ, "history", fmt.Sprint("--from=", quiet), "--with-snapshot")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Regexp(t, fmt.Sprintf(`^filled in \d+ updates after offset %d up to %d; \d+ entries of the snapshot at offset %[1]d are stored; `+
		`events are complete after offset %[1]d, and what was active is known from offset %[1]d on\n$`, quiet, l.End()), stdout)
	require.Equal(t, fmt.Sprint(quiet, " ", quiet), floors(t, environ))
	code, stdout, stderr = command(t, t.Context(), environ, "history", "--with-snapshot")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "known from offset 0 on\n")
	require.NotContains(t, stdout, "snapshot", "the beginning of the ledger needs none")
}

// Where the participant is pruned, history begins there; asking for more says what to do.
func TestHistoryOfAPrunedParticipant(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l, environ := world(t, sandbox.ServerOptions{})
	code, _, stderr := command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	require.NoError(t, l.Prune(60))
	code, _, stderr = command(t, t.Context(), environ, "history", "--from=10")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "pruned up to offset 60")
	require.Contains(t, stderr, "What to do: give --from an offset of at least 60")
	code, stdout, stderr := command(t, t.Context(), environ, "history")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Contains(t, stdout, "events are complete after offset 60")
	require.Contains(t, stderr, "the participant is pruned")
}

// Another scope than the database's is refused.
func TestHistoryOfAnotherScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	_, environ := world(t, sandbox.ServerOptions{})
	code, _, stderr := command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	code, _, stderr = command(t, t.Context(), environ, "history", "--blobs")
	require.Equal(t, config.ExitProblem, code)
	require.Contains(t, stderr, "holds the scope")
}

// Stopped in the middle it says so, and the next run continues.
func TestHistoryStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	brief.Long(t, "runs command after command")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var pages atomic.Int32
	_, environ := world(t, sandbox.ServerOptions{StrictInterface: true, ListLimit: 10, Fault: func(r *http.Request) *sandbox.Fault {
		if strings.HasSuffix(r.URL.Path, "/flats") && pages.Add(1) == 4 {
			stop()
		}
		return nil
	}})
	environ["INDEXER_AT_OFFSET"] = "100"
	code, _, stderr := command(t, t.Context(), environ)
	require.Equal(t, config.ExitDone, code, stderr)
	code, stdout, stderr := command(t, ctx, environ, "history")
	require.Equal(t, config.ExitFailed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "updates filled in; run the same command again to continue\n")
	code, _, stderr = command(t, t.Context(), environ, "history")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Equal(t, "0 0", floors(t, environ))
}
