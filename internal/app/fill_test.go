package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/ingest"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/config"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

func fillFor(databaseURL, ledgerURL string, scope config.Scope, from, to int64, newestFirst bool) Fill {
	f := Fill{Database: config.Database{DatabaseURL: databaseURL}, Ledger: config.Ledger{LedgerURL: ledgerURL}, Scope: scope}
	f.NewestFirst = newestFirst
	if from >= 0 {
		f.From = &from
	}
	if to >= 0 {
		f.To = &to
	}
	return f
}

// truthFilled is what the relations must hold of a ledger after a snapshot, or a start without one, and the history in
// ranges before it.
func truthFilled(l *sandbox.Ledger, scope sandbox.Scope, begun map[string][]sandbox.Row, at int64, ranges []ledger.Range) map[string][]sandbox.Row {
	filled := func(r sandbox.Row) bool {
		offset, err := r["ledger_offset"].(json.Number).Int64()
		return err == nil && offset <= at && slices.ContainsFunc(ranges, func(f ledger.Range) bool { return offset > int64(f.From) && offset <= int64(f.To) })
	}
	truth := map[string][]sandbox.Row{}
	for relation, rows := range l.Truth(scope, l.End()) {
		if relation == "active_contracts" {
			continue
		}
		truth[relation] = slices.DeleteFunc(rows, func(r sandbox.Row) bool { return !filled(r) })
		for _, r := range begun[relation] {
			if !filled(r) {
				truth[relation] = append(truth[relation], r)
			}
		}
	}
	created := map[any]any{} // where, by contract, as far as that was filled in
	for _, r := range truth["created_events"] {
		if r["origin"] == "transaction" {
			created[r["contract_id"]] = r["ledger_offset"]
		}
	}
	for _, r := range begun["active_contracts"] {
		if r = maps.Clone(r); r["created_offset"] == nil {
			r["created_offset"] = created[r["contract_id"]]
		}
		truth["active_contracts"] = append(truth["active_contracts"], r)
	}
	return truth
}

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
func requireVerified(t *testing.T, databaseURL, ledgerURL string) Verification {
	t.Helper()
	cfg := Verify{
		Database: config.Database{DatabaseURL: databaseURL}, Sources: config.Sources{LedgerURL: ledgerURL}, Verify: config.Verify{All: true},
	}
	result, err := RunVerify(t.Context(), cfg, testLogger(t), func(d findings.Difference) { t.Errorf("verify: %v", d) })
	require.NoError(t, err)
	cfg.All, cfg.Offline = false, true
	_, err = RunVerify(t.Context(), cfg, testLogger(t), func(d findings.Difference) { t.Errorf("verify --offline: %v", d) })
	require.NoError(t, err)
	return result
}

// fillWorld is a database that was begun in the middle of a ledger, and went on a little.
type fillWorld struct {
	ledger    *sandbox.Ledger
	scope     config.Scope
	truth     sandbox.Scope
	at        int64
	database  string
	ledgerURL string
}

func newFillWorld(t *testing.T, seed uint64, snapshot bool, options sandbox.ServerOptions, shape string) *fillWorld {
	t.Helper()
	w := fillWorldIn(t, throwaway.Migrated(t, migrate), seed, options, shape)
	if snapshot {
		_, err := RunBackfill(t.Context(), backfillFor(w.database, w.ledgerURL, w.scope, w.at), testLogger(t), nil)
		require.NoError(t, err)
	}
	w.index(t, snapshot)
	return w
}

