package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// behindAnother is the place of a write behind one that has begun.
func behindAnother(wait func() error) storetest.CommitOrder {
	return storetest.CommitOrder{OnWait: wait}
}

// Every variant of entry, over pages, with the writer dying between them.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	l := d.leadUpdates(d.store())
	none, err := d.store().UnfinishedSnapshot(ctx)
	require.NoError(t, err)
	require.Nil(t, none)

	progress, err := l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 100)
	require.NoError(t, err)
	require.Equal(t, ledger.SnapshotProgress{At: 100}, progress)
	both := storetest.ActiveEntry(20, 0, "both", "sync::1", 0)
	both.Active.Created.Argument = ledger.JSON(`"\u0000"`)
	both.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: "pkg:I:Holding", Value: ledger.JSON(`{}`)}}
	progress, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{
		storetest.ActiveEntry(10, 0, "plain", "sync::1", 0),
		both,
		storetest.ActiveEntry(30, 0, "both", "sync::2", 2),
		{Empty: true},
	}})
	require.NoError(t, err)
	require.Equal(t, ledger.SnapshotProgress{At: 100, Next: storetest.Token("t1"), Entries: 4}, progress)

	// A process that is killed and started again continues from what is stored.
	d.EndLock(LeaseUpdates)
	<-l.Lost()
	l = d.leadUpdates(d.store())
	unfinished, err := d.store().UnfinishedSnapshot(ctx)
	require.NoError(t, err)
	require.Equal(t, &progress, unfinished)
	again, err := l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 100)
	require.NoError(t, err)
	require.Equal(t, progress, again)

	unknown := ledger.ContractEntry{Unknown: &ledger.UnknownElement{Kind: "JsNovelty", Raw: ledger.JSON(`{"JsNovelty": {"a": 1}}`)}}
	last := ledger.SnapshotPage{Next: storetest.Token("t2"), Entries: []ledger.ContractEntry{
		storetest.UnassignedEntry(90, 5, "left", "sync::1", "sync::2"),
		storetest.UnassignedEntry(95, 20, "both", "sync::1", "sync::2"), // its creation event is an active entry's
		storetest.AssignedEntry(30, "both", "sync::1", "sync::2"),       // and so is this one's
		storetest.AssignedEntry(92, "came", "sync::1", "sync::2"),
		unknown, unknown,
	}}
	progress, err = l.WriteSnapshotPage(ctx, progress, nil, last)
	require.NoError(t, err)
	require.EqualValues(t, 10, progress.Entries)

	// Nothing is shown before it is complete.
	for _, relation := range []string{"created_events", "interface_views", "reassignments", "active_contracts", "unknown_updates", "exact_payloads", "coverage"} {
		require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger."+relation), relation)
	}
	_, ok, err := l.Watermark(ctx)
	require.NoError(t, err)
	require.False(t, ok)
	status, err := l.store.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, &progress, status.Snapshot)
	require.False(t, status.Started)

	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Next: storetest.Token("t2"), Last: true})
	require.NoError(t, err)
	at, ok, err := l.Watermark(ctx)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 100, at)
	require.Equal(t, "100 100 100", d.Row("SELECT ledger.latest_offset(), ledger.oldest_offset(), ledger.state_floor()"))
	status, err = l.store.Status(ctx)
	require.NoError(t, err)
	require.Nil(t, status.Snapshot)
	require.Equal(t, new(ledger.Offset(100)), status.StateFloor)
	require.EqualValues(t, 2, status.Unknown)

	require.Equal(t, []string{"both sync::1 20 0 0", "both sync::2 30 0 2", "plain sync::1 10 0 0"}, d.Rows(
		"SELECT contract_id, synchronizer_id, activated_offset, activated_node_id, reassignment_counter FROM ledger.active_contracts ORDER BY 1, 2"))
	require.Equal(t, []string{"5 left sync::1", "10 plain sync::1", "20 both sync::1", "30 both sync::2", "92 came sync::2"}, d.Rows(
		"SELECT ledger_offset, contract_id, synchronizer_id FROM ledger.created_events WHERE origin = 'snapshot' ORDER BY 1"))
	require.Equal(t, []string{"30 assigned both", "90 unassigned left", "92 assigned came", "95 unassigned both"}, d.Rows(
		"SELECT ledger_offset, kind, contract_id FROM ledger.reassignments ORDER BY 1"))
	require.Equal(t, "flow", d.Row("SELECT workflow_id FROM ledger.created_events WHERE contract_id = 'plain'"))
	require.Equal(t, "20 both", d.Row("SELECT ledger_offset, contract_id FROM ledger.interface_views"))
	require.Equal(t, `20 "\u0000"`, d.Row("SELECT ledger_offset, convert_from(exact, 'UTF8') FROM ledger.exact_payloads"))
	require.Equal(t, "2 2", d.Row("SELECT count(*), count(DISTINCT ordinal) FROM indexer.unknown_elements WHERE kind = 'JsNovelty'"))
	require.Equal(t, "true", d.Row("SELECT payload ? '$exact' FROM ledger.active_contracts WHERE contract_id = 'both' AND synchronizer_id = 'sync::1'"))

	// Updates continue from there, and know the contracts.
	u := storetest.NewUpdate(101, "sync::1")
	u.Archived = []ledger.ArchivedEvent{storetest.Archival(0, "both")}
	require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 100, To: 101, Updates: []ledger.Update{u}}}))
	require.Equal(t, []string{"both sync::2", "plain sync::1"}, d.Rows("SELECT contract_id, synchronizer_id FROM ledger.active_contracts ORDER BY 1"))
	require.Equal(t, "20 101", d.Row("SELECT activated_offset, deactivated_offset FROM indexer.lifetimes"))
}

