package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/internal/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// depths is a simulated ledger, and its snapshots at some offsets, at each of which contracts are between two
// synchronizers.
type depths struct {
	ledger    *sandbox.Ledger
	scope     ledger.Scope
	at        []ledger.Offset
	snapshots [][]ledger.ContractEntry
	pages     []ledger.Page // of a few updates, from the beginning on; none reaches over one of the offsets
}

func newDepths(t *testing.T, seed uint64, shape ledger.Shape) *depths {
	t.Helper()
	d := &depths{ledger: sandbox.NewLedger(sandbox.Options{Seed: seed, ActiveShare: 0.3}), scope: storetest.WholeScope}
	d.scope.Shape = shape
	client := storetest.Reader(t, d.ledger, d.scope)
	for range 3 {
		for d.ledger.Grow(60); !d.ledger.InFlight(d.ledger.End()); {
			d.ledger.Grow(1)
		}
		at := ledger.Offset(d.ledger.End()) // the only offset at which it is shown while contracts are on their way
		var entries []ledger.ContractEntry
		for page := (ledger.SnapshotPage{}); !page.Last; entries = append(entries, page.Entries...) {
			var err error
			page, err = client.ReadSnapshot(t.Context(), at, page.Next)
			require.NoError(t, err)
		}
		d.at, d.snapshots = append(d.at, at), append(d.snapshots, entries)
	}
	d.ledger.Grow(60)
	from := ledger.Offset(0)
	for _, to := range append(slices.Clone(d.at), ledger.Offset(d.ledger.End())) {
		d.pages = append(d.pages, storetest.PagesOf(t, client, from, to, 4)...)
		from = to
	}
	return d
}

// between are the pages of a range.
func (d *depths) between(from, to ledger.Offset) (pages []ledger.Page) {
	for _, page := range d.pages {
		if page.From >= from && page.To <= to {
			pages = append(pages, page)
		}
	}
	return pages
}

// active is what is active at an offset, each as contract, synchronizer and the offset that activated it.
func (d *depths) active(at ledger.Offset) []string {
	scope := sandbox.Scope{Shape: sandbox.ACSDelta, Version: "3.6"}
	if d.scope.Shape == ledger.ShapeLedgerEffects {
		scope.Shape = sandbox.LedgerEffects
	}
	list := []string{}
	for _, r := range d.ledger.Truth(scope, int64(at))["active_contracts"] {
		list = append(list, fmt.Sprint(r["contract_id"], " ", r["synchronizer_id"], " ", r["activated_offset"]))
	}
	return storetest.Sorted(list)
}

// snapshotSink is what a Leader and a LowerSnapshot have in common.
type snapshotSink interface {
	BeginSnapshot(ctx context.Context, participantID string, scope ledger.Scope, at ledger.Offset) (ledger.SnapshotProgress, error)
	WriteSnapshotPage(
		ctx context.Context, progress ledger.SnapshotProgress, turn CommitOrder, page ledger.SnapshotPage,
	) (ledger.SnapshotProgress, error)
}

// bring writes the next entries of a snapshot, at most so many.
func (d *depths) bring(t *testing.T, sink snapshotSink, n, most int) (finished bool) {
	t.Helper()
	progress, err := sink.BeginSnapshot(t.Context(), "participant::1", d.scope, d.at[n])
	require.NoError(t, err)
	if progress.Finished {
		return true
	}
	rest := d.snapshots[n][progress.Entries:]
	page := ledger.SnapshotPage{Entries: rest, Last: true}
	if len(rest) > most {
		page = ledger.SnapshotPage{Entries: rest[:most], Next: storetest.Token(fmt.Sprint(progress.Entries))}
	}
	_, err = sink.WriteSnapshotPage(t.Context(), progress, nil, page)
	require.NoError(t, err)
	return page.Last
}

