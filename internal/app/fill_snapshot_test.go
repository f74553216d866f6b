package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/internal/brief"
	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
)

// fillFrom fills in history with a snapshot at its lower end.
func (w *fillWorld) fillFrom(t *testing.T, from int64, change func(*Fill)) (ingest.Filled, error) {
	t.Helper()
	cfg := fillFor(w.database, w.ledgerURL, w.scope, from, -1, false)
	cfg.WithSnapshot = true
	if change != nil {
		change(&cfg)
	}
	return RunFill(t.Context(), cfg, testLogger(t))
}

// quiet is the first offset behind a part of what lies below the beginning, at which no contract is between two
// synchronizers; busy one at which some are.
func (w *fillWorld) quiet(part int) int64 { return w.offset(part, false) }
func (w *fillWorld) busy(part int) int64  { return w.offset(part, true) }

func (w *fillWorld) offset(part int, inFlight bool) int64 {
	for i := range w.ledger.Len() {
		if at := w.ledger.Offset(i); at > w.at/int64(part) && w.ledger.InFlight(at) == inFlight {
			return at
		}
	}
	panic("there is no such offset")
}

// requireBegunAt compares a database with one that began with a snapshot at an offset: every row of every relation,
// what was active at every offset, and what is claimed.
func (w *fillWorld) requireBegunAt(t *testing.T, at int64) {
	t.Helper()
	requireFloors(t, w.database, at, at)
	require.Empty(t, sandbox.Diff(w.ledger.TruthFromSnapshot(w.truth, at, w.ledger.End()), relations(t, w.database)))
	for i := 0; i < w.ledger.Len(); i += 41 {
		if offset := w.ledger.Offset(i); offset >= at {
			require.Equal(t, trueActiveAt(w.ledger, w.truth, offset), activeAt(t, w.database, offset), "offset %d", offset)
		}
	}
	require.Equal(t, trueActiveAt(w.ledger, w.truth, at), activeAt(t, w.database, at))
	reference := throwaway.Migrated(t, migrate)
	_, err := RunBackfill(t.Context(), backfillFor(reference, w.ledgerURL, w.scope, at), testLogger(t), nil)
	require.NoError(t, err)
	require.NoError(t, RunIndexer(t.Context(), indexerFor(reference, w.ledgerURL, w.scope), testLogger(t)))
	for _, table := range []string{"lifetimes", "active_contracts"} {
		query := fmt.Sprintf("SELECT (to_jsonb(x) - 'template_ref' - 'synchronizer_ref' - 'stakeholders_ref' || jsonb_build_object('stakeholders', (SELECT p.parties FROM indexer.party_lists p WHERE p.party_list_ref = x.stakeholders_ref), 'template', to_jsonb(t) - '{template_ref,digest}'::text[], 'synchronizer', s.synchronizer_id))::text "+
			"FROM indexer.%s x JOIN indexer.templates t USING (template_ref) JOIN indexer.synchronizers s USING (synchronizer_ref) ORDER BY 1", table)
		require.Equal(t, texts(t, reference, query), texts(t, w.database, query), table)
	}
	const snapshots = "SELECT snapshot_offset || ' ' || entries || ' ' || (finished_at IS NOT NULL) FROM indexer.snapshots"
	require.Equal(t, texts(t, reference, snapshots), texts(t, w.database, snapshots))
	w.requireNothingWaits(t)
	result := requireVerified(t, w.database, w.ledgerURL)
	require.Empty(t, result.Notes)
	require.Positive(t, result.Updates.Carried, "the snapshot's entries were compared")
}

func (w *fillWorld) requireNothingWaits(t *testing.T) {
	t.Helper()
	const notShown = " WHERE snapshot_offset IS DISTINCT FROM (SELECT state_floor FROM indexer.floors)"
	for _, table := range []string{
		"fill_active", "floors WHERE waiting_snapshot IS NOT NULL", "snapshots" + notShown, "carried_created" + notShown, "carried_interface_views" + notShown,
		"carried_reassignments" + notShown, "carried_unknown_elements WHERE ledger_offset IS DISTINCT FROM (SELECT state_floor FROM indexer.floors)",
	} {
		require.Equal(t, []string{"0"}, texts(t, w.database, "SELECT count(*)::text FROM indexer."+table), table)
	}
}

