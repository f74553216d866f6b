package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/held"
	"ledgerindexer/store/internal/storetest"
)

// seeded is a database that began with a snapshot at offset 100, and continues a little behind it.
func (d *testDB) seeded(entries ...ledger.ContractEntry) *UpdatesWriter {
	d.T.Helper()
	l := d.leadUpdates(d.store())
	progress, err := l.BeginSnapshot(d.T.Context(), "participant::1", storetest.Scope, 100)
	require.NoError(d.T, err)
	_, err = l.WriteSnapshotPage(d.T.Context(), progress, nil, ledger.SnapshotPage{Last: true, Entries: entries})
	require.NoError(d.T, err)
	require.NoError(d.T, l.Append(d.T.Context(), storetest.Scope, storetest.OneCreation(100, 101)))
	return l
}

// fillState works until the state floor is where it can be.
func (d *testDB) fillState(l *BackfillWriter) {
	d.T.Helper()
	for done := false; !done; {
		var err error
		_, _, done, err = l.FillState(d.T.Context())
		require.NoError(d.T, err)
	}
}

// life is a page in which contracts are created, and others archived.
func life(from, to ledger.Offset, at ledger.Offset, created, archived []string) []ledger.Page {
	u := storetest.NewUpdate(at, "sync::1")
	for i, id := range created {
		u.Created = append(u.Created, storetest.Creation(int32(i), id))
	}
	for i, id := range archived {
		u.Archived = append(u.Archived, storetest.Archival(int32(len(created)+i), id))
	}
	return []ledger.Page{{From: from, To: to, Updates: []ledger.Update{u}}}
}

// Either the scope is changed or history is filled in below in the scope before, whichever comes first.
func TestFillingInAndAChangeOfTheScope(t *testing.T) {
	t.Parallel()
	for name, changedFirst := range map[string]bool{"changed": true, "filled in": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			scope := storetest.Scope
			scope.Parties = []string{"alice"}
			up, l := d.leadUpdates(d.store()), d.leadBackfill(d.store())
			require.NoError(t, up.Start(t.Context(), "participant::1", scope, 100, false))
			require.NoError(t, up.Append(t.Context(), scope, []ledger.Page{{From: 100, To: 110}}))
			more := scope
			more.Parties = []string{"alice", "bob"}
			change := func() error { _, err := up.ChangeScope(t.Context(), more); return err }
			fill := func() error { return l.Fill(t.Context(), scope, storetest.OneCreation(40, 60)) }
			first, second, refused := fill, change, "history is being filled in"
			if changedFirst {
				first, second, refused = change, fill, "the scope was changed meanwhile"
			}
			// Both wait for the floors, in this order.
			tx := d.Begin("SELECT FROM indexer.floors_both FOR UPDATE")
			waiting := make([]chan error, 2)
			for i, do := range []func() error{first, second} {
				waiting[i] = make(chan error, 1)
				go func() { waiting[i] <- do() }()
				d.WaitFor(storetest.Waiting, i+1)
			}
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, <-waiting[0])
			storetest.RequireProblem(t, <-waiting[1], refused, "backfill history")
			require.Empty(t, d.differences(up.store))
		})
	}
}