// fillWorldIn is a world whose database holds nothing yet.
func fillWorldIn(t *testing.T, database string, seed uint64, options sandbox.ServerOptions, shape string) *fillWorld {
	t.Helper()
	w := &fillWorld{ledger: sandbox.NewLedger(sandbox.Options{Seed: seed, ActiveShare: 0.4}), scope: defaultScope(), database: database}
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

func (w *fillWorld) index(t *testing.T, snapshot bool) {
	t.Helper()
	run := indexerFor(w.database, w.ledgerURL, w.scope)
	if !snapshot {
		run.Start, run.LookupRate = strconv.FormatInt(w.at, 10), 1000
	}
	require.NoError(t, RunIndexer(t.Context(), run, testLogger(t)))
}

func (w *fillWorld) fill(t *testing.T, from, to int64, newestFirst bool) ingest.Filled {
	t.Helper()
	filled, err := RunFill(t.Context(), fillFor(w.database, w.ledgerURL, w.scope, from, to, newestFirst), testLogger(t))
	require.NoError(t, err)
	return filled
}

// requireWhole compares a database whose history was filled in to the beginning with the model, and what follows from
// its facts with these.
func (w *fillWorld) requireWhole(t *testing.T) {
	t.Helper()
	requireFloors(t, w.database, 0, 0)
	require.Empty(t, sandbox.Diff(w.ledger.Truth(w.truth, w.ledger.End()), relations(t, w.database)))
	for i := 0; i < w.ledger.Len(); i += 61 {
		at := w.ledger.Offset(i)
		require.Equal(t, trueActiveAt(w.ledger, w.truth, at), activeAt(t, w.database, at), "offset %d", at)
	}
	for _, relation := range []string{"carried_created", "carried_interface_views", "carried_reassignments", "fill_active", "lookups", "snapshots"} {
		require.Equal(t, []string{"0"}, texts(t, w.database, "SELECT count(*)::text FROM indexer."+relation), relation)
	}
	result := requireVerified(t, w.database, w.ledgerURL)
	require.Empty(t, result.Notes)
}

// Filled in to the beginning, a database holds what one holds that was indexed from there: every row of every relation,
// and what was active at every offset.
func TestHistoryIsFilledInToTheBeginning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options     sandbox.ServerOptions
		shape       string
		snapshot    bool
		newestFirst bool
	}{
		"lists":                       {sandbox.ServerOptions{Version: "3.5", StrictInterface: true, ListLimit: 40}, "acs-delta", true, true},
		"exercises":                   {sandbox.ServerOptions{Version: "3.5"}, "ledger-effects", true, true},
		"without a snapshot":          {sandbox.ServerOptions{Version: "3.5"}, "acs-delta", false, false},
		"without a snapshot, newest":  {sandbox.ServerOptions{Version: "3.5"}, "ledger-effects", false, true},
		"without a snapshot, 3.4 too": {sandbox.ServerOptions{Version: "3.4", ListLimit: 5000}, "acs-delta", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			w := newFillWorld(t, 21, c.snapshot, c.options, c.shape)
			filled := w.fill(t, -1, -1, c.newestFirst)
			require.Positive(t, filled.Updates)
			again := w.fill(t, -1, -1, c.newestFirst)
			require.Zero(t, again.Updates)
			require.GreaterOrEqual(t, again.Range.From, again.Range.To)
			w.ledger.Grow(50)
			w.index(t, c.snapshot)
			w.requireWhole(t)
		})
	}
}

// In pieces of any order and overlap, and with a kill in between, nothing is doubled; the floors follow, and what is
// filled in and does not reach up to the floor is there too. At each moment verification finds no difference.
func TestHistoryIsFilledInInPieces(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	for seed := range uint64(2) {
		snapshot := seed%2 == 0
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			w := newFillWorld(t, 30+seed, snapshot, sandbox.ServerOptions{Version: "3.5"}, "acs-delta")
			begun := relations(t, w.database)
			var ranges []ledger.Range
			for range 4 {
				from := random.Int64N(w.at - 1)
				to := from + 1 + random.Int64N(w.at-from)
				w.fill(t, from, to, random.IntN(2) == 0)
				ranges = append(ranges, ledger.Range{From: ledger.Offset(from), To: ledger.Offset(to)})
				want := truthFilled(w.ledger, w.truth, begun, w.at, ranges)
				require.Empty(t, sandbox.Diff(want, relations(t, w.database)), "ranges %v", ranges)
				state, floor := int64(-1), floorOf(w.at, ranges)
				if snapshot {
					state = w.at
				}
				if floor > 0 {
					requireFloors(t, w.database, floor, state)
				}
				requireVerified(t, w.database, w.ledgerURL)
				if t.Failed() {
					t.Fatalf("after %v, begun at %d", ranges, w.at)
				}
			}
			w.fill(t, -1, -1, random.IntN(2) == 0)
			w.requireWhole(t)
		})
	}
}

// floorOf is where history is complete from, up to where it was begun.
func floorOf(at int64, ranges []ledger.Range) int64 {
	floor := ledger.Offset(at)
	for moved := true; moved; {
		moved = false
		for _, r := range ranges {
			if r.From < floor && r.To >= floor {
				floor, moved = r.From, true
			}
		}
	}
	return int64(floor)
}