// Filled in from a snapshot on, a database holds what one holds that began with that snapshot; and so it does from an
// earlier one on, and from the beginning on.
func TestHistoryIsFilledInFromASnapshotOn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	for name, c := range map[string]struct {
		options     sandbox.ServerOptions
		shape       string
		snapshot    bool
		newestFirst bool
	}{
		"lists":              {sandbox.ServerOptions{Version: "3.5", StrictInterface: true, ListLimit: 40}, "ledger-effects", true, true},
		"no tokens":          {sandbox.ServerOptions{Version: "3.4", ListLimit: 5000}, "acs-delta", true, true},
		"without a snapshot": {sandbox.ServerOptions{Version: "3.5"}, "ledger-effects", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			w := newFillWorld(t, 81, c.snapshot, c.options, c.shape)
			order := func(cfg *Fill) { cfg.NewestFirst = c.newestFirst }
			for _, at := range []int64{w.quiet(2), w.quiet(4)} {
				filled, err := w.fillFrom(t, at, order)
				require.NoError(t, err)
				require.Positive(t, filled.Updates)
				require.Equal(t, ledger.Offset(at), filled.Snapshot.At)
				require.Positive(t, filled.Snapshot.Entries)
				again, err := w.fillFrom(t, at, order)
				require.NoError(t, err)
				require.Zero(t, again.Updates)
				require.Nil(t, again.Snapshot)
				w.ledger.Grow(20)
				w.index(t, c.snapshot)
				w.requireBegunAt(t, at)
			}
			filled, err := w.fillFrom(t, -1, order)
			require.NoError(t, err)
			require.Nil(t, filled.Snapshot, "the beginning of the ledger needs none")
			w.requireWhole(t)
		})
	}
}

// Where the participant is pruned, the snapshot is of there, without saying where that is.
func TestHistoryOfAPrunedParticipantFromASnapshotOn(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	w := newFillWorld(t, 82, true, sandbox.ServerOptions{Version: "3.5"}, "acs-delta")
	at := w.quiet(3)
	require.NoError(t, w.ledger.Prune(at))
	filled, err := w.fillFrom(t, -1, nil)
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(at), filled.Snapshot.At)
	w.requireBegunAt(t, at)
}

// History that is there already is enough: the snapshot is of its lower end, or lies in it, and events take the place
// of what they tell.
func TestASnapshotWithinHistoryThatWasFilledIn(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	w := newFillWorld(t, 83, true, sandbox.ServerOptions{Version: "3.6"}, "ledger-effects")
	low, at := w.quiet(4), w.quiet(2)
	w.fill(t, low, -1, false)
	requireFloors(t, w.database, low, w.at)
	filled, err := w.fillFrom(t, at, nil)
	require.NoError(t, err)
	require.Zero(t, filled.Updates)
	requireFloors(t, w.database, low, at)
	for i := 0; i < w.ledger.Len(); i += 29 {
		if offset := w.ledger.Offset(i); offset >= at {
			require.Equal(t, trueActiveAt(w.ledger, w.truth, offset), activeAt(t, w.database, offset), "offset %d", offset)
		}
	}
	requireVerified(t, w.database, w.ledgerURL)
	_, err = w.fillFrom(t, low, nil)
	require.NoError(t, err)
	w.requireBegunAt(t, low)
}

// A snapshot at the lower end of history that does not lead on yet waits until it does, and nobody sees it before.
func TestASnapshotWaitsForTheHistoryThatLeadsOn(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	w := newFillWorld(t, 84, true, sandbox.ServerOptions{Version: "3.5"}, "acs-delta")
	begun := relations(t, w.database)
	low, at := w.quiet(4), w.quiet(2)
	_, err := w.fillFrom(t, low, func(cfg *Fill) { cfg.To = &at })
	require.NoError(t, err)
	requireFloors(t, w.database, w.at, w.at)
	want := truthFilled(w.ledger, w.truth, begun, w.at, []ledger.Range{{From: ledger.Offset(low), To: ledger.Offset(at)}})
	require.Empty(t, sandbox.Diff(want, relations(t, w.database)))
	requireVerified(t, w.database, w.ledgerURL)
	w.fill(t, at, -1, true)
	w.requireBegunAt(t, low)
}