// begun is a database that began with a snapshot, or without one, and continues to the end.
func (d *depths) begun(t *testing.T, n int, snapshot bool) (*testDB, *UpdatesWriter) {
	t.Helper()
	db := newDatabase(t)
	up := db.leadUpdates(db.store())
	if snapshot {
		require.True(t, d.bring(t, up, n, len(d.snapshots[n])))
	} else {
		require.NoError(t, up.Start(t.Context(), "participant::1", d.scope, d.at[n], false))
	}
	return db, up
}

// activeAt is what a database says was active at an offset, in the form of depths.active.
func (d *testDB) activeAt(at ledger.Offset) []string {
	d.T.Helper()
	return storetest.Sorted(append([]string{}, d.Rows(`SELECT x.contract_id, s.synchronizer_id, x.activated_offset FROM (
		SELECT a.contract_id, a.synchronizer_ref, a.activated_offset FROM indexer.active_contracts a WHERE a.activated_offset <= $1
		UNION ALL
		SELECT l.contract_id, l.synchronizer_ref, l.activated_offset FROM indexer.lifetimes l WHERE l.activated_offset <= $1 AND l.deactivated_offset > $1
	) x JOIN indexer.synchronizers s USING (synchronizer_ref)`, at)...))
}

// shown is everything that analysts see, and what the indexer derives and claims, with names in the place of their
// numbers.
func (d *testDB) shown() map[string][]string {
	d.T.Helper()
	all := map[string][]string{}
	for _, relation := range []string{
		"updates", "created_events", "archived_events", "exercised_events", "interface_views", "reassignments", "active_contracts", "unknown_updates",
		"exact_payloads", "coverage", "looked_up_contracts",
	} {
		all[relation] = storetest.Sorted(d.Rows("SELECT (to_jsonb(r) - 'template_number')::text FROM ledger." + relation + " r"))
	}
	for _, relation := range []string{"lifetimes", "active_contracts"} {
		all["indexer."+relation] = storetest.Sorted(d.Rows(`SELECT ((to_jsonb(x) - '{template_ref,synchronizer_ref,stakeholders_ref}'::text[])
			|| jsonb_build_object('stakeholders', (SELECT to_jsonb(p.parties) FROM indexer.party_lists p WHERE p.party_list_ref = x.stakeholders_ref), 'template', to_jsonb(t) - '{template_ref,digest}'::text[], 'synchronizer', s.synchronizer_id))::text
			FROM indexer.` + relation + ` x JOIN indexer.templates t USING (template_ref) LEFT JOIN indexer.synchronizers s USING (synchronizer_ref)`))
	}
	all["snapshots"] = d.Rows("SELECT snapshot_offset, entries, finished_at IS NOT NULL FROM indexer.snapshots")
	all["floors"] = d.Rows("SELECT history_floor, state_floor FROM indexer.floors")
	for _, table := range []string{"carried_created", "carried_interface_views", "carried_reassignments", "carried_unknown_elements"} {
		all["count of "+table] = d.Rows("SELECT count(*) FROM indexer." + table)
	}
	return all
}

// requireNothingWaits requires that no snapshot waits, that nothing is left of one that did, and that nothing is being
// computed.
func (d *testDB) requireNothingWaits() {
	d.T.Helper()
	for _, table := range tables.In(tables.Snapshot) {
		require.Equal(d.T, "0", d.Row("SELECT count(*) FROM indexer."+table.Name+" s WHERE s."+table.SnapshotOffset+
			" IS DISTINCT FROM (SELECT f.state_floor FROM indexer.floors f)"), table.Name)
	}
	for _, table := range []string{
		"floors WHERE waiting_snapshot IS NOT NULL", "snapshots WHERE snapshot_offset IS DISTINCT FROM (SELECT f.state_floor FROM indexer.floors f)", "fill_active",
		"fill WHERE lifetimes_to IS NOT NULL",
	} {
		require.Equal(d.T, "0", d.Row("SELECT count(*) FROM indexer."+table), table)
	}
}

