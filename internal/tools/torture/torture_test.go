package torture

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"ledgerindexer/internal/tools/brief"
	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/internal/tools/throwaway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// number reads a setting of the environment.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	require.NoError(t, err, variable)
	return n
}

// Whatever fails, the database is what the ledger is, and `indexer verify` agrees: one short round, or as many as
// TORTURE_ROUNDS says, of the seed TORTURE_SEED.
func TestTorture(t *testing.T) {
	brief.Long(t, "runs the programs under faults for seconds")
	throwaway.NeedPrograms(t)
	c := Config{
		Programs: t.TempDir(), Seed: number(t, "TORTURE_SEED", 39), Rounds: int(number(t, "TORTURE_ROUNDS", 0)),
		Faults: 60, Longest: 40 * time.Second, Say: t.Logf,
	}
	if c.Rounds == 0 { // the short form
		c.Rounds, c.Faults, c.Longest = 1, 20, 4*time.Second
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", c.Programs, "ledgerindexer/cmd/indexer", "ledgerindexer/cmd/backfill").CombinedOutput()
	require.NoError(t, err, string(out))
	c.Folder, err = os.MkdirTemp("", "torture-")
	require.NoError(t, err)
	tally, err := Run(t.Context(), c)
	t.Logf("seed %d\n%v", c.Seed, tally)
	if err != nil {
		t.Fatal(err) // whole: require would shorten it
	}
	require.Positive(t, tally.Total())
	require.NoError(t, os.RemoveAll(c.Folder))
}
