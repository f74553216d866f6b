package main

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	slow "ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
)

// verifiable is an indexed ledger with its transaction history.
func verifiable(t *testing.T) (environ map[string]string) {
	t.Helper()
	l := grown(120)
	scan := httptest.NewServer(sandbox.NewScan(l, sandbox.ScanOptions{}))
	t.Cleanup(scan.Close)
	environ, _ = indexed(t, l, sandbox.ServerOptions{}, map[string]string{
		"INDEXER_SCAN_URL": scan.URL, "INDEXER_SCAN_HISTORY": "transactions", "INDEXER_VERIFY_RATE": "0", // what is sealed, these tests seal
	})
	return environ
}

// damage changes rows of a database.
func damage(t *testing.T, environ map[string]string, statements ...string) {
	t.Helper()
	db := connect(t, environ["INDEXER_DATABASE_URL"])
	for _, statement := range statements {
		changed, err := db.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
		require.Positive(t, changed.RowsAffected(), statement)
	}
}

// lines are those of a text, with one space where there are several.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, strings.Join(strings.Fields(line), " "))
	}
	return list
}

func TestVerify(t *testing.T) {
	t.Parallel()
	environ := verifiable(t)
	report := jsonOf(t, config.ExitDone, environ, "verify", "--all")
	require.Equal(t, "equal", at(t, report, "result"))
	require.EqualValues(t, 0, at(t, report, "updates", "history_floor"))
	require.Equal(t, at(t, report, "updates", "watermark"), at(t, report, "updates", "active_at"))
	require.Positive(t, at(t, report, "updates", "updates"))
	require.Positive(t, at(t, report, "updates", "active_contracts"))
	require.Positive(t, at(t, report, "transactions", "records"))
	for _, list := range []string{"by_relation", "differences", "not_compared"} {
		require.Equal(t, []any{}, at(t, report, list))
	}
	require.NotContains(t, report, "error")
	require.NotContains(t, at(t, report, "updates"), "seed")

	stdout, _ := printed(t, config.ExitDone, environ, "verify")
	said := lines(stdout)
	require.Len(t, said, 5)
	require.Regexp(t, `^updates \d+ read again, of the offsets after 0 up to \d+$`, said[0])
	require.Regexp(t, `^at random: --seed \d+ chooses the same places again$`, said[1])
	require.Regexp(t, `^active contracts \d+ at offset \d+$`, said[2])
	require.Regexp(t, `^transactions \d+ records read again$`, said[3])
	require.Equal(t, "result equal", said[4])
}

func TestVerifyThatDiffersAndRepairs(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs the daemon, and command after command beside it")
	environ := verifiable(t)
	damage(t, environ,
		`UPDATE indexer.updates SET workflow_id = E'\x1b[2J' WHERE ledger_offset = (SELECT min(ledger_offset) FROM indexer.updates)`,
		`DELETE FROM indexer.updates WHERE ledger_offset = (SELECT max(ledger_offset) FROM indexer.updates)`,
		`DELETE FROM indexer.transactions WHERE seq = 3`,
	)
	stdout, stderr := printed(t, config.ExitFailed, environ, "verify", "--all")
	require.Contains(t, stdout, `workflow_id is "\x1b[2J", and `)
	require.Equal(t, []string{"difference transactions: 1 missing", "difference updates: 1 altered", "difference updates: 1 missing", "result 3 differences"},
		lines(stdout)[len(lines(stdout))-4:], "each is told once, whatever finds it")
	require.Contains(t, stderr, "3 differences; `indexer verify --all --repair` writes again what differs\n")

	report := jsonOf(t, config.ExitFailed, environ, "verify", "--all", "--show=1")
	require.Equal(t, "different", at(t, report, "result"))
	require.Len(t, at(t, report, "differences"), 1)
	require.EqualValues(t, 3, at(t, report, "differences_found"))
	require.EqualValues(t, 3, at(t, report, "differences_remaining"))
	require.Contains(t, at(t, report, "by_relation"), map[string]any{"relation": "updates", "kind": "altered", "count": 1.0})
	stdout, _ = printed(t, config.ExitFailed, environ, "verify", "--all", "--show=0")
	require.Equal(t, "... and 3 more", lines(stdout)[0])

	report = jsonOf(t, config.ExitDone, environ, "verify", "--all", "--repair")
	require.Equal(t, "repaired", at(t, report, "result"))
	require.EqualValues(t, 0, at(t, report, "differences_remaining"))
	require.Positive(t, at(t, report, "updates", "repairs"))
	require.Positive(t, at(t, report, "transactions", "repairs"))
	require.Equal(t, "equal", at(t, jsonOf(t, config.ExitDone, environ, "verify", "--all"), "result"))
}

// What a source was not given for, or has nothing of, is said.
func TestVerifyOneSource(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	environ := verifiable(t)
	report := jsonOf(t, config.ExitDone, environ, "verify", "--scan-url=")
	require.Equal(t, []any{"the transaction history: no --scan-url is given"}, at(t, report, "not_compared"))
	report = jsonOf(t, config.ExitDone, environ, "verify", "--ledger-url=")
	require.Nil(t, at(t, report, "updates"))
	require.Equal(t, []any{"the updates: no --ledger-url is given"}, at(t, report, "not_compared"))
	environ["INDEXER_DATABASE_URL"] = throwaway.Migrated(t, migrate)
	report = jsonOf(t, config.ExitProblem, environ, "verify")
	require.Equal(t, "not_compared", at(t, report, "result"))
	require.Contains(t, at(t, report, "error"), "nothing has been indexed")
}

