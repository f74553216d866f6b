package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
)

// Rule: an update's rows exist if and only if its offset is covered. A batch that breaks in its middle leaves nothing.
func TestUpdateRowsExistIffOffsetCovered(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(0)))
	nothing := func(t *testing.T) {
		t.Helper()
		require.Empty(t, d.Facts(4, 100))
		require.Equal(t, []string{"0 4"}, d.Coverage())
		require.Equal(t, "4", d.Watermark())
		require.Equal(t, "1", d.Row("SELECT count(*) FROM ledger.active_contracts WHERE activated_offset = 1"))
		require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.active_contracts WHERE activated_offset > 4"))
		require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.lifetimes WHERE deactivated_offset > 4"))
	}
	nothing(t)
	all := d.Facts(0, 4)
	stored := strings.Join(all, "\n") + "\n"
	for _, table := range storetest.FactTables {
		require.Contains(t, stored, table+" ", "EveryKind has a row in each fact table")
	}
	for _, rows := range []string{"updates 1 1\nupdates 2 1\nupdates 3 1\nupdates 4 1\n", "created 1 2\ncreated 2 1\n"} {
		require.Contains(t, stored, rows)
	}

	t.Run("a text that no column takes", func(t *testing.T) {
		pages := storetest.EveryKind(4)
		pages[0].Updates[3].Unknown[0].Kind = "in the last COPY: \x00"
		require.ErrorContains(t, l.Append(ctx, storetest.Scope, pages), "unknown_elements")
		nothing(t)
	})
	t.Run("a row twice", func(t *testing.T) {
		pages := storetest.EveryKind(4)
		pages[0].Updates[0].Created[1].NodeID = 0
		require.ErrorContains(t, l.Append(ctx, storetest.Scope, pages), "created")
		nothing(t)
	})
	t.Run("cancelled, and its backend ended, in the middle of COPY", func(t *testing.T) {
		for name, interrupt := range map[string]func(cancel context.CancelFunc, pid string){
			"cancel": func(cancel context.CancelFunc, _ string) { cancel() },
			"end":    func(_ context.CancelFunc, pid string) { d.Exec("SELECT pg_terminate_backend($1::text::int)", pid) },
		} {
			// A lock lets the batch come as far as its last fact table.
			tx := d.Begin("LOCK TABLE indexer.unknown_elements IN SHARE MODE")
			batchCtx, cancel := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() { done <- l.Append(batchCtx, storetest.Scope, storetest.EveryKind(4)) }()
			const waiting = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ILIKE 'copy%unknown_elements%'"
			d.WaitFor("SELECT count(*) = 1 " + waiting)
			interrupt(cancel, d.Row("SELECT pid "+waiting))
			require.Error(t, <-done, name)
			cancel()
			require.NoError(t, tx.Rollback(ctx))
			d.WaitForEnds()
			nothing(t)
		}
	})
	t.Run("an update is never split", func(t *testing.T) {
		for _, page := range []ledger.Page{
			{From: 4, To: 6, Updates: []ledger.Update{storetest.NewUpdate(7, "sync::1")}},                                    // beyond its page
			{From: 4, To: 6, Updates: []ledger.Update{storetest.NewUpdate(4, "sync::1")}},                                    // before it
			{From: 4, To: 6, Updates: []ledger.Update{storetest.NewUpdate(6, "sync::1"), storetest.NewUpdate(5, "sync::1")}}, // not in order
			{From: 4, To: 6, Updates: []ledger.Update{storetest.NewUpdate(5, "sync::1"), storetest.NewUpdate(5, "sync::1")}}, // twice
			{From: 4, To: 4, Updates: []ledger.Update{storetest.NewUpdate(5, "sync::1")}},                                    // nothing covered
			{From: 4, To: 3}, // backwards
		} {
			require.Error(t, l.Append(ctx, storetest.Scope, []ledger.Page{page}), "%+v", page)
			nothing(t)
		}
		require.ErrorContains(t, l.Append(ctx, storetest.Scope, []ledger.Page{{From: 4, To: 6}, {From: 7, To: 8}}), "does not follow")
		nothing(t)
	})
	t.Run("the batch that nothing disturbs leaves all", func(t *testing.T) {
		require.NoError(t, l.Append(ctx, storetest.Scope, storetest.EveryKind(4)))
		require.Equal(t, []string{"0 8"}, d.Coverage())
		require.Equal(t, "8", d.Watermark())
		require.Len(t, d.Facts(4, 8), len(all))
	})
}