// A contract's creation is known wherever it is now, but where neither an event nor a snapshot tells it.
func TestWhereActiveContractsWereCreated(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx := t.Context()
	l := d.leadUpdates(d.store())
	d.snapshot(l, 100,
		storetest.ActiveEntry(10, 0, "stays", "sync::1", 0), storetest.ActiveEntry(11, 0, "goes", "sync::1", 0),
		storetest.ActiveEntry(30, 0, "moved before", "sync::1", 2),
		storetest.UnassignedEntry(90, 12, "in flight", "sync::1", "sync::2"))
	first, last := storetest.NewUpdate(101, "sync::1"), storetest.NewUpdate(102, "sync::2")
	first.Created = []ledger.CreatedEvent{storetest.Creation(0, "new"), storetest.Creation(1, "new and goes")}
	for i, contract := range []string{"goes", "new and goes"} {
		storetest.Unassign(&first, int32(2+i), contract, "sync::1", "sync::2", 1)
		storetest.Assign(&last, int32(i), contract, "sync::1", "sync::2", 1)
	}
	storetest.Assign(&last, 2, "in flight", "sync::1", "sync::2", 1)
	require.NoError(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 100, To: 102, Updates: []ledger.Update{first, last}}}))
	require.Equal(t, []string{
		"goes 11 102 0", "in flight 12 102 2", "moved before <nil> 30 0", "new 101 101 0", "new and goes 101 102 1", "stays 10 10 0",
	}, d.Rows("SELECT contract_id, created_offset, activated_offset, activated_node_id FROM ledger.active_contracts ORDER BY 1"))
}

// Of two writers of the same page one wins; what it wrote stands once.
func TestSnapshotPageIsWrittenOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	progress, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
	require.NoError(t, err)
	for i := range 5 {
		page := ledger.SnapshotPage{Next: storetest.Token(fmt.Sprint("t", i)), Last: i == 4, Entries: []ledger.ContractEntry{
			storetest.ActiveEntry(ledger.Offset(i+1), 0, fmt.Sprint("c", i), "sync::1", 0), {Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`{}`)}},
		}}
		var group sync.WaitGroup
		var next [2]ledger.SnapshotProgress
		var errs [2]error
		for j := range next {
			group.Go(func() { next[j], errs[j] = l.WriteSnapshotPage(t.Context(), progress, nil, page) })
		}
		group.Wait()
		won := 0
		if errs[0] != nil {
			won = 1
		}
		require.NoError(t, errs[won])
		require.ErrorIs(t, errs[1-won], ErrWatermarkMoved)
		require.Equal(t, progress, next[1-won], "the loser's progress")
		progress = next[won]
		require.Equal(t, fmt.Sprint(i+1), d.Row("SELECT count(*) FROM indexer.created"))
	}
	require.EqualValues(t, 10, progress.Entries)
	require.Equal(t, "5", d.Row("SELECT count(*) FROM ledger.active_contracts"))
}