// requireCarried compares the carried rows with the entries of the snapshot that they are of.
func (d *testDB) requireCarried(s *Store, at ledger.Offset, entries []ledger.ContractEntry) {
	d.T.Helper()
	met, list := map[string]bool{}, []findings.Difference(nil)
	require.NoError(d.T, Audit.Stored(s).CompareCarried(d.T.Context(), at, 0, entries, func(key string) { met[key] = true }, storetest.Collect(&list)))
	require.NoError(d.T, Audit.Stored(s).CarriedAt(d.T.Context(), at, func(key string, extra findings.Difference) error {
		if !met[key] {
			list = append(list, extra)
		}
		return nil
	}))
	require.Empty(d.T, list)
}

// A database whose state floor was lowered to a snapshot is what one is that began with that snapshot: whatever
// contracts do in between, in whatever order and pieces snapshot, history and new updates come, and whoever takes over
// from whom. On the way it agrees with itself and with the snapshot that it carries, and at each offset from the state
// floor on it says what was active.
func TestALowerSnapshotLowersTheStateFloor(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "tries many random histories")
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 11))
			shape := ledger.ShapeACSDelta
			if seed%2 == 0 {
				shape = ledger.ShapeLedgerEffects
			}
			w := newDepths(t, 300+seed, shape)
			base := len(w.at) - 1
			known := seed%3 > 0 // else it began without a snapshot
			d, up := w.begun(t, base, known)
			l := d.leadBackfill(d.store())
			ahead := w.between(w.at[base], ledger.Offset(w.ledger.End()))
			check := func() {
				require.Empty(t, d.differences(up.store))
				floor := ledger.Offset(-1)
				carried, err := Audit.Stored(up.store).FinishedSnapshot(t.Context())
				require.NoError(t, err)
				if carried != nil {
					floor = carried.At
					d.requireCarried(up.store, carried.At, w.snapshots[slices.Index(w.at, carried.At)])
				}
				extent, err := held.Read(t.Context(), up.store.db, up.store.db.Pool)
				require.NoError(t, err)
				require.Equal(t, floor < 0, extent.StateFloor == nil)
				if floor >= 0 {
					require.Equal(t, floor, *extent.StateFloor)
					at := floor + ledger.Offset(random.Int64N(int64(extent.Watermark-floor)+1))
					require.Equal(t, w.active(at), d.activeAt(at), "at offset %d", at)
				}
			}
			appended := func() {
				if len(ahead) > 0 {
					require.NoError(t, up.Append(t.Context(), w.scope, ahead[:1]))
					ahead = ahead[1:]
				}
			}
			for n := base - 1; n >= 0; n-- {
				missing := w.between(w.at[n], w.at[n+1])
				for done := false; !done; {
					switch random.IntN(12) {
					case 0, 1:
						w.bring(t, l.LowerSnapshot(), n, 1+random.IntN(40))
					case 2, 3, 4:
						if len(missing) > 0 {
							i := random.IntN(len(missing))
							require.NoError(t, l.Fill(t.Context(), w.scope, missing[i:i+1]))
							missing = slices.Delete(missing, i, i+1)
						}
					case 5, 6, 7:
						_, _, _, err := l.FillState(t.Context())
						require.NoError(t, err)
						extent, err := held.Read(t.Context(), up.store.db, up.store.db.Pool)
						require.NoError(t, err)
						done = extent.StateFloor != nil && *extent.StateFloor == w.at[n]
					case 8:
						appended()
					case 9:
						l.Close()
						l.store.Close() // else its connections would stay open
						l = d.leadBackfill(d.store())
					case 10:
						if n > 0 && random.IntN(4) == 0 { // it changes its mind twice
							w.bring(t, l.LowerSnapshot(), n-1, 10)
						}
					default:
						check()
					}
				}
				check()
				d.requireNothingWaits()
				require.Equal(t, fmt.Sprint(w.at[n], " ", w.at[n]), d.Floors())
				reference, leader := w.begun(t, n, true)
				if watermark, _, err := up.Watermark(t.Context()); watermark > w.at[n] {
					require.NoError(t, err)
					require.NoError(t, leader.Append(t.Context(), w.scope, w.between(w.at[n], watermark)))
				}
				want, got := reference.shown(), d.shown()
				if !known { // what was asked for before it was known is as good
					delete(want, "looked_up_contracts")
					delete(got, "looked_up_contracts")
				}
				for relation, rows := range want {
					require.Equal(t, rows, got[relation], relation)
				}
				require.Empty(t, d.Rows(`SELECT l.contract_id FROM indexer.lookups l
					WHERE NOT EXISTS (SELECT FROM indexer.creations c WHERE c.contract_id = l.contract_id)`), "others are forgotten when their turn comes")
			}
			for len(ahead) > 0 {
				appended()
			}
			check()
			require.NoError(t, l.Fill(t.Context(), w.scope, w.between(0, w.at[0])))
			d.fillState(l)
			require.Equal(t, "0 0", d.Floors())
			require.Empty(t, d.differences(up.store))
			for range 20 {
				at := ledger.Offset(random.Int64N(w.ledger.End() + 1))
				require.Equal(t, w.active(at), d.activeAt(at), "at offset %d", at)
			}
		})
	}
}

