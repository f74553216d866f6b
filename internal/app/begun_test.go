package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/config"
	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// activeAt is what a database says was active at an offset, each as contract, synchronizer, and the offset that
// activated it.
func activeAt(t *testing.T, databaseURL string, at int64) []string {
	t.Helper()
	return texts(t, databaseURL, `SELECT x.contract_id || ' ' || s.synchronizer_id || ' ' || x.activated_offset AS held FROM (
		SELECT a.contract_id, a.synchronizer_ref, a.activated_offset FROM indexer.active_contracts a WHERE a.activated_offset <= $1
		UNION ALL
		SELECT l.contract_id, l.synchronizer_ref, l.activated_offset FROM indexer.lifetimes l WHERE l.activated_offset <= $1 AND l.deactivated_offset > $1
	) x JOIN indexer.synchronizers s USING (synchronizer_ref) ORDER BY (x.contract_id || ' ' || s.synchronizer_id || ' ' || x.activated_offset) COLLATE "C"`, at)
}

func texts(t *testing.T, databaseURL, query string, args ...any) []string {
	t.Helper()
	return collect[string](t, databaseURL, query, args...)
}

func trueActiveAt(l *sandbox.Ledger, scope sandbox.Scope, at int64) []string {
	list := []string{}
	for _, r := range l.Truth(scope, at)["active_contracts"] {
		list = append(list, fmt.Sprint(r["contract_id"], " ", r["synchronizer_id"], " ", r["activated_offset"]))
	}
	slices.Sort(list)
	return list
}

// requireFloors compares both floors, as analysts see them; state < 0 is NULL.
func requireFloors(t *testing.T, databaseURL string, history, state int64) {
	t.Helper()
	want := fmt.Sprint(history, " NULL")
	if state >= 0 {
		want = fmt.Sprint(history, " ", state)
	}
	require.Equal(t, []string{want}, texts(t, databaseURL, "SELECT ledger.oldest_offset() || ' ' || coalesce(ledger.state_floor()::text, 'NULL')"))
}

// requireVerified verifies everything, offline too, and finds nothing.
func requireVerified(t *testing.T, databaseURL, ledgerURL string) VerifyResult {
	t.Helper()
	cfg := VerifyConfig{
		Database: config.Database{DatabaseURL: databaseURL}, Sources: config.Sources{LedgerURL: ledgerURL}, Verify: config.Verify{All: true},
	}
	result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { t.Errorf("verify: %v", d) })
	require.NoError(t, err)
	cfg.All, cfg.Offline = false, true
	_, err = RunVerify(t.Context(), cfg, testLogger(t), func(d audit.Difference) { t.Errorf("verify --offline: %v", d) })
	require.NoError(t, err)
	return result
}

// begunWorld is a database that was begun in the middle of a ledger, and went on a little.
type begunWorld struct {
	ledger    *sandbox.Ledger
	scope     config.Scope
	truth     sandbox.Scope
	at        int64
	database  string
	ledgerURL string
}

func newBegunWorld(t *testing.T, seed uint64, snapshot bool, options sandbox.ServerOptions, shape string) *begunWorld {
	t.Helper()
	w := begunWorldIn(t, throwaway.Migrated(t, migrate), seed, options, shape)
	if snapshot {
		_, err := RunBackfill(t.Context(), backfillFor(w.database, w.ledgerURL, w.scope, w.at), testLogger(t), nil)
		require.NoError(t, err)
	}
	w.index(t, snapshot)
	return w
}

// begunWorldIn is a world whose database holds nothing yet.
func begunWorldIn(t *testing.T, database string, seed uint64, options sandbox.ServerOptions, shape string) *begunWorld {
	t.Helper()
	w := &begunWorld{ledger: sandbox.NewLedger(sandbox.Options{Seed: seed, ActiveShare: 0.4}), scope: defaultScope(), database: database}
	w.ledger.Grow(180)
	w.at = quietOffset(t, w.ledger)
	w.ledgerURL = serve(t, w.ledger, options)
	w.scope.Shape = shape
	w.scope.Interfaces = []string{holdingInterface}
	w.truth = sandbox.Scope{Shape: sandbox.ACSDelta, Version: options.Version, Interfaces: w.scope.Interfaces}
	if shape == "ledger-effects" {
		w.truth.Shape = sandbox.LedgerEffects
	}
	return w
}

func (w *begunWorld) index(t *testing.T, snapshot bool) {
	t.Helper()
	run := indexerFor(w.database, w.ledgerURL, w.scope)
	if !snapshot {
		run.Start, run.LookupRate = strconv.FormatInt(w.at, 10), 1000
	}
	require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
}

// requireBegunAt requires what a database has that began with a snapshot at an offset: every row of every relation, and
// what was active at every offset.
func (w *begunWorld) requireBegunAt(t *testing.T, at int64) {
	t.Helper()
	requireFloors(t, w.database, at, at)
	require.Empty(t, sandbox.Diff(w.ledger.TruthFromSnapshot(w.truth, at, w.ledger.End()), relations(t, w.database)))
	for i := 0; i < w.ledger.Len(); i += 41 {
		if offset := w.ledger.Offset(i); offset >= at {
			require.Equal(t, trueActiveAt(w.ledger, w.truth, offset), activeAt(t, w.database, offset), "offset %d", offset)
		}
	}
	require.Equal(t, trueActiveAt(w.ledger, w.truth, at), activeAt(t, w.database, at))
	result := requireVerified(t, w.database, w.ledgerURL)
	require.Empty(t, result.Notes)
	require.Positive(t, result.Updates.Carried, "the snapshot's entries were compared")
}

// withoutBegin leaves out of what was active since when.
func withoutBegin(list []string) []string {
	for i, text := range list {
		list[i] = text[:strings.LastIndexByte(text, ' ')]
	}
	return list
}
