package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/audit"
)

// What scopes name.
const (
	holdingInterface = "#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"
	amuletTemplate   = "#splice-amulet:Splice.Amulet:Amulet"
	lockedTemplate   = "#splice-amulet:Splice.Amulet:LockedAmulet"
)

// scopeChange is a change of what is read.
type scopeChange struct {
	shape       string
	before, now config.Contracts
}

// simulatedScope is a scope as the simulator has it.
func simulatedScope(s config.Scope) sandbox.Scope {
	return sandbox.Scope{Parties: s.Parties, Templates: s.Templates, Interfaces: s.Interfaces, Shape: map[string]string{
		"acs-delta": sandbox.ACSDelta, "ledger-effects": sandbox.LedgerEffects,
	}[s.Shape], Version: "3.5", NoTopology: !s.Topology}
}

// newScopeWorld is a ledger with a number of updates, and an empty database. Topology events are not read: the truth
// has those of all parties, whatever the scope.
func newScopeWorld(t *testing.T, seed uint64, updates int) *fillWorld {
	t.Helper()
	w := &fillWorld{ledger: sandbox.NewLedger(sandbox.Options{Seed: seed, ActiveShare: 0.4}), scope: defaultScope(), database: throwaway.Migrated(t, migrate)}
	w.ledger.Grow(updates)
	w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Version: "3.5", ListLimit: 15})
	w.scope.Topology = false
	return w
}

// change indexes on in the world's scope, as `indexer run --change-scope` does.
func (w *fillWorld) change(t *testing.T) error {
	t.Helper()
	run := indexerFor(w.database, w.ledgerURL, w.scope)
	run.ChangeScope, run.VerifyRate = true, 100_000
	return RunIndexer(t.Context(), run, testLogger(t))
}

// A scope is changed to one that shows more. From then on it is read, by a daemon that works on; what was stored before
// stays as it was, until it has been filled in, in runs that are stopped at any point. At each moment verification
// finds no difference, nothing is shown as active that is not, and nothing that was shown is lost. At the end a
// database holds what one holds that was indexed in the new scope from the beginning.
func TestTheScopeIsChanged(t *testing.T) {
	t.Parallel()
	parties := sandbox.NewLedger(sandbox.Options{Seed: 91, ActiveShare: 0.4}).Parties()
	for name, c := range map[string]scopeChange{
		"a party, exercises":   {"ledger-effects", config.Contracts{Parties: parties[1:2], Interfaces: []string{holdingInterface}}, config.Contracts{Parties: parties[:4], Interfaces: []string{holdingInterface}}},
		"any party":            {"ledger-effects", config.Contracts{Parties: parties[1:3]}, config.Contracts{}},
		"a template":           {"acs-delta", config.Contracts{Templates: []string{amuletTemplate}}, config.Contracts{Templates: []string{lockedTemplate, amuletTemplate}}},
		"all templates":        {"ledger-effects", config.Contracts{Templates: []string{amuletTemplate}}, config.Contracts{}},
		"an interface":         {"acs-delta", config.Contracts{}, config.Contracts{Interfaces: []string{holdingInterface}}},
		"an interface to one":  {"acs-delta", config.Contracts{Templates: []string{amuletTemplate}}, config.Contracts{Templates: []string{amuletTemplate}, Interfaces: sandbox.InterfaceNames()}},
		"payloads and a party": {"ledger-effects", config.Contracts{Parties: parties[1:2], Templates: []string{amuletTemplate}, Interfaces: []string{holdingInterface}}, config.Contracts{Parties: parties[1:3], Interfaces: sandbox.InterfaceNames()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			var requests, stopAt atomic.Int64
			var stop atomic.Pointer[context.CancelFunc]
			w := &fillWorld{ledger: sandbox.NewLedger(sandbox.Options{Seed: 91, ActiveShare: 0.4}), scope: defaultScope(), database: throwaway.Migrated(t, migrate)}
			w.ledger.Grow(160)
			w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Version: "3.5", ListLimit: 15, Fault: func(r *http.Request) *sandbox.Fault {
				if cancel := stop.Load(); cancel != nil && strings.HasSuffix(r.URL.Path, "-page") && requests.Add(1) > stopAt.Load() {
					(*cancel)()
				}
				return nil
			}})
			// The truth has the topology events of all parties, whatever the scope.
			w.scope.Shape, w.scope.Contracts, w.scope.Topology = c.shape, c.before, c.before.Parties == nil
			w.index(t, true)
			earlier := simulatedScope(w.scope)
			w.scope.Contracts = c.now
			w.truth = simulatedScope(w.scope)
			changedAt := w.ledger.End()
			w.ledger.Grow(40)
			require.NoError(t, w.change(t))
			require.NoError(t, w.change(t), "once more changes nothing")

			daemon := startIndexer(t, indexerFor(w.database, w.ledgerURL, w.scope))
			incomplete := 0
			for i := range 4 {
				if texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text")[0] == "false" {
					incomplete++
				}
				require.Equal(t, []string{"true"}, texts(t, w.database, fmt.Sprintf("SELECT ledger.is_complete(%d, ledger.latest_offset())::text", changedAt)))
				requireVerified(t, w.database, w.ledgerURL)
				at := w.ledger.End()
				shown := activeAt(t, w.database, at)
				require.Subset(t, trueActiveAt(w.ledger, w.truth, at), shown)
				require.Subset(t, shown, trueActiveAt(w.ledger, earlier, at))
				ctx, cancel := context.WithCancel(t.Context())
				requests.Store(0)
				stopAt.Store(int64(4 + 6*i))
				stop.Store(&cancel)
				_, err := RunFill(ctx, fillFor(w.database, w.ledgerURL, w.scope, -1, -1, false), testLogger(t))
				stop.Store(nil)
				cancel()
				require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
				w.ledger.Grow(3)
				waitFor(t, w.database, lastUpdate(w.ledger))
			}
			require.Greater(t, incomplete, 1, "it was stopped in between")
			w.fill(t, -1, -1, false)
			require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text"))
			require.NoError(t, daemon.finish())
			w.index(t, true)
			w.requireWhole(t)
			require.Equal(t, []string{"1"}, texts(t, w.database, "SELECT count(*)::text FROM indexer.coverage"))
			require.Equal(t, []string{"1"}, texts(t, w.database, "SELECT count(*)::text FROM indexer.scopes"))
		})
	}
}

