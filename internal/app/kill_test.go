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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// programs are the commands that tests run as processes of their own. Each is built once in the process.
type programs struct {
	mu     sync.Mutex
	folder string // exists while the tests run
	built  map[string]func() error
}

var thePrograms = programs{built: map[string]func() error{}}

// build makes a command's program, or gives the one that was made with the same flags.
func build(t *testing.T, command string, flags ...string) string {
	t.Helper()
	program, built := thePrograms.of(command, flags)
	require.NoError(t, built())
	return program
}

func (p *programs) of(command string, flags []string) (program string, built func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	program = filepath.Join(p.folder, strings.Join(append([]string{command}, flags...), ""))
	if p.built[program] == nil {
		p.built[program] = sync.OnceValue(func() error {
			args := slices.Concat([]string{"build", "-ldflags=-s -w"}, flags, []string{"-o", program, "ledgerindexer/cmd/" + command})
			out, err := exec.Command("go", args...).CombinedOutput() // not with a test's context: others wait for it too
			if err != nil {
				return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
			}
			return nil
		})
	}
	return program, p.built[program]
}

// programTests runs tests with a folder for the programs that are built for them, and with their object stores.
type programTests struct{ tests throwaway.Runner }

func (p programTests) Run() int {
	folder, err := os.MkdirTemp("", "programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	thePrograms.folder = folder
	end, err := theStores.serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer end()
	return p.tests.Run()
}

// killUntilDone starts a program again and again, and kills it after a time that grows, until it gets through. The time
// grows by a part of itself, so that on a busy machine, where the program's start alone takes long, most kills do not
// come before it has done anything.
func killUntilDone(t *testing.T, random *rand.Rand, env []string, program string, args ...string) (kills int) {
	t.Helper()
	for longest := 100 * time.Millisecond; kills < 500; kills, longest = kills+1, longest+longest/2 {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(longest))))
		cmd := exec.CommandContext(ctx, program, args...) // killed with SIGKILL
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		killed := ctx.Err() != nil
		cancel()
		if err == nil {
			t.Logf("%s got through after %d kills", args, kills)
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

// Killed with SIGKILL at any point and started again, the backfill continues from its token and the indexer from its
// watermark and from its event id: nothing is lost and nothing is there twice.
func TestKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	l := sandbox.NewLedger(sandbox.Options{Seed: 31, ActiveShare: 0.5})
	l.Grow(500)
	at := quietOffset(t, l)
	ledgerURL := serve(t, l, sandbox.ServerOptions{StrictInterface: true, ListLimit: 25, Latency: time.Millisecond})
	scan := sandbox.NewScan(l, sandbox.ScanOptions{
		BalanceChanges: true, PageLimit: 40, Latency: time.Millisecond, MigrateAfter: 300, SnapshotEvery: 5 * time.Second, BulkEvery: 20 * time.Second, BulkLines: 20,
	})
	far := sandbox.NewLedger(sandbox.Options{Seed: 51, ActiveShare: 0.3})
	far.Grow(1000) // more than three full answers, which are 200: fewer are not caught up with
	farURL := serve(t, far, sandbox.ServerOptions{Version: "3.4", ListLimit: 25, Latency: 5 * time.Millisecond, Fault: roughly(52, 30)})
	seeded := func(t *testing.T, database string) {
		t.Helper()
		at, err := strconv.ParseInt(texts(t, database, "SELECT history_floor::text FROM network_indexer.floors")[0], 10, 64)
		require.NoError(t, err)
		migration, taken := ledger.Offset(at).NetworkPosition()
		require.Empty(t, sandbox.Diff(scan.NetworkTruthFromSnapshot(migration, taken), networkRelations(t, database)))
	}
	for name, c := range map[string]struct {
		env      []string
		backfill []string // and its arguments
		check    func(t *testing.T, database string)
	}{
		"participant": {
			[]string{"INDEXER_LEDGER_URL=" + ledgerURL, "INDEXER_SCAN_HISTORY=transactions"}, []string{"--at-offset", fmt.Sprint(at)}, func(t *testing.T, database string) {
				require.Empty(t, sandbox.Diff(l.TruthFromSnapshot(sandbox.Scope{Shape: sandbox.ACSDelta}, at, l.End()), relations(t, database)))
				require.Empty(t, sandbox.Diff(scan.Truth(), historyRelations(t, database)))
			},
		},
		"network": {
			[]string{"INDEXER_SCAN_HISTORY=updates"}, []string{"network", "--at-offset", fmt.Sprint(networkOffsetAt(t, scan, 0.6))}, seeded,
		},
		"far behind a participant that fails now and then": { // what was stored ahead is used
			[]string{"INDEXER_LEDGER_URL=" + farURL, "INDEXER_SCAN_HISTORY=transactions"}, nil, func(t *testing.T, database string) {
				want := far.Truth(sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.4"}, far.End())
				require.Empty(t, sandbox.Diff(want, relations(t, database)))
				require.Equal(t, 1, count(t, database, "indexer.coverage"), "coverage is one row, and nothing is ahead of the watermark")
			},
		},
		"bulk files": {
			[]string{"INDEXER_SCAN_HISTORY=updates"}, []string{"network", "--files", t.TempDir()}, func(t *testing.T, database string) {
				require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			database := throwaway.Migrated(t, migrate)
			env := append(c.env, deltas, "INDEXER_DATABASE_URL="+database, "INDEXER_SCAN_URL="+serveScan(t, scan), "INDEXER_LISTEN=")
			random := rand.New(rand.NewPCG(1, 2))
			kills := 0
			if c.backfill != nil {
				kills += killUntilDone(t, random, env, build(t, "backfill"), c.backfill...)
			}
			kills += killUntilDone(t, random, env, build(t, "indexer"), "run", "--until-current")
			require.Positive(t, kills)
			c.check(t, database)
		})
	}
}

// Killed with SIGKILL at any point, beside a daemon that follows the ledger, what changes a database gets through when
// it is run again: a repair, a redaction, pruning, a reset, and reanchoring to a restored participant. Then the database
// is what the ledger is, and no row of any table has what was redacted.
func TestCommandsAreKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	l, scope := sandbox.NewLedger(sandbox.Options{Seed: 107}), sandbox.Scope{Shape: sandbox.ACSDelta}
	l.Grow(300)
	database := throwaway.Migrated(t, migrate)
	cfg := indexerFor(database, serve(t, l, sandbox.ServerOptions{Latency: time.Millisecond}), defaultScope())
	index := func() {
		t.Helper()
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	}
	index()
	kills, random, program := 0, rand.New(rand.NewPCG(7, 8)), build(t, "indexer")
	env := []string{"INDEXER_DATABASE_URL=" + database, "INDEXER_LEDGER_URL=" + cfg.LedgerURL}
	run := func(args ...string) { kills += killUntilDone(t, random, env, program, args...) }
	execute(t, database,
		"DELETE FROM indexer.updates WHERE ledger_offset % 50 = 0", "DELETE FROM indexer.created WHERE ledger_offset % 40 = 1",
		"UPDATE indexer.created SET payload = '{}' WHERE ledger_offset % 30 = 2",
		"DELETE FROM indexer.active_contracts WHERE activated_offset % 20 = 3",
		"DELETE FROM indexer.lifetimes WHERE activated_offset % 20 = 4", "DELETE FROM indexer.synchronizers WHERE synchronizer_ref = 1",
	)
	follows := cfg
	follows.VerifyRate = 100
	daemon := startIndexer(t, follows)
	grow := func() {
		t.Helper()
		l.Grow(20)
		waitFor(t, database, lastUpdate(l))
	}
	run("verify", "--all", "--repair")
	grow()
	require.Empty(t, sandbox.Diff(l.Truth(scope, l.End()), relations(t, database)), "repaired")

	secret := texts(t, database, `SELECT unnest(ARRAY[x.contract_id, x.payload::text]) FROM (
		SELECT c.contract_id, c.payload FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
		WHERE c.ledger_offset > $1
			AND NOT EXISTS (SELECT FROM ledger.created_events o WHERE o.payload = c.payload AND o.contract_id <> c.contract_id)
			AND NOT EXISTS (SELECT FROM ledger.active_contracts o WHERE o.contract_id = c.contract_id)
		ORDER BY length(c.payload::text) DESC, c.ledger_offset LIMIT 1) x`, l.Offset(100))
	tables := texts(t, database, `SELECT c.oid::regclass::text FROM pg_class c
		WHERE c.relnamespace = 'indexer'::regnamespace AND c.relkind = 'r'`)
	holding := func() (found []string) {
		for _, table := range tables {
			query := "SELECT 1::text FROM " + table + ` t WHERE position($1 IN replace(replace(t::text, '""', '"'), '\\', '\')) > 0 LIMIT 1`
			found = append(found, texts(t, database, query, secret[1])...)
		}
		return found
	}
	require.NotEmpty(t, holding())
	run("redact", "--contract", secret[0], "--reason", "a test", "--apply")
	grow()
	require.Empty(t, holding())

	floor := offsetAfter(l, l.Offset(60))
	run("prune", "--before", fmt.Sprint(floor+1), "--apply")
	grow()
	require.NoError(t, daemon.finish())
	check := func(after string) {
		t.Helper()
		requireFloors(t, database, floor, floor)
		want := sandbox.Redact(l.TruthFromSnapshot(scope, floor, l.End()), map[string]bool{secret[0]: true}, nil)
		require.Empty(t, sandbox.Diff(want, relations(t, database)), after)
		require.EqualValues(t, 1, requireVerified(t, database, cfg.LedgerURL).RedactedContracts, after)
	}
	check("pruned")
	run("reset", "--apply", "--to-offset", fmt.Sprint(l.Offset(250)))
	index()
	check("read again")
	l.Redeal(200, 7) // the participant is restored from a backup, and deals the offsets anew
	run("reanchor", "--apply")
	index()
	check("reanchored")
	require.Positive(t, kills)
}