// lowering is a database that began with a snapshot at offset 100, with another one that waits, of offset 40.
func (d *testDB) lowering(base, lower []ledger.ContractEntry) (up *UpdatesWriter, l *BackfillWriter) {
	d.T.Helper()
	up = d.seeded(base...)
	return up, d.bringLower(lower)
}

// bringLower has a snapshot of offset 40 wait.
func (d *testDB) bringLower(entries []ledger.ContractEntry) *BackfillWriter {
	d.T.Helper()
	l := d.leadBackfill(d.store())
	progress, err := l.LowerSnapshot().BeginSnapshot(d.T.Context(), "", storetest.Scope, 40)
	require.NoError(d.T, err)
	_, err = l.LowerSnapshot().WriteSnapshotPage(d.T.Context(), progress, nil, ledger.SnapshotPage{Entries: entries, Last: true})
	require.NoError(d.T, err)
	return l
}

// What both snapshots have is shown once, with what belongs to it, as the lower one says; what history covers is not
// carried. Until the state floor goes down nothing of the lower one is seen.
func TestWhatBothSnapshotsHaveIsShownOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	both, gone, covered := storetest.ActiveEntry(20, 0, "both", "sync::1", 3), storetest.ActiveEntry(21, 0, "gone", "sync::1", 0), storetest.ActiveEntry(35, 0, "covered", "sync::1", 0)
	for _, e := range []*ledger.ContractEntry{&both, &gone, &covered} {
		e.Active.Created.Argument = ledger.JSON(`"\u0000"`)
		e.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: storetest.HoldingV1, Value: ledger.JSON(`{}`)}}
	}
	unknown := ledger.ContractEntry{Unknown: &ledger.UnknownElement{Kind: "JsNovelty", Raw: ledger.JSON(`{"JsNovelty": {"a": "\u0000"}}`)}}
	lower := []ledger.ContractEntry{
		both, gone, storetest.ActiveEntry(22, 0, "leaves", "sync::1", 0), covered, storetest.UnassignedEntry(39, 30, "left", "sync::1", "sync::2"), unknown,
	}
	up, l := d.lowering([]ledger.ContractEntry{both, covered, storetest.UnassignedEntry(90, 22, "leaves", "sync::1", "sync::2"), unknown}, lower)
	page := life(34, 36, 35, []string{"covered"}, nil)
	page[0].Updates[0].Created[0].Argument, page[0].Updates[0].Created[0].InterfaceViews = covered.Active.Created.Argument, covered.Active.Created.InterfaceViews
	require.NoError(t, l.Fill(ctx, storetest.Scope, page))
	d.fillState(l)
	require.Equal(t, "100 100", d.Floors(), "no history leads on from there yet")
	created := "SELECT ledger_offset, contract_id, origin FROM ledger.created_events WHERE ledger_offset <= 100 ORDER BY 1"
	require.Equal(t, []string{"20 both snapshot", "22 leaves snapshot", "35 covered transaction"}, d.Rows(created))

	leave := storetest.NewUpdate(90, "sync::1")
	storetest.Unassign(&leave, 0, "leaves", "sync::1", "sync::2", 1)
	require.NoError(t, l.Fill(ctx, storetest.Scope, append(life(40, 80, 70, nil, []string{"gone"}), ledger.Page{From: 80, To: 100, Updates: []ledger.Update{leave}})))
	status, err := up.store.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, &ledger.SnapshotProgress{At: 40, Entries: 6, Finished: true}, status.LowerSnapshot)
	d.fillState(l)
	require.Equal(t, "40 40", d.Floors())
	require.Equal(t, []string{"20 both snapshot", "21 gone snapshot", "22 leaves snapshot", "30 left snapshot", "35 covered transaction"}, d.Rows(created))
	require.Equal(t, []string{"20", "21", "35"}, d.Rows("SELECT ledger_offset FROM ledger.interface_views ORDER BY 1"))
	require.Equal(t, []string{"20", "21", "35", "40"}, d.Rows("SELECT ledger_offset FROM ledger.exact_payloads ORDER BY 1"))
	require.Equal(t, []string{"40 JsNovelty"}, d.Rows("SELECT ledger_offset, kind FROM ledger.unknown_updates"))
	require.Equal(t, []string{"39 left", "90 leaves"}, d.Rows("SELECT ledger_offset, contract_id FROM ledger.reassignments ORDER BY 1"))
	require.Equal(t, []string{"both 20 3", "covered 35 0"}, d.Rows(
		"SELECT contract_id, activated_offset, reassignment_counter FROM ledger.active_contracts WHERE activated_offset <= 100 ORDER BY 1"))
	require.Equal(t, []string{"gone 21 70", "leaves 22 90"}, d.Rows("SELECT contract_id, activated_offset, deactivated_offset FROM indexer.lifetimes ORDER BY 1"))
	require.Equal(t, []string{"34 36", "40 101"}, d.Coverage())
	requireNoDerivedDifferences(t, up.store)
	d.requireCarried(up.store, 40, lower)
	d.requireNothingWaits()

	_, err = up.Reset(ctx, 70)
	require.NoError(t, err, "it is known what was active there")
	_, err = up.Reset(ctx, 60)
	require.NoError(t, err)
	require.Equal(t, []string{"both 20 3", "covered 35 0", "gone 21 0", "leaves 22 0"}, d.Rows(
		"SELECT contract_id, activated_offset, reassignment_counter FROM ledger.active_contracts ORDER BY 1"))
	requireNoDerivedDifferences(t, up.store)
}