// What can't be kept right is refused, and changes nothing.
func TestChangesOfTheScopeThatAreRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	l := sandbox.NewLedger(sandbox.Options{Seed: 92, ActiveShare: 0.4})
	l.Grow(120)
	parties, url := l.Parties(), serve(t, l, sandbox.ServerOptions{Version: "3.5"})
	refused := func(t *testing.T, err error, what, do string) {
		t.Helper()
		var problem *ledger.Problem
		require.ErrorAs(t, err, &problem)
		require.Contains(t, problem.What, what)
		require.Contains(t, problem.Do, do)
	}
	scope := defaultScope()
	scope.Parties = parties[1:3]
	w := &fillWorld{ledger: l, scope: scope, database: throwaway.Migrated(t, migrate), ledgerURL: url}
	w.index(t, true)

	more := *w
	more.scope.Parties = parties[1:4]
	refused(t, RunIndexer(t.Context(), indexerFor(w.database, url, more.scope), testLogger(t)), "this run is configured with", "--change-scope")
	_, err := RunFill(t.Context(), fillFor(w.database, url, more.scope, -1, -1, false), testLogger(t))
	refused(t, err, "this run is configured with", "--change-scope")
	fewer := *w
	fewer.scope.Parties = parties[1:2]
	refused(t, RunIndexer(t.Context(), indexerFor(w.database, url, fewer.scope), testLogger(t)), "this run is configured with", "taken away on purpose, start `indexer run` once with --change-scope")
	for flag, change := range map[string]func(*config.Scope){
		"--shape":    func(s *config.Scope) { s.Shape = "ledger-effects" },
		"--topology": func(s *config.Scope) { s.Topology = false },
		"--blobs":    func(s *config.Scope) { s.Blobs = true },
	} {
		other := *w
		change(&other.scope)
		refused(t, other.change(t), "in "+flag+" it has another form", "leave these settings as they were")
	}
	require.NoError(t, w.change(t), "the same scope is no change")
	twice := *w
	twice.scope.Parties = []string{parties[2], parties[1], parties[2]}
	require.NoError(t, twice.change(t), "a party that is named twice is named")
	requireVerified(t, w.database, url)

	require.NoError(t, more.change(t))
	require.NoError(t, w.change(t), "nothing was read in the other scope yet")
	requireVerified(t, w.database, url)
	require.NoError(t, more.change(t))
	l.Grow(20)
	more.index(t, true)
	require.NoError(t, repairBoth(t, w.database, url), "a repair in two scopes")
	require.Equal(t, []string{"2"}, texts(t, w.database, "SELECT count(*)::text FROM indexer.coverage"))
	more.fill(t, -1, -1, false)
	requireVerified(t, w.database, url)

	begun := newFillWorld(t, 93, true, sandbox.ServerOptions{Version: "3.5"}, "acs-delta")
	begun.fill(t, begun.at/2, -1, false)
	begun.scope.Interfaces = sandbox.InterfaceNames()
	refused(t, begun.change(t), "history is being filled in", "backfill history")

	seeded := &fillWorld{ledger: l, scope: scope, database: throwaway.Migrated(t, migrate), ledgerURL: url, at: quietOffset(t, l)}
	_, err = RunBackfill(t.Context(), backfillFor(seeded.database, url, seeded.scope, seeded.at), testLogger(t), nil)
	require.NoError(t, err)
	seeded.scope.Parties = parties[1:2]
	refused(t, seeded.change(t), "nothing but the snapshot", "let `indexer run` read on")
}