// What keeps a participant from serving a snapshot is told with what can be done here, and nothing is left of it.
func TestSnapshotsThatCanNotBeCarried(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "takes a database for each refusal")
	for name, c := range map[string]struct {
		options sandbox.ServerOptions
		from    func(*fillWorld) int64
		says    []string
	}{
		"pruned": {
			sandbox.ServerOptions{Version: "3.5", StrictInterface: true}, // which can't be asked how far it is pruned
			func(w *fillWorld) int64 { _ = w.ledger.Prune(w.quiet(2)); return w.quiet(4) },
			[]string{"pruned", "not below the one up to which the participant is pruned", "leave out --with-snapshot"},
		},
		"in flight": {
			sandbox.ServerOptions{Version: "3.6"}, func(w *fillWorld) int64 { return w.busy(2) },
			[]string{"reassignments are in flight", "at which no contract is on its way", "leave out --with-snapshot"},
		},
		"too large for one answer": {
			sandbox.ServerOptions{Version: "3.4", ListLimit: 20}, func(w *fillWorld) int64 { return w.quiet(2) },
			[]string{"can't be carried", "or leave out --with-snapshot"},
		},
		"cut, perhaps": {
			sandbox.ServerOptions{Version: "3.4", ListLimit: 20, IgnoreLargeLimit: true}, func(w *fillWorld) int64 { return w.quiet(2) },
			[]string{"can't be carried", "may have cut it", "or leave out --with-snapshot"},
		},
		"not below": {
			sandbox.ServerOptions{Version: "3.5"}, func(w *fillWorld) int64 { return w.at + 1 },
			[]string{"where indexing began", "at most"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snapshot := c.options.ListLimit == 0 && name != "not below" // else it can't be had for the beginning either, or is known there
			w := newFillWorld(t, 85, snapshot, c.options, "acs-delta")
			from := c.from(w)
			_, err := w.fillFrom(t, from, nil)
			requireProblem(t, err, c.says...)
			w.requireNothingWaits(t)
			requireVerified(t, w.database, w.ledgerURL)
		})
	}
}

// A token that the participant does not take any more, because it was upgraded, is no end: the snapshot is read anew.
func TestASnapshotIsReadAnewWhereItsTokenIsRefused(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "waits between tries, as the commands do")
	var stop atomic.Pointer[context.CancelFunc]
	var pages atomic.Int64
	options := sandbox.ServerOptions{Version: "3.5", StrictInterface: true, ListLimit: 5, Fault: func(r *http.Request) *sandbox.Fault {
		if cancel := stop.Load(); cancel != nil && strings.HasSuffix(r.URL.Path, "/active-contracts") && pages.Add(1) == 12 {
			(*cancel)()
		}
		return nil
	}}
	w := newFillWorld(t, 86, true, options, "acs-delta")
	at := w.quiet(2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop.Store(&cancel)
	cfg := fillFor(w.database, w.ledgerURL, w.scope, at, -1, false)
	cfg.WithSnapshot = true
	_, err := RunFill(ctx, cfg, testLogger(t))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT (entries > 0 AND finished_at IS NULL)::text FROM indexer.snapshots WHERE snapshot_offset = (SELECT waiting_snapshot FROM indexer.floors)"))
	options.Version, options.Fault = "3.6", nil
	w.ledgerURL, w.truth.Version = serve(t, w.ledger, options), "3.6"
	var log journal
	cfg.LedgerURL = w.ledgerURL
	_, err = RunFill(t.Context(), cfg, log.logger())
	require.NoError(t, err)
	require.Len(t, log.lines(t, "the unfinished snapshot can't be continued: reading it from the beginning"), 1)
	requireFloors(t, w.database, at, at)
	require.Equal(t, trueActiveAt(w.ledger, w.truth, at), activeAt(t, w.database, at))
	w.requireNothingWaits(t)
}