// A page that fails leaves neither rows nor token.
func TestSnapshotPageFails(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	progress, err := l.BeginSnapshot(ctx, "", storetest.Scope, 100)
	require.NoError(t, err)
	progress, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", "sync::1", 0)}})
	require.NoError(t, err)
	later := "later offset 101"
	for name, c := range map[string]struct {
		entry ledger.ContractEntry
		part  string
	}{
		"a row twice":                     {storetest.ActiveEntry(1, 0, "a", "sync::1", 0), "created"},
		"beyond the snapshot, active":     {storetest.ActiveEntry(101, 0, "b", "sync::1", 0), later},
		"beyond the snapshot, unassigned": {storetest.UnassignedEntry(101, 5, "b", "sync::1", "sync::2"), later},
		"beyond the snapshot, assigned":   {storetest.AssignedEntry(101, "b", "sync::1", "sync::2"), later},
	} {
		entries := []ledger.ContractEntry{storetest.ActiveEntry(2, 0, "good", "sync::1", 0), c.entry}
		_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Next: storetest.Token("t2"), Last: true, Entries: entries})
		require.ErrorContains(t, err, c.part, name)
		if c.part == later {
			storetest.RequireProblem(t, err, "snapshot at offset 100", "contract b", "nothing of this page was stored")
		}
		stored, err := d.store().UnfinishedSnapshot(ctx)
		require.NoError(t, err)
		require.Equal(t, &progress, stored, name)
		require.Equal(t, "1", d.Row("SELECT count(*) FROM indexer.created"), name)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	blobs := storetest.Scope
	blobs.Blobs = true
	_, err := l.BeginSnapshot(ctx, "participant::1", blobs, 99)
	require.NoError(t, err)
	// One that has brought nothing yet binds nobody.
	progress, err := l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 100)
	require.NoError(t, err)
	progress, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Next: storetest.Token("t0"), Entries: []ledger.ContractEntry{
		storetest.ActiveEntry(1, 1, "first", "sync::1", 0),
	}})
	require.NoError(t, err)
	_, err = l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 101)
	storetest.RequireProblem(t, err, "unfinished snapshot at offset 100", "asks for offset 101", "--at-offset 100", "--restart")
	_, err = l.BeginSnapshot(ctx, "participant::1", blobs, 100)
	storetest.RequireProblem(t, err, storetest.Scope.Hash(), blobs.Hash(), "--restart")
	_, err = l.BeginSnapshot(ctx, "participant::2", storetest.Scope, 100)
	storetest.RequireProblem(t, err, "belongs to participant participant::1", "participant::2")
	require.Equal(t, storetest.Scope.Hash(), d.Row("SELECT scope FROM indexer.scopes"), "a refused scope was recorded")

	// Dropped, it leaves nothing, and another one can begin.
	entry := storetest.ActiveEntry(1, 0, "a", "sync::1", 0)
	entry.Active.Created.Argument = ledger.JSON(`"\u0000"`)
	entry.Active.Created.InterfaceViews = []ledger.InterfaceView{{InterfaceID: "pkg:I:Holding"}}
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{
		entry, storetest.UnassignedEntry(90, 5, "left", "sync::1", "sync::2"), {Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`{}`)}},
	}})
	require.NoError(t, err)
	require.NoError(t, l.DropSnapshot(ctx))
	for _, table := range []string{"created", "interface_views", "reassignments", "active_contracts", "unknown_elements", "snapshots", "scopes"} {
		require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer."+table), table)
	}
	require.NoError(t, l.DropSnapshot(ctx), "nothing to drop")
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true})
	require.ErrorIs(t, err, ErrWatermarkMoved)
	progress, err = l.BeginSnapshot(ctx, "participant::1", blobs, 100)
	require.NoError(t, err)
	_, err = l.WriteSnapshotPage(ctx, progress, nil, ledger.SnapshotPage{Last: true})
	require.NoError(t, err)

	// A database that holds the ledger takes no snapshot, and loses nothing.
	progress, err = l.BeginSnapshot(ctx, "participant::1", blobs, 100)
	require.NoError(t, err)
	require.True(t, progress.Finished, "the same snapshot is done already")
	_, err = l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 100)
	storetest.RequireProblem(t, err, "already holds the ledger up to offset 100")
	_, err = l.BeginSnapshot(ctx, "participant::1", blobs, 50)
	storetest.RequireProblem(t, err, "already holds the ledger up to offset 100", "new database")
	storetest.RequireProblem(t, l.DropSnapshot(ctx), "already holds the ledger")
	require.ErrorIs(t, l.Start(ctx, "participant::1", blobs, 0, true), ErrWatermarkMoved)
}