// repairBoth repairs all there is, after something of both scopes was damaged, and verifies again.
func repairBoth(t *testing.T, databaseURL, ledgerURL string) error {
	t.Helper()
	texts(t, databaseURL, "DELETE FROM indexer.updates WHERE ledger_offset IN (SELECT min(ledger_offset) FROM indexer.updates) RETURNING ledger_offset::text")
	cfg := Verify{
		Database: config.Database{DatabaseURL: databaseURL}, Sources: config.Sources{LedgerURL: ledgerURL}, Verify: config.Verify{All: true, Repair: true},
	}
	found := 0
	_, err := RunVerify(t.Context(), cfg, testLogger(t), func(findings.Difference) { found++ })
	require.Positive(t, found)
	requireVerified(t, databaseURL, ledgerURL)
	return err
}

// requireHistoryAndScope compares a database whose scope was changed at an offset: what happened up to there is that of
// the scope before, what happened after, and what is active, is that of the one in force.
func (w *fillWorld) requireHistoryAndScope(t *testing.T, before sandbox.Scope, changedAt int64) {
	t.Helper()
	end := w.ledger.End()
	upTo := func(r sandbox.Row) bool {
		offset, err := r["ledger_offset"].(json.Number).Int64()
		return err == nil && offset <= changedAt
	}
	want, have := w.ledger.Truth(w.truth, end), relations(t, w.database)
	for relation, rows := range w.ledger.Truth(before, end) {
		if relation == "active_contracts" {
			continue
		}
		want[relation] = slices.DeleteFunc(want[relation], upTo)
		want[relation] = append(want[relation], slices.DeleteFunc(rows, func(r sandbox.Row) bool { return !upTo(r) })...)
	}
	delete(want, "active_contracts") // rows of contracts from before have the witnesses and views of the scope before
	delete(have, "active_contracts")
	require.Empty(t, sandbox.Diff(want, have))
	for i := 0; i < w.ledger.Len(); i += 41 {
		at, scope := w.ledger.Offset(i), w.truth
		if at < changedAt {
			scope = before
		}
		require.Equal(t, trueActiveAt(w.ledger, scope, at), activeAt(t, w.database, at), "offset %d, changed at %d", at, changedAt)
	}
	require.Equal(t, trueActiveAt(w.ledger, w.truth, end), texts(t, w.database, `SELECT contract_id || ' ' || synchronizer_id || ' ' || activated_offset AS held
		FROM ledger.active_contracts ORDER BY (contract_id || ' ' || synchronizer_id || ' ' || activated_offset) COLLATE "C"`))
}

// narrowings are scopes of which something is taken away.
func narrowings(parties []string) map[string]scopeChange {
	return map[string]scopeChange{
		"a party":             {"acs-delta", config.Contracts{Parties: parties[1:4]}, config.Contracts{Parties: parties[1:2]}},
		"any party":           {"ledger-effects", config.Contracts{}, config.Contracts{Parties: parties[1:3]}},
		"a template":          {"ledger-effects", config.Contracts{Templates: []string{amuletTemplate, lockedTemplate}}, config.Contracts{Templates: []string{amuletTemplate}}},
		"all other templates": {"acs-delta", config.Contracts{Interfaces: []string{holdingInterface}}, config.Contracts{Templates: []string{lockedTemplate}, Interfaces: []string{holdingInterface}}},
		"an interface":        {"acs-delta", config.Contracts{Templates: []string{lockedTemplate}, Interfaces: sandbox.InterfaceNames()}, config.Contracts{Templates: []string{lockedTemplate}, Interfaces: sandbox.InterfaceNames()[:1]}},
		"one for another":     {"ledger-effects", config.Contracts{Parties: parties[1:3]}, config.Contracts{Parties: []string{parties[1], parties[3]}}},
	}
}