// Rule: the watermark never moves back, and moves only by compare-and-swap from the value the writer saw.
func TestWatermarkMovesOnlyForwardByCompareAndSwap(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()

	for at := ledger.Offset(0); at < 30; at += 10 {
		const writers = 3
		var group sync.WaitGroup
		errs := make([]error, writers)
		for i := range writers {
			group.Go(func() { errs[i] = l.Append(ctx, storetest.Scope, storetest.OneCreation(at, at+10)) })
		}
		group.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.True(t, errors.Is(err, ErrCovered) || errors.Is(err, ErrWatermarkMoved), "%v", err)
		}
		require.Equal(t, 1, won)
		require.Equal(t, fmt.Sprint(at+10), d.Watermark())
		require.Equal(t, fmt.Sprint(at/10+1), d.Row("SELECT count(*) FROM indexer.updates"))
	}
	require.Equal(t, []string{"0 30"}, d.Coverage())

	require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(20, 30)), ErrCovered, "again")
	require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(25, 35)), ErrCovered, "overlapping")
	require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(31, 35)), ErrWatermarkMoved, "beyond a gap")
	require.ErrorIs(t, l.Append(ctx, ledger.Scope{}, storetest.OneCreation(20, 30)), ErrCovered, "in another scope")
	d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 29")
	require.ErrorIs(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(30, 35)), ErrWatermarkMoved, "moved behind the writer's back")
	require.Equal(t, "29", d.Watermark())
	require.Equal(t, []string{"0 30"}, d.Coverage())
	require.Equal(t, "3", d.Row("SELECT count(*) FROM indexer.updates"))
}

// In-memory state changes only after the commit: the hooks hear of no batch that failed.
func TestHooksHearOfCommittedBatchesOnly(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	rows := map[string]int{}
	var shown []time.Time
	s := d.open(d.URL, func(c *Config) {
		c.Wrote = func(relation string, n int) { rows[relation] += n }
		c.Shown = func(recordTime time.Time) { shown = append(shown, recordTime.UTC()) }
	})
	l := d.leadUpdates(s)
	require.NoError(t, l.Start(t.Context(), "", storetest.Scope, 0, true))
	bad := storetest.OneCreation(0, 10)
	bad[0].Updates[0].CommandID = new("\x00")
	require.Error(t, l.Append(t.Context(), storetest.Scope, bad))
	require.Empty(t, rows)
	require.Empty(t, shown)
	first, second := storetest.OneCreation(0, 10), storetest.OneCreation(10, 20)
	second[0].Updates[0].RecordTime.Time = second[0].Updates[0].RecordTime.Time.Add(time.Hour)
	require.NoError(t, l.Append(t.Context(), storetest.Scope, first))
	require.Equal(t, map[string]int{"updates": 1, "created": 1}, rows)
	times := []time.Time{first[0].Updates[0].RecordTime.Time.UTC(), second[0].Updates[0].RecordTime.Time.UTC()}
	require.Equal(t, times[:1], shown)
	require.NoError(t, l.WriteAhead(t.Context(), storetest.Scope, second))
	require.Equal(t, times[:1], shown, "it is stored, and not shown")
	require.Equal(t, map[string]int{"updates": 2, "created": 2}, rows)
	require.ErrorIs(t, l.WriteAhead(t.Context(), storetest.Scope, second), ErrCovered)
	require.Equal(t, map[string]int{"updates": 2, "created": 2}, rows)
	require.NoError(t, l.MoveWatermark(t.Context(), storetest.Scope, 10, 20))
	require.Equal(t, times, shown)

	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 20, To: 30}}))
	require.Equal(t, times, shown, "no update has come")
	for upTo, want := range map[ledger.Offset]time.Time{9: {}, 10: times[0], 19: times[0], 30: times[1]} {
		recordTime, err := s.RecordTime(t.Context(), upTo)
		require.NoError(t, err)
		require.True(t, want.Equal(recordTime), upTo)
	}
	unknown := ledger.Update{Offset: 35, Kind: ledger.KindUnknown, Unknown: []ledger.UnknownElement{{Kind: "JsNovelty", Raw: ledger.JSON(`{}`)}}}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 30, To: 40, Updates: []ledger.Update{unknown}}}))
	require.Equal(t, times, shown, "an update without a record time")
	status, err := s.Status(t.Context())
	require.NoError(t, err)
	require.True(t, times[1].Equal(status.RecordTime))
}