// A history window deletes the carried rows of its range, with all that belongs to them, and writes the events in their
// place: each event is shown once. What was sealed of the snapshot is forgotten.
func TestHistoryWindowDeletesTheCarriedRowsOfItsRange(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	kept := storetest.ActiveEntry(20, 0, "kept", "sync::1", 0)
	replaced := storetest.ActiveEntry(50, 0, "replaced", "sync::1", 0)
	for _, e := range []*ledger.ContractEntry{&kept, &replaced} {
		e.Active.Created.Argument = ledger.JSON(`"\u0000"`)
		e.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: storetest.HoldingV1, Value: ledger.JSON(`{}`)}}
	}
	unknown := ledger.ContractEntry{Unknown: &ledger.UnknownElement{Kind: "JsNovelty", Raw: ledger.JSON(`{"JsNovelty": {"a": "\u0000"}}`)}}
	up := d.seeded(kept, replaced, storetest.UnassignedEntry(90, 30, "left", "sync::1", "sync::2"), unknown)
	digest, err := Audit.Stored(up.store).SnapshotRows(ctx, 100)
	require.NoError(t, err)
	ok, err := Audit.Sealer(up.store, up.Leader).SealSnapshot(ctx, 100, digest, findings.Comparison{})
	require.NoError(t, err)
	require.True(t, ok)

	l := d.leadBackfill(d.store())
	page := life(40, 60, 50, []string{"replaced"}, nil)
	page[0].Updates[0].Created[0].Argument = ledger.JSON(`"\u0000"`)
	page[0].Updates[0].Created[0].InterfaceViews = replaced.Active.Created.InterfaceViews
	require.NoError(t, l.Fill(ctx, storetest.Scope, page))
	require.Equal(t, []string{"20 kept snapshot", "30 left snapshot", "50 replaced transaction"}, d.Rows(
		"SELECT ledger_offset, contract_id, origin FROM ledger.created_events WHERE ledger_offset <= 100 ORDER BY 1"))
	require.Equal(t, []string{"20", "50"}, d.Rows("SELECT ledger_offset FROM ledger.interface_views ORDER BY 1"))
	require.Equal(t, []string{"20", "50", "100"}, d.Rows("SELECT ledger_offset FROM ledger.exact_payloads ORDER BY 1"))
	require.Equal(t, []string{"40 60", "100 101"}, d.Coverage())
	require.Equal(t, "100 100", d.Floors(), "what does not reach up to the floor does not lower it")
	require.Empty(t, d.Rows("SELECT stream FROM ledger.verifications"))

	require.NoError(t, l.Fill(ctx, storetest.Scope, []ledger.Page{{From: 60, To: 100}}))
	require.Equal(t, []string{"40 101"}, d.Coverage())
	require.Equal(t, "40 100", d.Floors())
	require.Empty(t, d.Rows("SELECT 1 FROM indexer.carried_reassignments"))
	require.Empty(t, d.Rows("SELECT 1 FROM indexer.carried_unknown_elements"))
	require.Equal(t, []string{"20", "50"}, d.Rows("SELECT ledger_offset FROM ledger.exact_payloads ORDER BY 1"))

	var differences []findings.Difference
	require.NoError(t, Audit.Stored(up.store).CompareCarried(ctx, 100, 0, []ledger.ContractEntry{kept, replaced, storetest.UnassignedEntry(90, 30, "left", "sync::1", "sync::2"), unknown},
		func(string) {}, storetest.Collect(&differences)))
	require.NoError(t, Audit.Stored(up.store).CompareDerived(ctx, nil, storetest.Collect(&differences)))
	_, err = Audit.Stored(up.store).CompareCoverage(ctx, nil, storetest.Collect(&differences))
	require.NoError(t, err)
	require.Empty(t, differences)

	require.ErrorIs(t, l.Fill(ctx, storetest.Scope, life(40, 60, 50, []string{"replaced"}, nil)), ErrCovered)
	require.Error(t, l.Fill(ctx, storetest.Scope, storetest.OneCreation(101, 102)), "above where indexing began")
	require.Equal(t, "101", d.Watermark())
}

// What is claimed agrees where nothing was read yet behind the beginning, and history that does not reach up to it was
// filled in.
func TestHistoryFilledInBeforeAnythingWasRead(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(t.Context(), "participant::1", storetest.Scope, 100, false))
	require.NoError(t, d.leadBackfill(d.store()).Fill(t.Context(), storetest.Scope, storetest.OneCreation(40, 60)))
	var differences []findings.Difference
	holes, err := Audit.Stored(up.store).CompareCoverage(t.Context(), nil, storetest.Collect(&differences))
	require.NoError(t, err)
	require.Empty(t, holes)
	require.Empty(t, differences)
	requireNoDerivedDifferences(t, up.store)
}