// Something is taken away from a scope: what was stored of it stays as history, nothing of it is active from then on,
// and verification finds no difference. Added again, it is filled in, and the database holds what one holds in which
// nothing was ever taken away.
func TestTheScopeIsNarrowed(t *testing.T) {
	t.Parallel()
	parties := sandbox.NewLedger(sandbox.Options{Seed: 94, ActiveShare: 0.4}).Parties()
	for name, c := range narrowings(parties) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			w := newScopeWorld(t, 94, 160)
			w.scope.Shape, w.scope.Contracts = c.shape, c.before
			w.index(t, true)
			before := simulatedScope(w.scope)
			changedAt := w.ledger.End()
			w.scope.Contracts = c.now
			w.truth = simulatedScope(w.scope)
			w.ledger.Grow(60)
			require.NoError(t, w.change(t))
			if name != "one for another" {
				require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text"))
				w.requireHistoryAndScope(t, before, changedAt)
			}
			requireVerified(t, w.database, w.ledgerURL)
			if name == "a party" { // history is sealed as it was read
				run := indexerFor(w.database, w.ledgerURL, w.scope)
				run.VerifyRate, run.UntilCurrent = 100_000, false
				daemon := startIndexer(t, run)
				waitUntil(t, w.database, allVerified)
				require.NoError(t, daemon.finish())
				require.Equal(t, []string{"equal"}, texts(t, w.database, "SELECT DISTINCT result FROM ledger.verifications"))
			}
			if name == "one for another" {
				w.fill(t, -1, -1, false)
				both := w.scope
				both.Contracts = config.Contracts{Parties: parties[1:4]}
				require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text"))
				w.requireHistoryAndScope(t, simulatedScope(both), changedAt)
				requireVerified(t, w.database, w.ledgerURL)
				return
			}
			w.fill(t, -1, -1, false) // there is nothing to do
			folder := t.TempDir()
			_, err := exported(t, Export{Database: config.Database{DatabaseURL: w.database}, To: folder})
			require.NoError(t, err)

			w.scope.Contracts = c.before
			w.truth = before
			w.ledger.Grow(20)
			require.NoError(t, w.change(t))
			require.Equal(t, []string{"false"}, texts(t, w.database, "SELECT ledger.is_complete(0, ledger.latest_offset())::text"))
			_, err = exported(t, Export{Database: config.Database{DatabaseURL: w.database}, To: t.TempDir()})
			require.ErrorContains(t, err, "not everything was read in the new scope yet")
			requireVerified(t, w.database, w.ledgerURL)
			w.fill(t, -1, -1, false)
			w.index(t, true)
			w.requireWhole(t)
			require.Equal(t, []string{"1"}, texts(t, w.database, "SELECT count(*)::text FROM indexer.coverage"))
		})
	}
}

