package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// simulatedScope is a scope as the simulator has it.
func simulatedScope(s config.Scope) sandbox.Scope {
	return sandbox.Scope{Parties: s.Parties, Templates: s.Templates, Interfaces: s.Interfaces, Shape: map[string]string{
		"acs-delta": sandbox.ACSDelta, "ledger-effects": sandbox.LedgerEffects,
	}[s.Shape], Version: "3.5", NoTopology: !s.Topology}
}

// change indexes on in the world's scope, as `indexer run --change-scope` does.
func (w *fillWorld) change(t *testing.T) error {
	t.Helper()
	run := indexerFor(w.database, w.ledgerURL, w.scope)
	run.ChangeScope, run.VerifyRate = true, 100_000
	return RunIndexer(t.Context(), run, testLogger(t))
}

// A scope is changed to one that shows more. From then on it is read, by a daemon that works on; what was stored before stays as it was, until it has been filled in,
// in runs that are stopped at any point. At each moment verification finds no difference, nothing is shown as active that is not, and
// nothing that was shown is lost. At the end a database holds what one holds that was indexed in the new scope from the beginning.
func TestTheScopeIsChanged(t *testing.T) {
	t.Parallel()
	parties := sandbox.NewLedger(sandbox.Options{Seed: 91, ActiveShare: 0.4}).Parties()
	holding := "#splice-api-token-holding-v1:Splice.Api.Token.HoldingV1:Holding"
	amulet, locked := "#splice-amulet:Splice.Amulet:Amulet", "#splice-amulet:Splice.Amulet:LockedAmulet"
	for name, c := range map[string]struct {
		shape       string
		before, now config.Contracts
	}{
		"a party":              {"acs-delta", config.Contracts{Parties: parties[1:2]}, config.Contracts{Parties: parties[1:4]}},
		"a party, exercises":   {"ledger-effects", config.Contracts{Parties: parties[1:2], Interfaces: []string{holding}}, config.Contracts{Parties: parties[:4], Interfaces: []string{holding}}},
		"any party":            {"ledger-effects", config.Contracts{Parties: parties[1:3]}, config.Contracts{}},
		"a template":           {"acs-delta", config.Contracts{Templates: []string{amulet}}, config.Contracts{Templates: []string{locked, amulet}}},
		"all templates":        {"ledger-effects", config.Contracts{Templates: []string{amulet}}, config.Contracts{}},
		"an interface":         {"acs-delta", config.Contracts{}, config.Contracts{Interfaces: []string{holding}}},
		"an interface to one":  {"acs-delta", config.Contracts{Templates: []string{amulet}}, config.Contracts{Templates: []string{amulet}, Interfaces: sandbox.InterfaceNames()}},
		"payloads and a party": {"ledger-effects", config.Contracts{Parties: parties[1:2], Templates: []string{amulet}, Interfaces: []string{holding}}, config.Contracts{Parties: parties[1:3], Interfaces: sandbox.InterfaceNames()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "a party, exercises" && name != "an interface" {
				brief.Skip(t)
			}
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
	refused(t, RunIndexer(t.Context(), indexerFor(w.database, url, more.scope), testLogger(t)), "this run is configured for", "--change-scope")
	_, err := RunFill(t.Context(), fillFor(w.database, url, more.scope, -1, -1, false), testLogger(t))
	refused(t, err, "this run is configured for", "--change-scope")
	for flag, change := range map[string]func(*config.Scope){
		"--parties":   func(s *config.Scope) { s.Parties = parties[1:2] },
		"--templates": func(s *config.Scope) { s.Templates = []string{"#splice-amulet:Splice.Amulet:Amulet"} },
		"--shape":     func(s *config.Scope) { s.Shape = "ledger-effects" },
		"--topology":  func(s *config.Scope) { s.Topology = false },
		"--blobs":     func(s *config.Scope) { s.Blobs = true },
	} {
		other := *w
		change(&other.scope)
		refused(t, other.change(t), "in "+flag+" it lacks something", "add to --parties")
	}
	require.NoError(t, w.change(t), "the same scope is no change")
	requireVerified(t, w.database, url)

	require.NoError(t, more.change(t))
	require.NoError(t, w.change(t), "nothing was read in the other scope yet")
	requireVerified(t, w.database, url)
	require.NoError(t, more.change(t))
	l.Grow(20)
	more.index(t, true)
	refused(t, w.change(t), "in --parties it lacks something", "add to --parties")
	_, err = RunFill(t.Context(), fillFor(w.database, url, more.scope, 5, -1, false), testLogger(t))
	refused(t, err, "the scope was changed", "leave out --from and --to")
	require.NoError(t, repairBoth(t, w.database, url), "a repair in two scopes")
	require.Equal(t, []string{"2"}, texts(t, w.database, "SELECT count(*)::text FROM indexer.coverage"))
	more.fill(t, -1, -1, false)
	requireVerified(t, w.database, url)

	begun := newFillWorld(t, 93, true, sandbox.ServerOptions{Version: "3.5"}, "acs-delta")
	begun.scope.Interfaces = sandbox.InterfaceNames()
	refused(t, begun.change(t), "does not hold the ledger from its beginning on", "backfill history")
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