// A page that lacks a contract which the snapshot has is refused, and nothing of it is stored.
func TestHistoryWindowThatContradictsTheSnapshot(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.seeded(storetest.ActiveEntry(50, 0, "lacking", "sync::1", 0))
	l := d.leadBackfill(d.store())
	storetest.RequireProblem(t, l.Fill(t.Context(), storetest.Scope, life(40, 60, 51, []string{"another"}, nil)), "lacking", "--from")
	require.Empty(t, d.Facts(0, 100))
	require.Equal(t, []string{"100 101"}, d.Coverage())
}

// What is filled in is never projected into the active contracts; the lifetimes that ended there are computed when
// history reaches the beginning, and only then the state floor goes there.
func TestFilledHistoryIsNeverProjectedAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.seeded(storetest.ActiveEntry(50, 0, "old", "sync::1", 0))
	active := func() []string {
		return d.Rows("SELECT contract_id, activated_offset FROM indexer.active_contracts ORDER BY 1")
	}
	before := active()
	l := d.leadBackfill(d.store())
	require.NoError(t, l.Fill(ctx, storetest.Scope, life(40, 100, 50, []string{"old", "brief"}, nil)))
	d.fillState(l)
	require.Equal(t, "40 100", d.Floors(), "it is not known what was active at offset 40")
	require.NoError(t, up.Append(ctx, storetest.Scope, life(101, 103, 103, nil, []string{"old"})))
	before = before[:1]
	require.Equal(t, before, active())

	require.NoError(t, l.Fill(ctx, storetest.Scope, life(0, 40, 10, []string{"older"}, []string{"never seen"})))
	require.Equal(t, "0 100", d.Floors())
	require.Equal(t, before, active())
	require.Equal(t, []string{"50 103"}, d.Rows("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes"))
	d.fillState(l)
	require.Equal(t, "0 0", d.Floors())
	require.Equal(t, before, active(), "older and brief are not what the snapshot says: the indexer does not add them")
	require.Equal(t, []string{"never seen"}, d.Rows("SELECT contract_id FROM indexer.lookups"))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.snapshots"))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.fill_active"))
	_, err := up.Reset(ctx, 99)
	require.NoError(t, err, "it is known what was active there")
}

// Without a snapshot, history down to the beginning tells what was active where indexing began, and the leader of the
// updates goes on with it.
func TestHistoryTellsWhatWasActive(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(ctx, "participant::1", storetest.Scope, 100, false))
	require.NoError(t, up.Append(ctx, storetest.Scope, life(100, 110, 110, []string{"new"}, []string{"ended"})))
	require.Equal(t, []string{"ended"}, d.Rows("SELECT contract_id FROM indexer.lookups"))
	l := d.leadBackfill(d.store())
	require.NoError(t, l.Fill(ctx, storetest.Scope, life(30, 100, 60, []string{"stays", "ended"}, nil)))
	require.Empty(t, d.Rows("SELECT contract_id FROM indexer.lookups"), "its creation has come")
	require.Equal(t, "30 NULL", d.Floors())
	storetest.RequireProblem(t, func() error { _, err := up.Reset(ctx, 50); return err }(), "at least 100")
	require.NoError(t, l.Fill(ctx, storetest.Scope, life(0, 30, 20, []string{"first"}, nil)))
	_, _, done, err := l.FillState(ctx)
	require.NoError(t, err)
	require.False(t, done)
	require.NoError(t, up.Append(ctx, storetest.Scope, life(110, 120, 120, nil, []string{"first"})))
	d.fillState(l)
	require.Equal(t, "0 0", d.Floors())
	require.Equal(t, []string{"new", "stays"}, d.Rows("SELECT contract_id FROM indexer.active_contracts ORDER BY 1"))
	require.Equal(t, []string{"20 120", "60 110"}, d.Rows("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes ORDER BY 1"))
	require.NoError(t, up.Append(ctx, storetest.Scope, life(120, 130, 130, nil, []string{"stays"})))
	var differences []findings.Difference
	require.NoError(t, Audit.Stored(up.store).CompareDerived(ctx, nil, storetest.Collect(&differences)))
	require.Empty(t, differences)
}