// The daemon neither waits for a lower snapshot nor sees one, whatever becomes of it.
func TestTheDaemonDoesNotWaitForALowerSnapshot(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.seeded(storetest.ActiveEntry(20, 0, "old", "sync::1", 0))
	lower := d.leadBackfill(d.store()).LowerSnapshot()
	begun, err := lower.BeginSnapshot(ctx, "", storetest.Scope, 40)
	require.NoError(t, err)
	progress, err := lower.WriteSnapshotPage(ctx, begun, nil, ledger.SnapshotPage{
		Entries: []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "old", "sync::1", 0), {Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`"\u0000"`)}}}, Next: storetest.Token("t1"),
	})
	require.NoError(t, err)
	unfinished, err := up.store.UnfinishedSnapshot(ctx)
	require.NoError(t, err)
	require.Nil(t, unfinished)
	require.NoError(t, up.Append(ctx, storetest.Scope, life(101, 110, 110, []string{"new"}, []string{"old"})))
	finished, err := Audit.Stored(up.store).FinishedSnapshot(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 100, finished.At)
	requireNoDerivedDifferences(t, up.store)
	d.requireCarried(up.store, 100, []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "old", "sync::1", 0)})

	_, err = lower.WriteSnapshotPage(ctx, begun, nil, ledger.SnapshotPage{Last: true})
	require.ErrorIs(t, err, ErrWatermarkMoved, "a twin")
	again, err := lower.BeginSnapshot(ctx, "", storetest.Scope, 40)
	require.NoError(t, err)
	require.Equal(t, progress, again)
	_, err = lower.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Entries: []ledger.ContractEntry{storetest.ActiveEntry(41, 0, "later", "sync::1", 0)}, Last: true})
	storetest.RequireProblem(t, err, "later offset 41")
	storetest.RequireProblem(t, func() error { _, err := lower.BeginSnapshot(ctx, "", storetest.Scope, 100); return err }(), "known from offset 100 on", "below 100")
	other, err := lower.BeginSnapshot(ctx, "", storetest.Scope, 30)
	require.NoError(t, err)
	require.Equal(t, ledger.SnapshotProgress{At: 30}, other, "another one takes its place")
	require.NoError(t, lower.DropSnapshot(ctx))
	require.NoError(t, lower.DropSnapshot(ctx), "there is none")
	d.requireNothingWaits()
	require.Equal(t, "1", d.Row("SELECT count(*) FROM indexer.carried_created"))
}

