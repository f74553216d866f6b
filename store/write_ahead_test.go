package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/active"
	"ledgerindexer/store/internal/bounds"
	"ledgerindexer/store/internal/partitions"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
)

// ahead lists what is stored and not shown yet.
func ahead(t *testing.T, l *UpdatesWriter) (list []string) {
	ranges, err := l.StoredAhead(t.Context())
	require.NoError(t, err)
	for _, r := range ranges {
		list = append(list, fmt.Sprint(r.From, " ", r.To))
	}
	return list
}

// What is written ahead is there and is not shown, however far ahead and in whatever order; what shows it need not be
// who wrote it.
func TestWriteAhead(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	require.Empty(t, ahead(t, l))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(8)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(0)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(4)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.EveryKind(20)))
	require.Equal(t, []string{"0 12", "20 24"}, ahead(t, l))
	one := d.Facts(20, 24)
	require.GreaterOrEqual(t, len(one), len(storetest.FactTables))
	require.Len(t, d.Facts(0, 100), 4*len(one))
	require.Equal(t, "0", d.Watermark())
	for _, view := range []string{"updates", "created_events", "archived_events", "active_contracts", "coverage", "exact_payloads", "unknown_updates"} {
		require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger."+view), view)
	}
	status, err := l.store.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, []ledger.Offset{0, 12}, []ledger.Offset{status.Watermark, status.Frontier})
	require.Zero(t, status.Unknown)

	l.Close()
	l = d.leadUpdates(d.store())
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 0, 10), "the middle of what was written at once")
	require.Equal(t, []string{"0 10", "10 12", "20 24"}, d.Coverage())
	require.Equal(t, []string{"10 12", "20 24"}, ahead(t, l))
	require.Equal(t, "10", d.Watermark())
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 10, 12))
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(12)))
	require.Equal(t, []string{"0 16", "20 24"}, d.Coverage())
	require.ErrorIs(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 16, To: 22}}), ErrCovered)
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(16)))
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 20, 24))
	require.Equal(t, []string{"0 24"}, d.Coverage())
	require.Empty(t, ahead(t, l))
	require.Equal(t, "24", d.Row("SELECT count(*) FROM ledger.updates"))
	status, err = l.store.Status(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 6, status.Unknown)
}

// Rule: the watermark moves only by compare-and-swap, and only over what is stored in its scope.
func TestProjectMovesOverWhatIsStored(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(0, 10)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(20, 30)))
	forget := func() { l.pending = active.NewPending() } // as another process would
	for range 2 {
		require.ErrorIs(t, l.MoveWatermark(ctx, ledger.Scope{}, 0, 10), errNotCovered, "another scope")
		require.ErrorIs(t, l.MoveWatermark(ctx, storetest.Scope, 5, 10), ErrWatermarkMoved)
		require.ErrorIs(t, l.MoveWatermark(ctx, storetest.Scope, 20, 30), ErrWatermarkMoved)
		require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 10, 0))
		require.Equal(t, "0", d.Watermark())
		forget()
		require.ErrorIs(t, l.MoveWatermark(ctx, storetest.Scope, 0, 30), errNotCovered)
		require.Equal(t, []string{"0 10", "20 30"}, d.Coverage())
		require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.active_contracts"))
	}
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		group.Go(func() { errs[i] = l.MoveWatermark(ctx, storetest.Scope, 0, 10) })
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, ErrWatermarkMoved)
		}
	}
	require.Equal(t, 1, won)
	require.Equal(t, "1", d.Row("SELECT count(*) FROM indexer.active_contracts"))

	require.ErrorIs(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(0, 10)), ErrCovered)
	require.ErrorIs(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(9, 11)), ErrCovered)
	require.ErrorIs(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(29, 31)), ErrCovered)
	d.Exec("DELETE FROM indexer.coverage WHERE from_exclusive = 0")
	require.ErrorIs(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(5, 9)), ErrWatermarkMoved, "below the watermark")
	require.Equal(t, "2", d.Row("SELECT count(*) FROM indexer.updates"))
	d.Exec("TRUNCATE indexer.checkpoints")
	require.ErrorIs(t, l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(40, 50)), ErrWatermarkMoved, "nothing was started")
}