// A database that began at a snapshot, or was pruned, holds after an addition what one holds that began at the same
// floor with the larger scope.
func TestTheScopeIsChangedAboveASnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	parties := sandbox.NewLedger(sandbox.Options{Seed: 96, ActiveShare: 0.4}).Parties()
	for name, c := range map[string]struct {
		before, now config.Contracts
		begin       string
	}{
		"a party":        {config.Contracts{Parties: parties[1:2], Interfaces: []string{holdingInterface}}, config.Contracts{Parties: parties[1:4], Interfaces: []string{holdingInterface}}, "backfill"},
		"a template":     {config.Contracts{Templates: []string{amuletTemplate}}, config.Contracts{}, "backfill"},
		"an interface":   {config.Contracts{}, config.Contracts{Interfaces: sandbox.InterfaceNames()}, "prune"},
		"pruned":         {config.Contracts{Parties: parties[1:2]}, config.Contracts{Parties: parties[1:4]}, "prune"},
		"in the middle":  {config.Contracts{Parties: parties[1:2]}, config.Contracts{Parties: parties[1:4]}, "offset"},
		"there and back": {config.Contracts{Parties: parties[1:3]}, config.Contracts{Parties: parties[1:2]}, "backfill"},
		"back by a view": {config.Contracts{}, config.Contracts{Templates: []string{amuletTemplate}, Interfaces: sandbox.InterfaceNames()}, "backfill"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			w := newScopeWorld(t, 96, 160)
			w.at = quietOffset(t, w.ledger)
			w.scope.Contracts = c.before
			begin := func(database string, scope config.Scope) {
				run := indexerFor(database, w.ledgerURL, scope)
				switch c.begin {
				case "offset":
					run.Start = fmt.Sprint(w.at)
				case "backfill":
					_, err := RunBackfill(t.Context(), backfillFor(database, w.ledgerURL, scope, w.at), testLogger(t), nil)
					require.NoError(t, err)
				}
				require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
			}
			begin(w.database, w.scope)
			if c.begin == "prune" {
				prune(t, w.database, w.at+1)
				c.begin = "backfill"
			}
			w.ledger.Grow(20)
			w.index(t, true)
			w.scope.Contracts = c.now
			w.ledger.Grow(20)
			require.NoError(t, w.change(t))
			requireVerified(t, w.database, w.ledgerURL)
			if name == "there and back" {
				w.scope.Contracts = c.before
				w.ledger.Grow(20)
				require.NoError(t, w.change(t))
			}
			w.fill(t, w.at, -1, false) // and no history below
			w.index(t, true)
			require.Equal(t, []string{"true"}, texts(t, w.database, fmt.Sprintf("SELECT ledger.is_complete(%d, ledger.latest_offset())::text", w.at)))
			if c.begin != "offset" {
				requireVerified(t, w.database, w.ledgerURL)
			}
			require.Empty(t, texts(t, w.database, `SELECT a.contract_id FROM indexer.active_contracts a JOIN indexer.lifetimes l USING (activated_offset, activated_node_id)`))
			if name == "back by a view" { // what was stored before the change stays, so it is more than what a new database has
				require.Equal(t, trueActiveAt(w.ledger, simulatedScope(w.scope), w.ledger.End()), activeAt(t, w.database, w.ledger.End()))
				return
			}

			fresh := throwaway.Migrated(t, migrate)
			begin(fresh, w.scope)
			require.Empty(t, sandbox.Diff(relations(t, fresh), relations(t, w.database)))
			for _, query := range []string{
				"SELECT x.contract_id || ' ' || x.activated_offset || ' ' || x.deactivated_offset || ' ' || coalesce(x.amount::text, '') FROM indexer.lifetimes x ORDER BY 1",
				"SELECT x.contract_id || ' ' || x.activated_offset || ' ' || x.reassignment_counter || ' ' || coalesce(x.amount::text, '') FROM indexer.active_contracts x ORDER BY 1",
				"SELECT c.contract_id || ' ' || c.ledger_offset || ' ' || c.node_id || ' ' || coalesce(c.reassignment_counter, -1) || coalesce(c.payload::text, '') FROM indexer.carried_created c ORDER BY 1",
				"SELECT c.contract_id || ' ' || c.interface_id || ' ' || coalesce(c.view_value::text, '') FROM indexer.carried_interface_views c ORDER BY 1",
				"SELECT contract_id FROM indexer.lookups ORDER BY 1",
				"SELECT h.contract_id || ' ' || h.owner || ' ' || h.amount FROM ledger.holdings h ORDER BY 1",
			} {
				require.Equal(t, texts(t, fresh, query), texts(t, w.database, query), query)
			}
		})
	}
}