// The floor follows what is contiguous, whatever the order, and rows that touch become one, while the leader of the
// updates replaces the row above all the time.
func TestTheFloorFollowsWhatIsFilledIn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.seeded()
	l := d.leadBackfill(d.store())
	appended := make(chan error, 1)
	go func() {
		for at := ledger.Offset(101); at < 160; at++ {
			if err := up.Append(ctx, storetest.Scope, storetest.OneCreation(at, at+1)); err != nil {
				appended <- err
				return
			}
		}
		appended <- nil
	}()
	random := rand.New(rand.NewPCG(1, 2))
	filled := make(chan error, 2)
	order := random.Perm(20)
	for half := range 2 {
		go func() {
			for _, n := range order[10*half : 10*half+10] {
				if err := l.Fill(ctx, storetest.Scope, storetest.OneCreation(ledger.Offset(5*n), ledger.Offset(5*n+5))); err != nil {
					filled <- fmt.Errorf("%d: %w", n, err)
					return
				}
			}
			filled <- nil
		}()
	}
	require.NoError(t, <-filled)
	require.NoError(t, <-filled)
	require.NoError(t, <-appended)
	require.Equal(t, []string{"0 160"}, d.Coverage())
	require.Equal(t, "0 100", d.Floors())
	missing, err := l.Unfilled(ctx, ledger.Range{From: 0, To: 100})
	require.NoError(t, err)
	require.Empty(t, missing)
}

// What is filled in up to where indexing began becomes one row with the first one above, whichever is written first.
func TestFillingInBesideTheFirstUpdates(t *testing.T) {
	t.Parallel()
	for _, fillFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("filled in first ", fillFirst), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			up := d.leadUpdates(d.store())
			require.NoError(t, up.Start(t.Context(), "participant::1", storetest.Scope, 100, false))
			l := d.leadBackfill(d.store())
			fill := func(ctx context.Context, tx pgx.Tx) error {
				if err := l.cover(ctx, tx, storetest.Scope, 90, 100); err != nil {
					return err
				}
				return l.lowerFloor(ctx, tx, storetest.Scope, 90, 100)
			}
			index := func(ctx context.Context, tx pgx.Tx) error {
				if err := up.cover(ctx, tx, storetest.Scope, 100, 101); err != nil {
					return err
				}
				return up.advance(ctx, tx, storetest.Scope, 100, 101)
			}
			first, second, write, then := l.Leader, up.Leader, fill, index
			if !fillFirst {
				first, second, write, then = up.Leader, l.Leader, index, fill
			}
			done := make(chan error, 1)
			require.NoError(t, first.term.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
				if err := write(ctx, tx); err != nil {
					return err
				}
				go func() { done <- second.term.Write(t.Context(), then) }()
				d.WaitFor(storetest.Waiting, 1)
				return nil
			}))
			require.NoError(t, <-done)
			require.Equal(t, []string{"90 101"}, d.Coverage())
			require.Equal(t, "90 NULL", d.Floors())
		})
	}
}

// A reset to where indexing began waits for who fills in history up to there, whose range then begins lower, and claims
// nothing above.
func TestAResetBesideFillingIn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(ctx, "participant::1", storetest.Scope, 100, false))
	later := life(100, 110, 110, []string{"new"}, nil)
	require.NoError(t, up.Append(ctx, storetest.Scope, later))
	l := d.leadBackfill(d.store())
	rewrites := d.Begin("LOCK TABLE indexer.rewrites IN SHARE ROW EXCLUSIVE MODE")
	filled, reset := make(chan error, 1), make(chan error, 1)
	go func() { filled <- l.Fill(ctx, storetest.Scope, life(90, 100, 95, []string{"old"}, nil)) }()
	d.WaitForLock("%LOCK TABLE rewrites%")
	go func() { _, err := up.Reset(ctx, 100); reset <- err }()
	d.WaitForLock("%ResetCoverage%")
	require.NoError(t, rewrites.Rollback(ctx))
	require.NoError(t, <-filled)
	require.NoError(t, <-reset)
	require.Equal(t, []string{"90 100"}, d.Coverage())
	require.Equal(t, "100", d.Watermark())
	require.NoError(t, up.Append(ctx, storetest.Scope, later))
	require.Equal(t, []string{"90 110"}, d.Coverage())
	require.Empty(t, d.differences(up.store))
}

