package app

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// verifyWith is the configuration that verifies a database with a participant.
func verifyWith(database, ledgerURL string, repair bool) VerifyConfig {
	run := indexerFor(database, ledgerURL, defaultScope())
	return VerifyConfig{Database: run.Database, Sources: run.Sources, Verify: config.Verify{Sample: 5, Repair: repair}}
}

// execute runs statements on a database.
func execute(t *testing.T, database string, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		_, err := sessions(t, database).Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
}

// A participant with another history is no measure: nothing is compared with it, and nothing repaired from it.
func TestVerifyRefusesAnotherHistory(t *testing.T) {
	t.Parallel()
	brief.Long(t, "reads several histories one after the other")
	database, _, _ := deltasWorld.indexed(t)
	m := newMutator(t, database, "indexer", 1)
	before := m.state()
	for name, c := range map[string]struct{ cut, since int }{
		"grown past": {100, 300}, "one update lost": {199, 300}, "not come so far": {150, 10}, "lagging behind": {150, 0},
	} {
		other := restored(c.cut, c.since)
		url := serve(t, other, sandbox.ServerOptions{})
		for _, repair := range []bool{false, true} {
			_, err := RunVerify(t.Context(), verifyWith(database, url, repair), testLogger(t), func(d audit.Difference) { t.Errorf("%s: compared: %v", name, d) })
			requireProblem(t, err, "another history", fmt.Sprintf("the last offset at which they agree is %d", other.Offset(c.cut-1)), "`indexer reanchor`")
			require.Equal(t, before, m.state(), name)
		}
	}
}

// The last update is where a history is recognized. That it is damaged itself makes no other history of it.
func TestVerifyRepairsTheLastUpdate(t *testing.T) {
	t.Parallel()
	brief.Long(t, "damages, verifies and repairs a database several times")
	database, l, url := deltasWorld.indexed(t)
	cfg := verifyWith(database, url, true)
	cfg.All = true
	for name, statement := range map[string]string{
		"another id": "UPDATE indexer.updates SET update_id = 'other' WHERE ledger_offset = %d", "no row": "DELETE FROM indexer.updates WHERE ledger_offset = %d",
		"an earlier place": "UPDATE indexer.updates SET ledger_offset = 0 WHERE ledger_offset = %d", "a place beyond": "UPDATE indexer.updates SET ledger_offset = ledger_offset * 2 WHERE ledger_offset = %d",
		"doubled": "CREATE TEMP TABLE x AS SELECT * FROM indexer.updates WHERE ledger_offset = %d; UPDATE x SET ledger_offset = ledger_offset * 2; INSERT INTO indexer.updates TABLE x",
	} {
		execute(t, database, fmt.Sprintf(statement, lastUpdate(l)))
		result, err := RunVerify(t.Context(), cfg, testLogger(t), func(audit.Difference) {})
		require.NoError(t, err)
		require.Positive(t, result.Differences, name)
		require.Zero(t, result.Remaining(true), name)
		require.Empty(t, sandbox.Diff(l.Truth(sandbox.Scope{Shape: sandbox.ACSDelta}, l.End()), relations(t, database)), name)
	}
}

