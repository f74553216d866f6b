package store

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/findings"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/storetest"
)

// filling is a database that began at offset 100 without a snapshot and stands at 110, whose history is filled in to
// the beginning, and whose lifetimes are computed up to the watermark; the state floor was not lowered yet.
func (d *testDB) filling() (up *UpdatesWriter, l *BackfillWriter) {
	d.T.Helper()
	ctx := d.T.Context()
	up = d.leadUpdates(d.store())
	require.NoError(d.T, up.Start(ctx, "participant::1", storetest.Scope, 100, false))
	require.NoError(d.T, up.Append(ctx, storetest.Scope, life(100, 105, 105, []string{"new"}, nil)))
	require.NoError(d.T, up.Append(ctx, storetest.Scope, life(105, 110, 110, nil, []string{"ended"})))
	l = d.leadBackfill(d.store())
	require.NoError(d.T, l.Fill(ctx, storetest.Scope, life(0, 100, 60, []string{"stays", "ended"}, nil)))
	for _, want := range []ledger.Offset{100, 110} {
		at, _, done, err := l.FillState(ctx)
		require.NoError(d.T, err)
		require.False(d.T, done)
		require.Equal(d.T, want, at)
	}
	return up, l
}

func (d *testDB) activeAndLifetimes() (active, lifetimes []string) {
	d.T.Helper()
	return d.Rows("SELECT contract_id FROM indexer.active_contracts ORDER BY 1"),
		d.Rows("SELECT contract_id, activated_offset, deactivated_offset FROM indexer.lifetimes ORDER BY 1")
}

func requireNoDerivedDifferences(t *testing.T, s *Store) {
	t.Helper()
	var differences []findings.Difference
	require.NoError(t, Audit.Stored(s).CompareDerived(t.Context(), nil, storetest.Collect(&differences)))
	require.Empty(t, differences)
}

// Lifetimes that are being computed are no differences, and a repair leaves them alone.
func TestRepairLeavesLifetimesThatAreBeingWorkedOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up, l := d.filling()
	requireNoDerivedDifferences(t, up.store)
	require.NoError(t, d.repairs(d.store()).RepairDerived(t.Context(), nil))
	d.fillState(l)
	active, lifetimes := d.activeAndLifetimes()
	require.Equal(t, []string{"new", "stays"}, active)
	require.Equal(t, []string{"ended 60 110"}, lifetimes)
	require.Contains(t, d.rewrites(), "snapshot 0 110 filled in", "readers learn of lifetimes that end after what was filled in")
	requireNoDerivedDifferences(t, up.store)
}

// Lifetimes that are being computed from a snapshot on, where it is not known yet what was active when indexing began,
// are no differences either, and a repair leaves them alone: no event that is stored activated them.
func TestRepairLeavesLifetimesFromALowerSnapshotOn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(ctx, "participant::1", storetest.Scope, 100, false))
	require.NoError(t, up.Append(ctx, storetest.Scope, life(100, 110, 110, []string{"new"}, []string{"ended"})))
	l := d.leadBackfill(d.store())
	progress, err := l.LowerSnapshot().BeginSnapshot(ctx, "", storetest.Scope, 40)
	require.NoError(t, err)
	_, err = l.LowerSnapshot().WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{
		Entries: []ledger.ContractEntry{storetest.ActiveEntry(20, 0, "ended", "sync::1", 0), storetest.ActiveEntry(30, 0, "stays", "sync::1", 2)}, Last: true,
	})
	require.NoError(t, err)
	require.NoError(t, l.Fill(ctx, storetest.Scope, []ledger.Page{{From: 40, To: 100}}))
	for _, want := range []ledger.Offset{100, 110} {
		at, _, done, err := l.FillState(ctx)
		require.NoError(t, err)
		require.False(t, done)
		require.Equal(t, want, at)
	}
	const lifetimes = "SELECT contract_id, activated_offset, deactivated_offset FROM indexer.lifetimes"
	require.Equal(t, []string{"ended 20 110"}, d.Rows(lifetimes))
	requireNoDerivedDifferences(t, up.store)
	require.NoError(t, d.repairs(d.store()).RepairDerived(ctx, nil))
	d.fillState(l)
	require.Equal(t, "40 40", d.Floors())
	require.Equal(t, []string{"ended 20 110"}, d.Rows(lifetimes))
	requireNoDerivedDifferences(t, up.store)
}