// What is stored of several scopes goes on to fit them when the database is reset to below a change, pruned, redacted,
// or changed again.
func TestTheScopeIsNarrowedAndMore(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	parties := sandbox.NewLedger(sandbox.Options{Seed: 97, ActiveShare: 0.4}).Parties()
	begin := func(t *testing.T) (w *fillWorld, before sandbox.Scope, changedAt int64) {
		t.Parallel()
		brief.Sample(t)
		w = newScopeWorld(t, 97, 120)
		w.scope.Parties = parties[1:4]
		w.index(t, true)
		before, changedAt = simulatedScope(w.scope), w.ledger.End()
		w.scope.Parties = parties[1:2]
		w.truth = simulatedScope(w.scope)
		w.ledger.Grow(40)
		require.NoError(t, w.change(t))
		return w, before, changedAt
	}
	reset := func(t *testing.T, w *fillWorld, to int64) {
		t.Helper()
		_, err := RunReset(t.Context(), config.Database{DatabaseURL: w.database}, ledger.Offset(to), true, testLogger(t))
		require.NoError(t, err)
	}
	t.Run("reset", func(t *testing.T) {
		w, before, changedAt := begin(t)
		for _, to := range []int64{changedAt + 5, changedAt, changedAt - 10, changedAt - 30} {
			reset(t, w, to)
			require.Equal(t, trueActiveAt(w.ledger, w.truth, to), activeAt(t, w.database, to), to)
			w.index(t, true)
			w.requireHistoryAndScope(t, before, min(to, changedAt))
			requireVerified(t, w.database, w.ledgerURL)
		}
		reset(t, w, 0)
		w.index(t, true)
		w.requireWhole(t)
		require.Equal(t, []string{"1"}, texts(t, w.database, "SELECT count(*)::text FROM indexer.scopes"))
		require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT (changed_to IS NULL)::text FROM indexer.floors"))
	})
	t.Run("pruned", func(t *testing.T) {
		w, before, changedAt := begin(t)
		at := offsetAfter(w.ledger, changedAt-60)
		require.Less(t, at, changedAt)
		prune(t, w.database, at+1)
		requireVerified(t, w.database, w.ledgerURL)
		for _, when := range []int64{at, changedAt - 1} {
			require.Equal(t, trueActiveAt(w.ledger, before, when), activeAt(t, w.database, when))
		}
		require.Equal(t, trueActiveAt(w.ledger, w.truth, w.ledger.End()), activeAt(t, w.database, w.ledger.End()))
		w.scope.Parties = parties[1:3] // one of them comes back
		require.NoError(t, w.change(t))
		w.fill(t, at, -1, false)
		requireVerified(t, w.database, w.ledgerURL)
		w.truth = simulatedScope(w.scope)
		require.Equal(t, trueActiveAt(w.ledger, w.truth, w.ledger.End()), activeAt(t, w.database, w.ledger.End()))
		prune(t, w.database, offsetAfter(w.ledger, changedAt+5)+1)
		requireVerified(t, w.database, w.ledgerURL)
		require.Equal(t, trueActiveAt(w.ledger, w.truth, w.ledger.End()), activeAt(t, w.database, w.ledger.End()))
	})
	t.Run("redacted", func(t *testing.T) {
		w, before, _ := begin(t)
		redacted := texts(t, w.database, `SELECT c.contract_id FROM ledger.created_events c JOIN ledger.archived_events a USING (contract_id)
			WHERE c.payload IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT 2`)
		require.Len(t, redacted, 2)
		for _, id := range redacted {
			_, err := RunRedact(t.Context(), config.Database{DatabaseURL: w.database}, audit.Redaction{ContractID: id}, "a test", true, testLogger(t))
			require.NoError(t, err)
		}
		requireVerified(t, w.database, w.ledgerURL)
		w.scope.Parties, w.truth = nil, before // all that is stored is read again
		require.NoError(t, w.change(t))
		w.fill(t, -1, -1, false)
		requireVerified(t, w.database, w.ledgerURL)
		require.Equal(t, []string{"2"}, texts(t, w.database, "SELECT count(*)::text FROM ledger.created_events WHERE contract_id = ANY ($1) AND payload IS NULL", redacted))
	})
	t.Run("again and again", func(t *testing.T) {
		w, _, _ := begin(t)
		for _, now := range [][]string{parties[2:4], parties[1:4], parties[3:5], parties[1:2], parties[1:5]} {
			w.scope.Parties = now
			w.ledger.Grow(15)
			require.NoError(t, w.change(t))
			w.truth = simulatedScope(w.scope)
			requireVerified(t, w.database, w.ledgerURL)
			require.Subset(t, trueActiveAt(w.ledger, w.truth, w.ledger.End()), activeAt(t, w.database, w.ledger.End()))
		}
		w.fill(t, -1, -1, false)
		w.index(t, true)
		requireVerified(t, w.database, w.ledgerURL)
		w.requireWhole(t)
	})
}