// A page is written while the one before it is, and stored behind it or not at all.
func TestSnapshotPageBehindAnother(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	progress, err := l.BeginSnapshot(ctx, "", storetest.Scope, 100)
	require.NoError(t, err)
	unknown := ledger.ContractEntry{Unknown: &ledger.UnknownElement{Kind: "New", Raw: ledger.JSON(`{}`)}}
	first := ledger.SnapshotPage{Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", "sync::1", 0), unknown}}
	second := ledger.SnapshotPage{Next: storetest.Token("t2"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(2, 0, "b", "sync::1", 0), unknown}}
	expected := progress.After(&first)

	failed := errors.New("the other failed")
	_, err = l.WriteSnapshotPage(ctx, expected, behindAnother(func() error { return failed }), second)
	require.ErrorIs(t, err, failed)
	_, err = l.WriteSnapshotPage(ctx, expected, behindAnother(func() error { return nil }), second)
	require.ErrorIs(t, err, ErrWatermarkMoved, "the other is not there")
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.created"))

	written, stored := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	var end ledger.SnapshotProgress
	group.Go(func() {
		end, err = l.WriteSnapshotPage(ctx, expected, behindAnother(func() error {
			close(written)
			<-stored
			return nil
		}), second)
	})
	<-written
	require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.created"), "nobody sees what is not committed")
	next, firstErr := l.WriteSnapshotPage(ctx, progress, nil, first)
	require.NoError(t, firstErr)
	require.Equal(t, expected, next)
	close(stored)
	group.Wait()
	require.NoError(t, err)
	require.Equal(t, ledger.SnapshotProgress{At: 100, Next: storetest.Token("t2"), Entries: 4}, end)

	last := ledger.SnapshotPage{Last: true}
	_, err = l.WriteSnapshotPage(ctx, end, behindAnother(func() error { return failed }), last)
	require.ErrorIs(t, err, failed)
	_, err = l.WriteSnapshotPage(ctx, end, behindAnother(func() error { return nil }), last)
	require.NoError(t, err)
	require.Equal(t, "100", d.Watermark())
	require.Equal(t, []string{"a", "b"}, d.Rows("SELECT contract_id FROM ledger.active_contracts ORDER BY 1"))
	require.Equal(t, []string{"1", "3"}, d.Rows("SELECT ordinal FROM indexer.unknown_elements ORDER BY 1"), "by their places in the snapshot")
}

// The process that dropped a snapshot reads it again: the partitions went with it.
func TestASnapshotIsReadAgainWhereItWasDropped(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	for range 2 {
		progress, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
		require.NoError(t, err)
		_, err = l.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{Next: storetest.Token("t1"),
			Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", "sync::1", 0)}})
		require.NoError(t, err)
		require.NoError(t, l.DropSnapshot(t.Context()))
	}
}