func TestCoverageRowsAreMerged(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	const batches = 300
	for at := range ledger.Offset(batches) {
		require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: at, To: at + 1}}))
	}
	require.Equal(t, []string{"0 300"}, d.Coverage())

	t.Run("the view ends at the watermark", func(t *testing.T) {
		d.Exec("INSERT INTO indexer.coverage VALUES ('updates', $1, 300, 310), ('updates', $1, 320, 330)", storetest.Scope.Hash())
		d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 305")
		require.Equal(t, []string{"0 300", "300 305"}, d.Rows("SELECT from_exclusive, to_inclusive FROM ledger.coverage ORDER BY 1"))
		status, err := l.store.Status(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 305, status.Watermark)
		d.Exec("UPDATE indexer.checkpoints SET ledger_offset = 300")
		status, err = l.store.Status(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 310, status.Frontier)
	})
	t.Run("ranges do not overlap", func(t *testing.T) {
		for _, r := range [][2]int64{{299, 301}, {0, 300}, {1, 2}, {309, 311}, {310, 321}, {329, 400}, {0, 1000}} {
			_, err := d.Conn.Exec(t.Context(), "INSERT INTO indexer.coverage VALUES ('updates', 'other', $1, $2)", r[0], r[1])
			require.True(t, pg.HasCode(err, pg.ExclusionViolation, pg.UniqueViolation), "%v: %v", r, err)
		}
		d.Exec("INSERT INTO indexer.coverage VALUES ('updates', 'other', 310, 320)")
	})
}

func TestOffsetCheckpoints(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	checkpoint := func(offset ledger.Offset, time, extra string) ledger.OffsetCheckpoint {
		c := ledger.OffsetCheckpoint{Offset: offset, Times: []ledger.SynchronizerTime{
			{SynchronizerID: "sync::1", RecordTime: storetest.Time(time)}, {SynchronizerID: "sync::2", RecordTime: storetest.Time("2025-01-01T00:00:00Z")},
		}}
		if extra != "" {
			c.Extra = ledger.JSON(extra)
		}
		return c
	}
	write := func(from, to ledger.Offset, checkpoints ...ledger.OffsetCheckpoint) {
		t.Helper()
		require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: from, To: to, Checkpoints: checkpoints}}))
	}
	stored := func() []string {
		return d.Rows("SELECT ledger_offset, synchronizer_id, record_time::text FROM ledger.offset_checkpoints ORDER BY 1, 2")
	}
	const second = "2025-01-01 00:00:00+00"
	write(0, 10, checkpoint(10, "2025-01-01T00:00:01Z", ""))
	require.Equal(t, []string{"10 sync::1 2025-01-01 00:00:01+00", "10 sync::2 " + second}, stored())

	// The same offset again, later, earlier, and twice in a page: no new coverage, the latest time stays.
	write(10, 10, checkpoint(10, "2025-01-01T00:00:03Z", ""), checkpoint(10, "2025-01-01T00:00:02Z", ""))
	require.Equal(t, []string{"10 sync::1 2025-01-01 00:00:03+00", "10 sync::2 " + second}, stored())
	require.Equal(t, []string{"0 10"}, d.Coverage())
	require.Equal(t, "10", d.Watermark())

	// What jsonb and timestamptz can't hold is kept exactly, once, as the latest says.
	const exact = "SELECT convert_from(exact, 'UTF8') FROM ledger.exact_payloads WHERE field LIKE 'checkpoint%sync::1' ORDER BY field"
	write(10, 10, checkpoint(10, "2025-01-01T00:00:04.1234567Z", `{"a":"\u0000"}`))
	write(10, 10, checkpoint(10, "2025-01-01T00:00:05.1234567Z", `{"b":"\u0000"}`))
	write(10, 10, checkpoint(10, "2025-01-01T00:00:04.1234567Z", `{"c":"\u0000"}`))
	require.Equal(t, []string{`{"b":"\u0000"}`, `"2025-01-01T00:00:05.1234567Z"`}, d.Rows(exact))
	write(10, 10, checkpoint(10, "2025-01-01T00:00:06Z", ""))
	require.Empty(t, d.Rows(exact))
}