// Where a database began without a snapshot, one tells what was active there, but not one of later.
func TestALowerSnapshotWhereIndexingBeganWithoutOne(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(ctx, "participant::1", storetest.Scope, 100, false))
	require.NoError(t, up.Append(ctx, storetest.Scope, life(100, 110, 110, []string{"new"}, []string{"ended"})))
	require.Equal(t, []string{"ended"}, d.Rows("SELECT contract_id FROM indexer.lookups"))
	l := d.leadBackfill(d.store())
	storetest.RequireProblem(t, func() error { _, err := l.LowerSnapshot().BeginSnapshot(ctx, "", storetest.Scope, 101); return err }(), "at offset 100, where indexing began", "at most 100")
	entries := []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "ended", "sync::1", 0), storetest.ActiveEntry(30, 0, "stays", "sync::1", 2)}
	progress, err := l.LowerSnapshot().BeginSnapshot(ctx, "", storetest.Scope, 100)
	require.NoError(t, err)
	_, err = l.LowerSnapshot().WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Entries: entries, Last: true})
	require.NoError(t, err)
	d.fillState(l)
	require.Equal(t, "100 100", d.Floors())
	require.Equal(t, []string{"new 110 0", "stays 30 2"}, d.Rows("SELECT contract_id, activated_offset, reassignment_counter FROM ledger.active_contracts ORDER BY 1"))
	require.Equal(t, []string{"20 110"}, d.Rows("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes"))
	require.Empty(t, d.Rows("SELECT contract_id FROM indexer.lookups"), "the snapshot has its creation")
	requireNoDerivedDifferences(t, up.store)
	d.requireCarried(up.store, 100, entries)
	require.NoError(t, up.Append(ctx, storetest.Scope, life(110, 120, 120, nil, []string{"stays"})))
	requireNoDerivedDifferences(t, up.store)
}