// A reset opens no lifetime that is still being computed: it is not known yet what was active there.
func TestResetWhileLifetimesAreWorkedOut(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up, l := d.filling()
	_, err := up.Reset(t.Context(), 107)
	require.NoError(t, err)
	active, lifetimes := d.activeAndLifetimes()
	require.Equal(t, []string{"new"}, active)
	require.Empty(t, lifetimes)
	requireNoDerivedDifferences(t, up.store)
	d.fillState(l)
	active, lifetimes = d.activeAndLifetimes()
	require.Equal(t, []string{"ended", "new", "stays"}, active)
	require.Empty(t, lifetimes)
	requireNoDerivedDifferences(t, up.store)
}

// Lifetimes that have to be computed again are removed at once, so that whoever compares meanwhile takes them for no
// damage.
func TestLifetimesThatAreComputedAgainAreRemoved(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testDB, *UpdatesWriter) error{
		"reset": func(d *testDB, up *UpdatesWriter) error { _, err := up.Reset(d.T.Context(), 110); return err },
		"repaired": func(d *testDB, up *UpdatesWriter) error {
			return d.repairs(up.store).RepairUpdates(d.T.Context(), storetest.Scope, ledger.Page{From: 70, To: 80})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			up, l := d.filling()
			_, lifetimes := d.activeAndLifetimes()
			require.Equal(t, []string{"ended 60 110"}, lifetimes)
			require.NoError(t, change(d, up))
			active, lifetimes := d.activeAndLifetimes()
			require.Equal(t, []string{"new"}, active)
			require.Empty(t, lifetimes)
			require.Empty(t, d.Rows("SELECT contract_id FROM indexer.fill_active"))
			requireNoDerivedDifferences(t, up.store)
			d.fillState(l)
			active, lifetimes = d.activeAndLifetimes()
			require.Equal(t, []string{"new", "stays"}, active)
			require.Equal(t, []string{"ended 60 110"}, lifetimes)
			requireNoDerivedDifferences(t, up.store)
		})
	}
}

// Who begins to compute lifetimes waits for a reset that is under way: it would read events that the reset removes.
func TestLifetimesBegunBesideAReset(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(ctx, "participant::1", storetest.Scope, 100, false))
	require.NoError(t, up.Append(ctx, storetest.Scope, life(100, 105, 105, []string{"new"}, nil)))
	require.NoError(t, up.Append(ctx, storetest.Scope, life(105, 110, 110, nil, []string{"ended"})))
	l := d.leadBackfill(d.store())
	require.NoError(t, l.Fill(ctx, storetest.Scope, life(0, 100, 60, []string{"stays", "ended"}, nil)))
	rewrites := d.Begin("LOCK TABLE indexer.rewrites IN SHARE ROW EXCLUSIVE MODE")
	reset, filled := make(chan error, 1), make(chan error, 1)
	go func() { _, err := up.Reset(ctx, 107); reset <- err }()
	d.WaitForLock("%LOCK TABLE rewrites%")
	go func() {
		for {
			if _, _, done, err := l.FillState(ctx); err != nil || done {
				filled <- err
				return
			}
		}
	}()
	d.WaitFor(storetest.Waiting, 2)
	require.NoError(t, rewrites.Rollback(ctx))
	require.NoError(t, <-reset)
	require.NoError(t, <-filled)
	active, lifetimes := d.activeAndLifetimes()
	require.Equal(t, []string{"ended", "new", "stays"}, active)
	require.Empty(t, lifetimes)
	requireNoDerivedDifferences(t, up.store)
}