// While a daemon indexes what comes, history is filled in; stopped at any point, the next run continues.
func TestHistoryIsFilledInBesideTheDaemon(t *testing.T) {
	t.Parallel()
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	for _, newestFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("newest first ", newestFirst), func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			var stop atomic.Pointer[context.CancelFunc]
			var requests, stopAt atomic.Int64
			w := newFillWorld(t, 41, true, sandbox.ServerOptions{Version: "3.5", ListLimit: 20, Fault: func(r *http.Request) *sandbox.Fault {
				if !strings.HasSuffix(r.URL.Path, "/flats") && !strings.HasSuffix(r.URL.Path, "-page") {
					return nil
				}
				n := requests.Add(1)
				if cancel := stop.Load(); cancel != nil && n > stopAt.Load() {
					(*cancel)()
				}
				if n%9 == 0 {
					return &sandbox.Fault{Status: http.StatusServiceUnavailable, Body: "busy"}
				}
				return nil
			}}, "acs-delta")
			run := indexerFor(w.database, w.ledgerURL, w.scope)
			run.VerifyRate = 10_000
			daemon := startIndexer(t, run)
			for i := range 5 {
				ctx, cancel := context.WithCancel(t.Context())
				stop.Store(&cancel)
				stopAt.Store(requests.Load() + int64(2+5*i))
				_, err := RunFill(ctx, fillFor(w.database, w.ledgerURL, w.scope, -1, w.at-100+int64(20*i), newestFirst), testLogger(t))
				require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
				cancel()
				w.ledger.Grow(5)
			}
			stop.Store(nil)
			w.fill(t, -1, -1, newestFirst)
			require.NoError(t, daemon.finish())
			w.index(t, true)
			w.requireWhole(t)
		})
	}
}

// Killed with SIGKILL at any point, also while the lifetimes are computed, and started again, with ranges of any
// overlap and beside a daemon: nothing is lost and nothing is there twice.
func TestKilledWhileHistoryIsFilledIn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	program := build(t, "backfill")
	for _, snapshot := range []bool{true, false} {
		t.Run(fmt.Sprint("snapshot ", snapshot), func(t *testing.T) {
			t.Parallel()
			if !snapshot {
				brief.Skip(t)
			}
			w := newFillWorld(t, 61, snapshot, sandbox.ServerOptions{Version: "3.5", StrictInterface: true, ListLimit: 15, Latency: time.Millisecond}, "ledger-effects")
			run := indexerFor(w.database, w.ledgerURL, w.scope)
			run.LookupRate = 1000
			daemon := startIndexer(t, run)
			env := []string{
				"INDEXER_DATABASE_URL=" + w.database, "INDEXER_LEDGER_URL=" + w.ledgerURL, "INDEXER_SHAPE=" + w.scope.Shape,
				"INDEXER_INTERFACES=" + strings.Join(w.scope.Interfaces, ","),
			}
			random := rand.New(rand.NewPCG(62, 0))
			kills := 0
			for range 3 {
				from := random.Int64N(w.at - 1)
				args := []string{"history", fmt.Sprint("--from=", from), fmt.Sprint("--to=", from+1+random.Int64N(w.at-from))}
				if random.IntN(2) == 0 {
					args = append(args, "--newest-first")
				}
				kills += killUntilDone(t, random, env, program, args...)
				w.ledger.Grow(20)
			}
			kills += killUntilDone(t, random, env, program, "history")
			require.Positive(t, kills)
			require.NoError(t, daemon.finish())
			w.index(t, snapshot)
			w.requireWhole(t)
		})
	}
}

// A participant that is pruned meanwhile ends what is filled in there; where a beginning was asked for that is gone, it
// says so.
func TestParticipantPrunedWhileHistoryIsFilledIn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "fills histories in and verifies them")
	for name, c := range map[string]struct {
		strict      bool // the participant can't be asked how far it is pruned
		newestFirst bool
		from        int64
		refused     bool
	}{
		"oldest first": {from: -1},
		"newest first": {newestFirst: true, from: -1},
		"asked for":    {from: 5, refused: true},
		"not told":     {strict: true, newestFirst: true, from: -1, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			var w *fillWorld
			var pruneAt atomic.Int64
			w = newFillWorld(t, 71, true, sandbox.ServerOptions{Version: "3.5", StrictInterface: c.strict, ListLimit: 15, Fault: func(r *http.Request) *sandbox.Fault {
				at := pruneAt.Load()
				if at > 0 && (strings.HasSuffix(r.URL.Path, "/flats") || strings.HasSuffix(r.URL.Path, "/get-updates-page")) {
					if err := w.ledger.Prune(at); err != nil {
						t.Error(err)
					}
				}
				return nil
			}}, "acs-delta")
			at := w.at / 4
			pruneAt.Store(at)
			filled, err := RunFill(t.Context(), fillFor(w.database, w.ledgerURL, w.scope, c.from, -1, c.newestFirst), testLogger(t))
			if c.refused {
				var problem *ledger.Problem
				require.ErrorAs(t, err, &problem)
				require.Contains(t, problem.What, fmt.Sprintf("pruned up to offset %d", at))
				require.Contains(t, problem.Do, "give --from")
				filled, err = RunFill(t.Context(), fillFor(w.database, w.ledgerURL, w.scope, at, -1, c.newestFirst), testLogger(t))
			}
			require.NoError(t, err)
			require.Equal(t, ledger.Offset(at), filled.Range.From)
			require.Equal(t, ledger.Offset(at), filled.Bounds.Floor)
			requireFloors(t, w.database, at, w.at)
			requireVerified(t, w.database, w.ledgerURL)
		})
	}
}