// Nothing is equal where nothing was compared, and what is lost can't hide the rest.
func TestVerifyWithoutWhatItNeeds(t *testing.T) {
	t.Parallel()
	l := backedUp(100)
	url := serve(t, l, sandbox.ServerOptions{})
	scan := serveScan(t, sandbox.NewScan(l, sandbox.ScanOptions{}))
	for name, c := range map[string]struct {
		indexed    bool
		statements string
		problem    string // empty: it is compared, and found equal but for the relations
		relations  []string
	}{
		"an empty database":     {false, "SELECT 1", "nothing has been indexed", nil},
		"a snapshot begun":      {false, "INSERT INTO indexer.snapshots (snapshot_offset, scope, token_kind, token, entries) VALUES (7, 'x', '', '', 0)", "the snapshot at offset 7 is not finished", nil},
		"no scope":              {true, "DELETE FROM indexer.scopes", "", []string{"scopes"}},
		"no claims":             {true, "DELETE FROM indexer.checkpoints; DELETE FROM indexer.coverage; DELETE FROM indexer.floors", "the scope of what is stored is missing", nil},
		"neither of two claims": {true, "DELETE FROM indexer.checkpoints WHERE stream = 'updates'; DELETE FROM indexer.coverage", "", []string{"checkpoints"}},
		"no records":            {true, "DELETE FROM indexer.transactions", "", []string{"transactions"}},
		"everything":            {true, "SELECT 1", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			database := throwaway.Migrated(t, migrate)
			if c.indexed {
				database = throwaway.Prepared(t, migrate, "a ledger and its history", func(ctx context.Context, database string) error {
					run := indexerFor(database, url, defaultScope())
					run.ScanURL = []string{scan}
					return RunIndexer(ctx, run, slog.New(slog.DiscardHandler))
				})
			}
			execute(t, database, c.statements)
			found := map[string]bool{}
			result, err := RunVerify(t.Context(), verifyWith(database, url, false), testLogger(t), func(d audit.Difference) { found[d.Relation] = true })
			if c.problem != "" {
				requireProblem(t, err, c.problem)
				require.False(t, result.Compared())
				return
			}
			require.NoError(t, err)
			contradictory := found["scopes"] || found["checkpoints"]
			require.Equal(t, !contradictory, result.Compared(), "nothing is compared by what contradicts itself")
			require.Equal(t, c.relations == nil, len(found) == 0)
			for _, relation := range c.relations {
				require.True(t, found[relation], relation)
			}
			if name == "no scope" { // an indexer that is started with the same one records it again
				require.NoError(t, RunIndexer(t.Context(), indexerFor(database, url, defaultScope()), testLogger(t)))
				_, err := RunVerify(t.Context(), verifyWith(database, url, false), testLogger(t), func(d audit.Difference) { t.Error(d) })
				require.NoError(t, err)
			}
			if contradictory {
				return
			}
			require.NotNil(t, result.Transactions, "it is compared with itself")
			require.True(t, strings.Contains(strings.Join(result.Notes, "\n"), "no --scan-url is given"))
		})
	}
}

// A snapshot that the participant may have cut shows no differences, and nothing is removed because it is not in there.
func TestVerifyAgainstASnapshotThatMayBeCut(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "runs the daemon several times")
	l := sandbox.NewLedger(sandbox.Options{Seed: 3})
	l.Grow(800)
	at := quietOffset(t, l)
	database := throwaway.Migrated(t, migrate)
	whole := serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 5000})
	_, err := RunBackfill(t.Context(), backfillFor(database, whole, defaultScope(), at), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(database, whole, defaultScope()), testLogger(t)))
	requireVerified(t, database, whole)
	before := relations(t, database)

	cutting := serve(t, l, sandbox.ServerOptions{Version: "3.4", ListLimit: 50, IgnoreLargeLimit: true})
	for _, all := range []bool{true, false} {
		for _, repair := range []bool{true, false} {
			cfg := verifyWith(database, cutting, repair)
			cfg.All = all
			_, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) {
				require.Fail(t, "nothing differs", d.String())
			})
			requireProblem(t, err, "may have cut it", "http-list-max-elements-limit")
			require.Empty(t, sandbox.Diff(before, relations(t, database)))
		}
	}
	requireVerified(t, database, whole)
}

// A step that begins again, as for each range without coverage, is measured anew.
func TestAStepThatBeginsAgainIsMeasuredAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		report, end := meterSteps(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			for done := int64(0); done < 3; done++ {
				report(audit.Progress{Step: "offsets", Done: 100 * done, Of: 1000})
				time.Sleep(15 * time.Second)
			}
		}
		end()
		require.Equal(t, 4, strings.Count(log.String(), "per_second=6"), log.String())
		require.NotContains(t, log.String(), "=-")
	})
}