// An update with very many events is one transaction, and takes time in proportion to their number.
func TestLargeUpdate(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	l := d.started()
	const events = 40_000
	arrive, leave := storetest.NewUpdate(1, "sync::2"), storetest.NewUpdate(2, "sync::2")
	for i := range int32(events) {
		storetest.Assign(&arrive, i, fmt.Sprint("contract-", i), "sync::1", "sync::2", 1)
		storetest.Unassign(&leave, i, fmt.Sprint("contract-", i), "sync::2", "sync::1", 2)
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 0, To: 1, Updates: []ledger.Update{arrive}}}))
	require.Equal(t, fmt.Sprint(events), d.Row("SELECT count(*) FROM ledger.active_contracts"))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{{From: 1, To: 2, Updates: []ledger.Update{leave}}}))
	require.Equal(t, "0", d.Row("SELECT count(*) FROM ledger.active_contracts"))
	require.Equal(t, fmt.Sprint(events), d.Row("SELECT count(*) FROM indexer.lifetimes"))
}

// Names that don't fit into an index are refused like rows: trying again would fail in the same way.
func TestNamesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	random := rand.New(rand.NewPCG(1, 2))
	long := strings.Map(func(rune) rune { return 'a' + random.Int32N(26) }, strings.Repeat("x", 9_000)) // does not compress
	for name, change := range map[string]func(*ledger.Update){
		"template":     func(u *ledger.Update) { u.Created[0].TemplateID = "pkg:Main:" + long },
		"package":      func(u *ledger.Update) { u.Created[0].PackageName = long },
		"synchronizer": func(u *ledger.Update) { u.SynchronizerID = &long },
		"interface": func(u *ledger.Update) {
			u.Created[0].InterfaceViews = []ledger.InterfaceView{{InterfaceID: "pkg:Main:" + long, Value: ledger.JSON("{}")}}
		},
	} {
		pages := storetest.OneCreation(0, 10)
		change(&pages[0].Updates[0])
		storetest.RequireProblem(t, l.Append(t.Context(), storetest.Scope, pages), "the database refuses the rows")
		storetest.RequireProblem(t, l.WriteAhead(t.Context(), storetest.Scope, pages), "the database refuses the rows")
		require.Equal(t, "0", d.Row("SELECT count(*) FROM indexer.updates"), name)
	}
	require.NoError(t, l.Append(t.Context(), storetest.Scope, storetest.OneCreation(0, 10)))

	snapshot := newDatabase(t)
	l = snapshot.leadUpdates(snapshot.store())
	progress, err := l.BeginSnapshot(t.Context(), "", storetest.Scope, 100)
	require.NoError(t, err)
	_, err = l.WriteSnapshotPage(t.Context(), progress, nil, ledger.SnapshotPage{
		Next: storetest.Token("t1"), Entries: []ledger.ContractEntry{storetest.ActiveEntry(1, 0, "a", long, 0)},
	})
	storetest.RequireProblem(t, err, "the database refuses the rows")

	h := newHistory(t)
	record := storetest.Tap("a")
	record.DomainID = &long
	_, err = h.l.AppendTransactions(t.Context(), h.at, nil, []ledger.Record{record})
	storetest.RequireProblem(t, err, "the database refuses the rows")
}