// Lifetimes that are being computed from the beginning of the ledger on are begun anew when there is a snapshot, and
// continue to the beginning after it.
func TestALowerSnapshotWhileLifetimesAreWorkedOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	old := storetest.ActiveEntry(20, 0, "old", "sync::1", 0)
	up := d.seeded(old)
	l := d.leadBackfill(d.store())
	require.NoError(t, l.Fill(ctx, storetest.Scope, append(life(0, 30, 20, []string{"old", "brief"}, nil), life(30, 40, 35, []string{"long"}, []string{"brief"})...)))
	require.NoError(t, l.Fill(ctx, storetest.Scope, life(40, 100, 70, nil, []string{"long"})))
	_, _, done, err := l.FillState(ctx)
	require.NoError(t, err)
	require.False(t, done)
	require.Equal(t, []string{"20 35", "35 70"}, d.Rows("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes ORDER BY 1"))
	progress, err := l.LowerSnapshot().BeginSnapshot(ctx, "", storetest.Scope, 40)
	require.NoError(t, err)
	_, err = l.LowerSnapshot().WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{
		Entries: []ledger.ContractEntry{old, storetest.ActiveEntry(35, 0, "long", "sync::1", 0)}, Last: true,
	})
	require.NoError(t, err)
	require.Empty(t, d.Rows("SELECT 1 FROM indexer.lifetimes"))
	requireNoDerivedDifferences(t, up.store)
	for d.Floors() == "0 100" {
		_, _, done, err = l.FillState(ctx)
		require.NoError(t, err)
		require.False(t, done)
	}
	require.Equal(t, "0 40", d.Floors())
	require.Equal(t, []string{"35 70"}, d.Rows("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes ORDER BY 1"))
	requireNoDerivedDifferences(t, up.store)
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.carried_created"), "the events are there")
	d.fillState(l)
	require.Equal(t, "0 0", d.Floors())
	require.Equal(t, []string{"20 35", "35 70"}, d.Rows("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes ORDER BY 1"))
	requireNoDerivedDifferences(t, up.store)
	d.requireNothingWaits()
}

// A snapshot that what else is stored contradicts is dropped, and nothing changes.
func TestALowerSnapshotThatIsContradicted(t *testing.T) {
	t.Parallel()
	old := storetest.ActiveEntry(20, 0, "old", "sync::1", 0)
	for name, c := range map[string]struct {
		lower  []ledger.ContractEntry
		filled []ledger.Page // beside (40, 100]
		says   string
	}{
		"by a later snapshot": {nil, nil, "lacks contract old, which a later snapshot shows as active since offset 20"},
		"by updates": {
			[]ledger.ContractEntry{old, storetest.ActiveEntry(35, 0, "unseen", "sync::1", 0)}, []ledger.Page{{From: 30, To: 36}},
			"has contract unseen, created at offset 35 (node 0), and the participant's updates don't show that",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			up, l := d.lowering([]ledger.ContractEntry{old}, c.lower)
			require.NoError(t, l.Fill(t.Context(), storetest.Scope, c.filled))
			require.NoError(t, l.Fill(t.Context(), storetest.Scope, life(40, 100, 70, []string{"brief"}, []string{"brief"})))
			var err error
			for err == nil {
				var done bool
				_, _, done, err = l.FillState(t.Context())
				require.False(t, done)
			}
			storetest.RequireProblem(t, err, c.says, "another offset with --from")
			require.Equal(t, "40 100", d.Floors())
			d.requireNothingWaits()
			require.Empty(t, d.Rows("SELECT 1 FROM indexer.lifetimes"))
			requireNoDerivedDifferences(t, up.store)
			d.requireCarried(up.store, 100, []ledger.ContractEntry{old})
			d.fillState(l)
		})
	}
}