// What was read of events that were changed before it is written is not written: neither a step nor the end.
func TestLifetimesOfEventsThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	up, l := d.filling()
	d.Exec("UPDATE indexer.fill SET lifetimes_to = 100")
	s := stateFill{leader: l, began: 100}
	step, reach, err := s.read(ctx, 100, 110)
	require.NoError(t, err)
	_, err = up.Reset(ctx, 107)
	require.NoError(t, err)
	err = l.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error { return s.apply(ctx, tx, step, 100, reach) })
	require.ErrorIs(t, err, ErrWatermarkMoved)
	require.ErrorIs(t, s.finish(ctx, 100), ErrWatermarkMoved)
	require.False(t, s.done)
	d.fillState(l)
	active, _ := d.activeAndLifetimes()
	require.Equal(t, []string{"ended", "new", "stays"}, active)

	again := newDatabase(t)
	again.seeded()
	filler := again.leadBackfill(again.store())
	require.NoError(t, filler.Fill(ctx, storetest.Scope, append(life(0, 40, 20, []string{"brief"}, nil), life(40, 100, 60, nil, []string{"brief"})...)))
	again.Exec("UPDATE indexer.fill SET lifetimes_to = 40")
	s = stateFill{leader: filler, began: 100, known: true}
	step, reach, err = s.read(ctx, 40, 100)
	require.NoError(t, err)
	require.NoError(t, again.repairs(again.store()).RepairUpdates(ctx, storetest.Scope, ledger.Page{From: 50, To: 70}))
	err = filler.term.Write(ctx, func(ctx context.Context, tx pgx.Tx) error { return s.apply(ctx, tx, step, 40, reach) })
	require.ErrorIs(t, err, ErrWatermarkMoved)
	require.ErrorIs(t, s.finish(ctx, 100), ErrWatermarkMoved)
	require.Equal(t, "0 100", again.Floors())
}

// Who lowers the state floor holds its role while it waits for that of the updates; a repair that waits for both waits
// for the former first.
func TestARepairDoesNotWaitForWhoLowersTheStateFloor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	_, l := d.filling()
	r := d.repairs(d.store())
	s := stateFill{leader: l, began: 100}
	repaired := make(chan error, 1)
	err := l.term.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		go func() { repaired <- r.RepairDerived(t.Context(), nil) }()
		d.WaitFor(storetest.Waiting, 1)
		return s.leader.term.Exclude(ctx, tx, RoleUpdates)
	})
	require.NoError(t, err)
	require.NoError(t, <-repaired)
}

// Who fills in the creation of a contract that is looked up, and who shows that it was archived, wait for one another's
// look-up before they merge coverage, and so never in a circle.
func TestFillingInAndShowingDoNotWaitInACircle(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.leadUpdates(d.store())
	require.NoError(t, up.Start(t.Context(), "participant::1", storetest.Scope, 100, false))
	require.NoError(t, up.Append(t.Context(), storetest.Scope, life(100, 110, 110, nil, []string{"old"})))
	require.NoError(t, up.WriteAhead(t.Context(), storetest.Scope, life(110, 120, 120, nil, []string{"old"})))
	l := d.leadBackfill(d.store())
	shown := make(chan error, 1)
	err := l.term.Write(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if err := l.cover(ctx, tx, storetest.Scope, 90, 100); err != nil {
			return err
		}
		if err := l.forgetLookups(ctx, tx, &rows.Facts{Created: []rows.Created{{ContractID: "old"}}}); err != nil {
			return err
		}
		go func() { shown <- up.MoveWatermark(t.Context(), storetest.Scope, 110, 120) }()
		d.WaitFor(storetest.Waiting, 1)
		return l.lowerFloor(ctx, tx, storetest.Scope, 90, 100)
	})
	require.NoError(t, err)
	require.NoError(t, <-shown)
	require.Equal(t, []string{"90 120"}, d.Coverage())
}