// A snapshot of which history replaces rows meanwhile does not stay sealed: either the seal comes first and is
// forgotten, or it is not made.
func TestASnapshotIsSealedBesideFillingIn(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]struct{ table, statement string }{
		"sealed first":    {"lookups", "%DELETE FROM lookups%"},
		"filled in first": {"rewrites", "%LOCK TABLE rewrites%"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			ctx := t.Context()
			up := d.seeded(storetest.ActiveEntry(50, 0, "replaced", "sync::1", 0))
			digest, err := Audit.Stored(up.store).SnapshotRows(ctx, 100)
			require.NoError(t, err)
			l := d.leadBackfill(d.store())
			lock := d.Begin("LOCK TABLE indexer." + wait.table + " IN SHARE ROW EXCLUSIVE MODE")
			filled := make(chan error, 1)
			go func() { filled <- l.Fill(ctx, storetest.Scope, life(40, 60, 50, []string{"replaced"}, nil)) }()
			d.WaitForLock(wait.statement)
			sealed, sealing := false, make(chan error, 1)
			go func() {
				var err error
				sealed, err = Audit.Sealer(up.store, up.Leader).SealSnapshot(ctx, 100, digest, findings.Comparison{})
				sealing <- err
			}()
			if name == "sealed first" {
				require.NoError(t, <-sealing)
				require.True(t, sealed)
				require.NoError(t, lock.Rollback(ctx))
			} else {
				d.WaitFor(storetest.Waiting, 2)
				require.NoError(t, lock.Rollback(ctx))
				require.NoError(t, <-sealing)
				require.False(t, sealed)
			}
			require.NoError(t, <-filled)
			require.Empty(t, d.Rows("SELECT stream FROM indexer.verifications"))
		})
	}
}

// A snapshot that is sealed while the process that lowers the state floor waits for the sealer does not stay sealed
// either.
func TestASnapshotIsSealedBesideALowerStateFloor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	d.seeded(storetest.ActiveEntry(50, 0, "stays", "sync::1", 0))
	l := d.leadBackfill(d.store())
	require.NoError(t, l.Fill(ctx, storetest.Scope, life(0, 100, 50, []string{"stays"}, nil)))
	at, _, done, err := l.FillState(ctx)
	require.NoError(t, err)
	require.False(t, done)
	require.EqualValues(t, 100, at)
	sealer := d.Begin("SELECT FROM indexer.floors WHERE stream = 'updates' FOR SHARE") // as Sealer.SealSnapshot does first
	lowered := make(chan error, 1)
	go func() { _, _, _, err := l.FillState(ctx); lowered <- err }()
	d.WaitForLock("%FillStateKnown%")
	_, err = sealer.Exec(ctx, `INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
		VALUES ($1, 0, 100, now(), 'equal', 0, sha256(''))`, findings.SealedSnapshot)
	require.NoError(t, err)
	require.NoError(t, sealer.Commit(ctx))
	require.NoError(t, <-lowered)
	require.Equal(t, "0 0", d.Floors())
	require.Empty(t, d.Rows("SELECT stream FROM indexer.verifications"))
}

func TestWhatIsUnfilled(t *testing.T) {
	t.Parallel()
	c := held.Ranges{{From: 10, To: 20}, {From: 20, To: 25}, {From: 40, To: 50}}
	for r, want := range map[ledger.Range][]ledger.Range{
		{From: 0, To: 60}:  {{From: 0, To: 10}, {From: 25, To: 40}, {From: 50, To: 60}},
		{From: 12, To: 22}: nil,
		{From: 22, To: 45}: {{From: 25, To: 40}},
		{From: 0, To: 5}:   {{From: 0, To: 5}},
		{From: 55, To: 60}: {{From: 55, To: 60}},
	} {
		require.Equal(t, want, c.Missing(r), "%v", r)
	}
	for at, want := range map[int64]bool{10: false, 11: true, 20: true, 21: true, 25: true, 26: false, 40: false, 50: true, 51: false} {
		require.Equal(t, want, c.Has(at), "offset %d", at)
	}
}