// A redaction and changes of the scope go together: what a contract held is erased where it left the scope without an
// event too, and an update's redaction leaves the contracts whole that a larger scope shows of it later, until it is
// redacted again.
func TestRedactingBetweenChangesOfTheScope(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	begin := func(t *testing.T, updates int, contracts config.Contracts) *fillWorld {
		t.Helper()
		t.Parallel()
		brief.Sample(t)
		w := newScopeWorld(t, 97, updates)
		w.scope.Contracts = contracts
		w.index(t, true)
		return w
	}
	redact := func(t *testing.T, w *fillWorld, what audit.Redaction) {
		t.Helper()
		_, err := RunRedact(t.Context(), config.Database{DatabaseURL: w.database}, what, "a test", true, testLogger(t))
		require.NoError(t, err)
		requireVerified(t, w.database, w.ledgerURL)
	}
	change := func(t *testing.T, w *fillWorld, to config.Contracts) {
		t.Helper()
		w.scope.Contracts = to
		require.NoError(t, w.change(t))
	}
	parties := sandbox.NewLedger(sandbox.Options{Seed: 97, ActiveShare: 0.4}).Parties()
	t.Run("of what left and came back", func(t *testing.T) {
		holdings := []string{holdingInterface}
		w := begin(t, 120, config.Contracts{Parties: parties[1:4], Interfaces: holdings})
		w.ledger.Grow(10)
		change(t, w, config.Contracts{Parties: parties[1:2], Interfaces: holdings})
		change(t, w, config.Contracts{Parties: parties[1:4], Interfaces: holdings})
		w.ledger.Grow(100)
		w.index(t, true)
		const held = "SELECT l.contract_id FROM indexer.lifetimes l WHERE l.amount IS NOT NULL"
		left := texts(t, w.database, held+" AND EXISTS (SELECT FROM ledger.archived_events a WHERE a.contract_id = l.contract_id AND a.ledger_offset > l.deactivated_offset) ORDER BY 1")
		require.NotEmpty(t, left)
		redact(t, w, audit.Redaction{ContractID: left[0]})
		require.Empty(t, texts(t, w.database, held+" AND l.contract_id = $1", left[0]))
	})
	t.Run("of an update of which more is shown later", func(t *testing.T) {
		w := begin(t, 200, config.Contracts{Templates: []string{amuletTemplate}})
		whole := w.scope
		whole.Contracts = config.Contracts{}
		of := map[string]string{} // a contract that is active, by the update that created it
		truth := w.ledger.Truth(simulatedScope(whole), w.ledger.End())
		for _, row := range truth["created_events"] {
			if slices.ContainsFunc(truth["active_contracts"], func(active sandbox.Row) bool { return active["contract_id"] == row["contract_id"] }) {
				of[row["update_id"].(string)] = row["contract_id"].(string)
			}
		}
		shown := texts(t, w.database, `SELECT u.update_id FROM ledger.updates u WHERE NOT EXISTS (
			SELECT FROM ledger.created_events c JOIN ledger.active_contracts x USING (contract_id) WHERE c.ledger_offset = u.ledger_offset) ORDER BY 1`)
		shown = slices.DeleteFunc(shown, func(id string) bool { return of[id] == "" })
		require.NotEmpty(t, shown)
		what := audit.Redaction{UpdateID: shown[0]}
		redact(t, w, what)
		change(t, w, whole.Contracts)
		w.fill(t, -1, -1, false)
		requireVerified(t, w.database, w.ledgerURL)
		require.Len(t, texts(t, w.database, "SELECT payload::text FROM ledger.active_contracts WHERE contract_id = $1 AND payload IS NOT NULL", of[what.UpdateID]), 1)
		_, err := RunRedact(t.Context(), config.Database{DatabaseURL: w.database}, what, "a test", false, testLogger(t))
		requireProblem(t, err, of[what.UpdateID], "is active")
	})
}

// Without the rights of a party that was taken away the daemon goes on. Verifying says what it needs them for, and does
// without when what was stored of that party is pruned.
func TestRightsOfAPartyThatWasTakenAway(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	w := newScopeWorld(t, 94, 80)
	parties := w.ledger.Parties()[1:3]
	authority := sandbox.NewAuthority(sandbox.AuthorityOptions{ParticipantID: w.ledger.ParticipantID()})
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAs(parties[0]), sandbox.CanReadAs(parties[1])}})
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(authority.Token("reader")), 0o600))
	w.ledgerURL = serve(t, w.ledger, sandbox.ServerOptions{Version: "3.5", ListLimit: 15, Authority: authority})
	read := func(change bool) {
		t.Helper()
		cfg := indexerFor(w.database, w.ledgerURL, w.scope)
		cfg.LedgerAccess.TokenFile, cfg.ChangeScope = token, change
		require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	}
	w.scope.Parties = parties
	read(false)
	w.ledger.Grow(30)
	w.scope.Parties = parties[:1]
	read(true)
	authority.SetUser(sandbox.User{ID: "reader", Rights: []sandbox.Right{sandbox.CanReadAs(parties[0])}})
	w.ledger.Grow(30)
	read(false)

	v := Verify{Database: config.Database{DatabaseURL: w.database}, Sources: config.Sources{LedgerURL: w.ledgerURL}, Verify: config.Verify{All: true}}
	v.LedgerAccess.TokenFile = token
	verified := func() error {
		_, err := RunVerify(t.Context(), v, testLogger(t), func(d findings.Difference) { t.Error(d) })
		return err
	}
	requireProblem(t, verified(), "the scope of then", "lacks CanReadAs for party "+parties[1], "the earlier scope", "`indexer prune`")
	prune(t, w.database, offsetAfter(w.ledger, w.ledger.Offset(85))+1)
	require.NoError(t, verified())
}