// Rule: an update's rows exist if and only if its offset is covered, whoever writes what at the same time: ranges that
// overlap, and their twins. Nothing is stored twice, and nobody waits for ever.
func TestWritersRace(t *testing.T) {
	t.Parallel()
	brief.Long(t, "lets writers race many times")
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	const end = 300
	pages := func(from, to ledger.Offset) (list []ledger.Page) {
		for at := from; at < to; at++ {
			list = append(list, storetest.OneCreation(at, at+1)...)
			list[len(list)-1].Checkpoints = []ledger.OffsetCheckpoint{{Offset: at + 1, Times: []ledger.SynchronizerTime{
				{SynchronizerID: fmt.Sprint("sync::", at%3), RecordTime: storetest.Time("2025-01-01T00:00:00Z")},
				{SynchronizerID: fmt.Sprint("sync::", from%3), RecordTime: storetest.Time("2025-01-01T00:00:01Z")},
			}}}
		}
		return list
	}
	harmless := func(err error) bool { // the deadlock of a writer that tries what is covered with the one who shows it is found at once
		return err == nil || errors.Is(err, ErrCovered) || errors.Is(err, ErrWatermarkMoved) || pg.HasCode(err, "40P01")
	}
	var writers, projector sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(i)))
			for range 150 {
				from := ledger.Offset(random.IntN(end))
				err := l.WriteAhead(ctx, storetest.Scope, pages(from, min(end, from+1+ledger.Offset(random.IntN(6)))))
				if !harmless(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	projector.Go(func() {
		for last := false; !last; {
			select {
			case <-over:
				last = true
			default:
			}
			at, _, err := l.Watermark(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			ranges, err := l.StoredAhead(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			if len(ranges) > 0 && ranges[0].From == at {
				if err := l.MoveWatermark(ctx, storetest.Scope, at, ranges[0].To); !harmless(err) {
					t.Error(err)
					return
				}
			}
		}
	})
	writers.Wait()
	close(over)
	projector.Wait()
	at, _, err := l.Watermark(ctx)
	require.NoError(t, err)
	holes := bounds.Ranges{{From: 0, To: at}}
	ranges, err := l.StoredAhead(ctx)
	require.NoError(t, err)
	for _, hole := range append(holes, ranges...).Missing(ledger.Range{From: 0, To: end}) {
		require.NoError(t, l.WriteAhead(ctx, storetest.Scope, pages(hole.From, hole.To)))
	}
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, at, end))
	require.Equal(t, []string{"0 300"}, d.Coverage())
	for _, table := range []string{"updates", "created", "active_contracts"} {
		require.Equal(t, "300", d.Row("SELECT count(*) FROM indexer."+table), table)
	}
}

// Writers that need partitions at the same time, far apart, wait for none that they don't need, and find their own.
func TestWritersAttachPartitions(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		group.Go(func() {
			for n := range ledger.Offset(5) {
				from := (n*ledger.Offset(len(errs)) + ledger.Offset(i)) * partitions.FirstWidth
				if errs[i] = l.WriteAhead(ctx, storetest.Scope, storetest.OneCreation(from, from+partitions.FirstWidth)); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, l.MoveWatermark(ctx, storetest.Scope, 0, 20*partitions.FirstWidth))
	require.Equal(t, "20", d.Row("SELECT count(*) FROM ledger.created_events"))
}

// However a history is cut, in whatever order it is written, and whenever what is shown: all tables are as if it had
// been appended. So they are where what was written is not remembered.
func TestWriteAndProjectAreAppend(t *testing.T) {
	t.Parallel()
	brief.Long(t, "tries many random histories")
	d := newDatabase(t)
	l := d.started()
	empty := func() {
		d.Exec(`TRUNCATE indexer.updates, indexer.created, indexer.archived, indexer.exercised, indexer.reassignments, indexer.lifetimes,
			indexer.active_contracts, indexer.lookups, indexer.coverage`)
		d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 0")
	}
	result := func() map[string][]string {
		all := d.Dump("updates", "created", "archived", "exercised", "reassignments", "lifetimes", "active_contracts", "coverage", "checkpoints")
		// The others are forgotten in their turn. Which event asked first depends on the cuts.
		all["lookups"] = d.Rows(`SELECT contract_id FROM indexer.lookups l WHERE status = 'wanted'
			AND NOT EXISTS (SELECT FROM indexer.created c WHERE c.contract_id = l.contract_id) ORDER BY 1`)
		return all
	}
	rapid.Check(t, func(rt *rapid.T) {
		var h storetest.History
		h.Draw(rt)
		empty()
		for _, batch := range h.Batches(rt) {
			require.NoError(rt, l.Append(t.Context(), storetest.Scope, batch))
		}
		want := result()

		empty()
		l.pending = active.NewPending()
		l.pending.Limit, l.pending.Enough = rapid.IntRange(0, 40).Draw(rt, "remembered"), rapid.IntRange(1, 10).Draw(rt, "enough")
		batches := h.Batches(rt)
		var at ledger.Offset
		show := func(to ledger.Offset) {
			require.NoError(rt, l.MoveWatermark(t.Context(), storetest.Scope, at, to))
			at = to
		}
		for _, n := range rapid.Permutation(numbers(len(batches))).Draw(rt, "order") {
			require.NoError(rt, l.WriteAhead(t.Context(), storetest.Scope, batches[n]))
			if rapid.IntRange(0, 2).Draw(rt, "show") > 0 {
				continue
			}
			ranges, err := l.StoredAhead(t.Context())
			require.NoError(rt, err)
			if len(ranges) > 0 && ranges[0].From == at {
				show(ledger.Offset(rapid.IntRange(int(at), int(ranges[0].To)).Draw(rt, "to")))
				if rapid.IntRange(0, 3).Draw(rt, "compare") == 0 {
					require.Empty(rt, d.differences(l.store))
				}
			}
		}
		show(h.Updates[len(h.Updates)-1].Offset)
		require.Equal(rt, want, result())
		require.Empty(rt, d.differences(l.store))
	})
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
