package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
	"ledgerindexer/sandbox"
)

// build makes a command's program.
func build(t *testing.T, command string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), command)
	out, err := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build"}, flags, []string{"-o", program, "ledgerindexer/cmd/" + command})...).CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// killUntilDone starts a program again and again, and kills it after a time that grows, until it gets through.
func killUntilDone(t *testing.T, random *rand.Rand, env []string, program string, args ...string) (kills int) {
	t.Helper()
	for ; kills < 500; kills++ {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(60+10*kills))*time.Millisecond)
		cmd := exec.CommandContext(ctx, program, args...) // killed with SIGKILL
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		killed := ctx.Err() != nil
		cancel()
		if err == nil {
			return kills
		}
		var exit *exec.ExitError
		if !killed && errors.As(err, &exit) {
			t.Fatalf("%s ended by itself with %v: %s", program, err, out.String())
		}
	}
	t.Fatal("the program never gets through")
	return kills
}

// Killed with SIGKILL at any point and started again, the backfill goes on from its token and the indexer from its
// watermark and from its event id: nothing is lost and nothing is there twice.
func TestKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLedger(sandbox.Options{Seed: 31, ActiveShare: 0.5})
	l.Grow(1500)
	at := quietOffset(t, l)
	ledgerURL := serve(t, l, sandbox.ServerOptions{StrictInterface: true, ListLimit: 25, Latency: time.Millisecond})
	scan := sandbox.NewScan(l, sandbox.ScanOptions{BalanceChanges: true, PageLimit: 40, Latency: time.Millisecond})
	database := throwaway.Migrated(t, migrate)
	env := []string{"INDEXER_DATABASE_URL=" + database, "INDEXER_LEDGER_URL=" + ledgerURL, "INDEXER_SCAN_URL=" + serveScan(t, scan), "INDEXER_LISTEN="}
	random := rand.New(rand.NewPCG(1, 2))
	kills := killUntilDone(t, random, env, build(t, "backfill"), "--at-offset", fmt.Sprint(at))
	kills += killUntilDone(t, random, env, build(t, "indexer"), "run", "--until-current")
	require.Positive(t, kills)
	require.Empty(t, sandbox.Diff(l.TruthFromSnapshot(sandbox.Scope{Shape: sandbox.ACSDelta}, at, l.End()), relations(t, database)))
	require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
}