// Killed with SIGKILL at any point, with a daemon that goes on, both changes of the scope and the filling in continue
// where they were.
func TestKilledWhileTheScopeIsChanged(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills programs again and again until they get through")
	l := sandbox.NewLedger(sandbox.Options{Seed: 98, ActiveShare: 0.4})
	l.Grow(500)
	w := &fillWorld{ledger: l, scope: defaultScope(), database: throwaway.Migrated(t, migrate)}
	w.ledgerURL = serve(t, l, sandbox.ServerOptions{Version: "3.5", ListLimit: 15, Latency: time.Millisecond})
	w.at = quietOffset(t, l)
	parties := l.Parties()
	w.scope.Parties, w.scope.Topology = parties[1:3], false
	_, err := RunBackfill(t.Context(), backfillFor(w.database, w.ledgerURL, w.scope, w.at), testLogger(t), nil)
	require.NoError(t, err)
	w.index(t, true)
	env := func() []string {
		return []string{
			"INDEXER_LEDGER_URL=" + w.ledgerURL, "INDEXER_DATABASE_URL=" + w.database, "INDEXER_LISTEN=", "INDEXER_TOPOLOGY=false", deltas,
			"INDEXER_PARTIES=" + strings.Join(w.scope.Parties, ","),
		}
	}
	random, kills := rand.New(rand.NewPCG(1, 2)), 0
	for _, now := range [][]string{parties[1:2], parties[1:5]} {
		w.scope.Parties = now
		l.Grow(60)
		kills += killUntilDone(t, random, env(), build(t, "indexer"), "run", "--until-current", "--change-scope")
	}
	daemon := startIndexer(t, indexerFor(w.database, w.ledgerURL, w.scope))
	kills += killUntilDone(t, random, env(), build(t, "backfill"), "history", "--from", fmt.Sprint(w.at))
	require.NoError(t, daemon.finish())
	require.Positive(t, kills)
	w.index(t, true)
	requireVerified(t, w.database, w.ledgerURL)
	fresh := throwaway.Migrated(t, migrate)
	_, err = RunBackfill(t.Context(), backfillFor(fresh, w.ledgerURL, w.scope, w.at), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(fresh, w.ledgerURL, w.scope), testLogger(t)))
	require.Empty(t, sandbox.Diff(relations(t, fresh), relations(t, w.database)))
}

// knowing is an origin that knows some parties.
type knowing struct {
	origin
	hosted map[string]bool
}

func (k knowing) Hosted(context.Context, []string) (map[string]bool, error) { return k.hosted, nil }

// A party that the participant does not know is not added; one that it does not host is, and one that it does not know
// any more can stay.
func TestUnknownPartiesAreNotAdded(t *testing.T) {
	t.Parallel()
	u := &updates{indexer: &indexer{logger: testLogger(t)}, origin: knowing{hosted: map[string]bool{"alice": true, "bob": false}}}
	scope := func(parties ...string) ledger.Scope { return ledger.Scope{Parties: parties} }
	require.NoError(t, u.refuseUnknown(t.Context(), scope("gone"), scope("gone", "alice", "bob")))
	require.NoError(t, u.refuseUnknown(t.Context(), scope("alice"), scope()))
	var problem *ledger.Problem
	require.ErrorAs(t, u.refuseUnknown(t.Context(), scope("alice"), scope("alice", "bob", "nobody")), &problem)
	require.Contains(t, problem.What, "the participant does not know nobody")
	require.Contains(t, problem.Do, "correct --parties")
}