// Whoever compares or repairs what one snapshot brought when another one has taken its place is told so, and writes
// nothing.
func TestComparingASnapshotThatWasReplaced(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	entries := []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "old", "sync::1", 0)}
	up, l := d.lowering(entries, entries)
	digest, err := Audit.Stored(up.store).SnapshotRows(ctx, 100)
	require.NoError(t, err)
	require.NoError(t, l.Fill(ctx, storetest.Scope, []ledger.Page{{From: 40, To: 100}}))
	d.fillState(l)
	const says = "the snapshot at offset 40 took its place"
	none := func(findings.Difference) error { return nil }
	require.ErrorContains(t, Audit.Stored(up.store).CompareCarried(ctx, 100, 0, entries, func(string) {}, none), says)
	require.ErrorContains(t, Audit.Stored(up.store).CarriedAt(ctx, 100, func(string, findings.Difference) error { return nil }), says)
	r := d.repairs(d.store())
	require.ErrorContains(t, r.RepairCarried(ctx, 100, 0, entries), says)
	require.ErrorContains(t, r.DropCarried(ctx, 100, []string{"active 20 0"}), says)
	ok, err := Audit.Sealer(up.store, up.Leader).SealSnapshot(ctx, 100, digest, findings.Comparison{})
	require.NoError(t, err)
	require.False(t, ok)
	d.requireCarried(up.store, 40, entries)
}

// A repair leaves what is kept aside, also one of the dictionaries: the numbers in its rows mean again what they meant.
func TestARepairOfNamesKeepsALowerSnapshot(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	old := storetest.ActiveEntry(20, 0, "old", "sync::1", 0)
	old.Active.Created.Observers = []string{"bob"}
	entries := []ledger.ContractEntry{old}
	up, l := d.lowering(entries, entries)
	page := life(101, 110, 110, []string{"new"}, nil)
	page[0].Updates[0].Created[0].Observers = []string{"bob"}
	require.NoError(t, up.Append(ctx, storetest.Scope, page))
	repairer := d.repairs(up.store)
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 110")
	require.NoError(t, repairer.RepairUpdates(ctx, storetest.Scope, page[0]))
	kept, err := l.LowerSnapshot().LatestSnapshot(ctx)
	require.NoError(t, err)
	require.True(t, kept.Finished)

	d.Exec("UPDATE indexer.party_lists SET party_list_ref = 100 + party_list_ref")
	require.NoError(t, repairer.RepairCopies(ctx))
	l.Close()
	l = d.leadBackfill(d.store())
	require.NoError(t, l.Fill(ctx, storetest.Scope, []ledger.Page{{From: 40, To: 100}}))
	d.fillState(l)
	require.Equal(t, "40 40", d.Floors())
	d.requireCarried(up.store, 40, entries)
}

// Which snapshot waits is known after the row that says so is lost, or says something else: there is a copy of it.
func TestWhichSnapshotWaitsIsKeptTwice(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"floors": "DELETE FROM indexer.floors", "pointer": "UPDATE indexer.floors SET waiting_snapshot = NULL", "floor": "UPDATE indexer.floors SET state_floor = 41",
		"snapshot": "DELETE FROM indexer.snapshots WHERE snapshot_offset = 40",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Sample(t)
			d := newDatabase(t)
			old := storetest.ActiveEntry(20, 0, "old", "sync::1", 0)
			up, _ := d.lowering([]ledger.ContractEntry{old}, []ledger.ContractEntry{old, storetest.ActiveEntry(21, 0, "gone", "sync::1", 0)})
			d.Exec(damage)
			r := d.repairs(up.store)
			require.NoError(t, r.RepairCopies(t.Context()))
			require.NoError(t, r.RepairCoverage(t.Context(), nil))
			require.NoError(t, r.RepairDerived(t.Context(), nil))
			require.Equal(t, "100 100", d.Floors())
			d.requireCarried(up.store, 100, []ledger.ContractEntry{old})
			requireNoDerivedDifferences(t, up.store)
			require.Equal(t, "40", d.Row("SELECT waiting_snapshot FROM indexer.floors"))
			require.Equal(t, "40", d.Row("SELECT s.snapshot_offset FROM indexer.snapshots s WHERE s.snapshot_offset = (SELECT waiting_snapshot FROM indexer.floors)"))
		})
	}
}