// Killed with SIGKILL at any point, while the snapshot is read, history is filled in, lifetimes are computed, or the
// state floor is lowered, and started again, beside a daemon that continues all the time: nothing is lost and nothing
// is there twice.
func TestKilledWhileHistoryIsFilledInFromASnapshotOn(t *testing.T) {
	t.Parallel()
	brief.Long(t, "kills a program again and again until it gets through")
	program := build(t, "backfill")
	for _, snapshot := range []bool{true, false} {
		t.Run(fmt.Sprint("snapshot ", snapshot), func(t *testing.T) {
			t.Parallel()
			if !snapshot {
				brief.Skip(t)
			}
			options := sandbox.ServerOptions{Version: "3.5", StrictInterface: true, ListLimit: 15, Latency: time.Millisecond}
			w := newFillWorld(t, 87, snapshot, options, "acs-delta")
			run := indexerFor(w.database, w.ledgerURL, w.scope)
			run.LookupRate, run.VerifyRate = 1000, 10_000
			daemon := startIndexer(t, run)
			env := []string{
				"INDEXER_DATABASE_URL=" + w.database, "INDEXER_LEDGER_URL=" + w.ledgerURL, "INDEXER_SHAPE=" + w.scope.Shape,
				"INDEXER_INTERFACES=" + strings.Join(w.scope.Interfaces, ","),
			}
			random := rand.New(rand.NewPCG(88, 0))
			kills := killUntilDone(t, random, env, program, "history", fmt.Sprint("--from=", w.quiet(3)), fmt.Sprint("--to=", w.quiet(2)))
			w.ledger.Grow(20)
			for _, at := range []int64{w.quiet(2), w.quiet(4)} {
				kills += killUntilDone(t, random, env, program, "history", fmt.Sprint("--from=", at), "--with-snapshot")
				w.ledger.Grow(20)
			}
			require.Positive(t, kills)
			require.NoError(t, daemon.finish())
			w.index(t, snapshot)
			w.requireBegunAt(t, w.quiet(4))
		})
	}
}

// While a lower snapshot is half read the daemon leads, indexes and is started again as if there were none.
func TestTheDaemonGoesOnBesideALowerSnapshot(t *testing.T) {
	t.Parallel()
	brief.Long(t, "compares many states of a database with others that were indexed anew")
	var hold atomic.Bool
	held, released := make(chan struct{}), make(chan struct{})
	var pages atomic.Int64
	w := newFillWorld(t, 89, true, sandbox.ServerOptions{Version: "3.5", StrictInterface: true, ListLimit: 20, Fault: func(r *http.Request) *sandbox.Fault {
		if hold.Load() && strings.HasSuffix(r.URL.Path, "/active-contracts") && pages.Add(1) == 5 {
			close(held)
			<-released
		}
		return nil
	}}, "acs-delta")
	hold.Store(true)
	at := w.quiet(2)
	filled := make(chan error, 1)
	go func() {
		defer close(filled)
		_, err := w.fillFrom(t, at, nil)
		filled <- err
	}()
	release := sync.OnceFunc(func() { close(released) })
	t.Cleanup(func() {
		release()          // the server waits for its requests
		for range filled { // until it has ended
		}
	})
	select {
	case <-held:
	case err := <-filled:
		t.Fatal("the snapshot was not held:", err)
	}
	for range 2 {
		w.ledger.Grow(30)
		w.index(t, true)
		require.Equal(t, []string{fmt.Sprint(w.ledger.End())}, texts(t, w.database, "SELECT ledger.latest_offset()::text"))
		require.Equal(t, trueActiveAt(w.ledger, w.truth, w.ledger.End()), activeAt(t, w.database, w.ledger.End()))
	}
	requireFloors(t, w.database, w.at, w.at)
	require.Equal(t, []string{"true"}, texts(t, w.database, "SELECT (finished_at IS NULL)::text FROM indexer.snapshots WHERE snapshot_offset = (SELECT waiting_snapshot FROM indexer.floors)"))
	release()
	require.NoError(t, <-filled)
	w.index(t, true)
	w.requireBegunAt(t, at)
}