// What the participant has pruned is named, whatever is chosen to be read again. Where that is everything, the database
// is not equal.
func TestVerifyOfWhatIsPruned(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	l := grown(120)
	environ, _ := indexed(t, l, sandbox.ServerOptions{}, nil)
	l.Grow(10)
	for _, c := range []struct {
		upTo int64
		code int
		says string
	}{
		{l.Offset(60), config.ExitDone, "result equal in what was compared"},
		{l.End(), config.ExitFailed, "result nothing was compared with the ledger"},
	} {
		require.NoError(t, l.Prune(c.upTo))
		for _, args := range [][]string{{"verify", "--all"}, {"verify", "--from=1"}, {"verify", "--sample=0"}} {
			stdout, stderr := printed(t, c.code, environ, args...)
			last := min(c.upTo, l.Offset(119))
			require.Regexp(t, fmt.Sprintf(`(?m)^not compared +updates after offset \d+ up to %d: the participant has pruned them`, last), stdout)
			require.Contains(t, lines(stdout), c.says)
			require.Equal(t, c.code == config.ExitFailed, strings.Contains(stderr, "nothing was compared with the ledger"))
		}
		if c.code == config.ExitFailed {
			continue
		}
		// A range of which nothing was compared is not equal, though the active set is.
		stdout, stderr := printed(t, config.ExitFailed, environ, "verify", fmt.Sprint("--to=", l.Offset(50)))
		require.Regexp(t, `(?m)^active contracts +[1-9]`, stdout)
		require.Contains(t, stderr, "nothing of the range that was chosen was compared")
	}
	report := jsonOf(t, config.ExitFailed, environ, "verify", "--all")
	require.Equal(t, "not_compared", at(t, report, "result"))
	require.Contains(t, fmt.Sprint(at(t, report, "not_compared")), "the active set at offset")
}

// Whoever gives a Scan service and means the updates of its network is told the flag that they have forgotten.
func TestVerifyPointsToTheNetwork(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	l := grown(60)
	scan := httptest.NewServer(sandbox.NewScan(l, sandbox.ScanOptions{}))
	t.Cleanup(scan.Close)
	environ := map[string]string{
		"INDEXER_DATABASE_URL": throwaway.Migrated(t, migrate), "INDEXER_SCAN_URL": scan.URL, "INDEXER_LISTEN": "",
	}
	code, _, stderr := command(t, environ, "run", "--until-current")
	require.Equal(t, config.ExitDone, code, stderr)
	_, stderr = printed(t, config.ExitProblem, environ, "verify")
	require.Contains(t, stderr, "What to do: to use the ledger in schema network give --network; to index another")
	require.Equal(t, "equal", at(t, jsonOf(t, config.ExitDone, environ, "verify", "--network"), "result"))

	environ["INDEXER_LEDGER_URL"] = participantOf(t, l, sandbox.ServerOptions{})
	code, _, stderr = command(t, environ, "run", "--until-current")
	require.Equal(t, config.ExitDone, code, stderr)
	require.Equal(t, []any{"the updates of the network: `indexer verify --network` compares them with those of the Scan service"},
		at(t, jsonOf(t, config.ExitDone, environ, "verify"), "not_compared"))
}

// A user that may only read is enough to compare, and is told that it is not enough for a repair.
func TestVerifyAsAReader(t *testing.T) {
	t.Parallel()
	slow.Once(t)
	slow.Long(t, "runs command after command")
	environ := verifiable(t)
	role, reader := throwaway.Login(t, environ["INDEXER_DATABASE_URL"], "")
	db := connect(t, environ["INDEXER_DATABASE_URL"])
	for _, schema := range []string{"ledger", "indexer"} {
		_, err := db.Exec(t.Context(), "GRANT USAGE ON SCHEMA "+schema+" TO "+role+"; GRANT SELECT ON ALL TABLES IN SCHEMA "+schema+" TO "+role)
		require.NoError(t, err)
	}
	environ["INDEXER_DATABASE_URL"] = reader
	require.Equal(t, "equal", at(t, jsonOf(t, config.ExitDone, environ, "verify", "--all"), "result"))
	report := jsonOf(t, config.ExitProblem, environ, "verify", "--repair")
	require.Equal(t, "not_compared", at(t, report, "result"))
	require.Contains(t, at(t, report, "error"), "permission denied")

	// Where some role is limited to parties, others don't see all rows: that is an error, and no list of differences.
	asOwner, party := maps.Clone(environ), "--parties=nobody::00"
	asOwner["INDEXER_DATABASE_URL"] = db.Config().ConnString()
	printed(t, config.ExitDone, asOwner, "grant", newRole(t, db.Config().ConnString(), "_limited", ""), party, "--anyway")
	for _, args := range [][]string{{"verify", "--all"}, {"status"}, {"contract", "00"}} {
		stdout, stderr := printed(t, config.ExitProblem, environ, args...)
		require.NotContains(t, stdout, "difference")
		require.Contains(t, stderr, "affected by row-level security")
		require.Contains(t, stderr, "use the role that runs the indexer, or one with BYPASSRLS")
	}
	alter := func(statements string) {
		_, err := db.Exec(t.Context(), statements)
		require.NoError(t, err)
	}
	alter("ALTER ROLE " + role + " BYPASSRLS")
	require.Equal(t, "equal", at(t, jsonOf(t, config.ExitDone, environ, "verify"), "result"))

	// A role that is limited itself has no rights to the tables' schema.
	alter("ALTER ROLE " + role + " NOBYPASSRLS; DROP OWNED BY " + role)
	printed(t, config.ExitDone, asOwner, "grant", role, party, "--anyway")
	stdout, stderr := printed(t, config.ExitProblem, environ, "verify", "--all")
	require.NotContains(t, stdout, "difference")
	require.Contains(t, stderr, "permission denied for schema indexer")
}
