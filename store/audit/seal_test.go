package audit

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
	"ledgerindexer/store/internal/writing"
)

// windows lists what is sealed of the updates.
func (d *testDB) windows() []string {
	d.T.Helper()
	return d.Rows("SELECT from_exclusive, to_inclusive, result, differences, repaired_at IS NOT NULL, coalesce(repaired_at > verified_at, false) FROM ledger.verifications WHERE stream = 'updates' ORDER BY 1")
}

func (d *testDB) verifiedOffset() string {
	d.T.Helper()
	return d.Row("SELECT ledger.verified_offset()")
}

// damaged is what CompareSeals finds.
func (d *testDB) damaged(s *opened) (list []string) {
	d.T.Helper()
	var done, of int64
	err := s.CompareSeals(d.T.Context(), func(n, total int64) { done, of = n, total }, func(found Difference) {
		require.True(d.T, found.Derived)
		require.Equal(d.T, "verifications", found.Relation)
		list = append(list, string(found.Kind)+" "+found.Row+" "+found.Column)
	})
	require.NoError(d.T, err)
	require.Equal(d.T, d.Row("SELECT count(*) FROM indexer.verifications"), d.Row("SELECT $1::bigint", of))
	require.Equal(d.T, of, done)
	return list
}

// sealedUpdates is a database with ten updates, a leader, and the pages that they came in; sealed are the windows that
// are sealed as equal.
func sealedUpdates(t *testing.T, sealed ...[2]ledger.Offset) (*testDB, *updatesWriter, func(from, to ledger.Offset) ledger.Page) {
	t.Helper()
	d := newDatabase(t)
	l := d.started()
	var all []ledger.Update
	for at := ledger.Offset(1); at <= 10; at++ {
		page := storetest.OneCreation(at-1, at)
		require.NoError(t, l.Append(t.Context(), storetest.Scope, page))
		all = append(all, page[0].Updates...)
	}
	page := func(from, to ledger.Offset) ledger.Page {
		return ledger.Page{From: from, To: to, Updates: slices.DeleteFunc(slices.Clone(all), func(u ledger.Update) bool { return u.Offset <= from || u.Offset > to })}
	}
	for _, w := range sealed {
		c, err := l.SealUpdates(t.Context(), page(w[0], w[1]))
		require.NoError(t, err)
		require.Zero(t, c)
	}
	return d, l, page
}

// What is compared is sealed with what came of it, and a window can be compared again.
func TestSealUpdates(t *testing.T) {
	t.Parallel()
	d, l, page := sealedUpdates(t, [2]ledger.Offset{0, 4})
	require.Equal(t, []string{"0 4 equal 0 false false"}, d.windows())
	require.Equal(t, "4", d.verifiedOffset())
	require.Empty(t, d.damaged(l.store))

	d.Exec("UPDATE indexer.created SET payload = '{}', acs_delta = false WHERE ledger_offset = 6")
	d.Exec("DELETE FROM indexer.updates WHERE ledger_offset = 7")
	c, err := l.SealUpdates(t.Context(), page(4, 8))
	require.NoError(t, err)
	require.EqualValues(t, 3, c.Differences)
	require.Len(t, c.First, 3)
	_, err = l.SealUpdates(t.Context(), page(8, 10))
	require.NoError(t, err)
	require.Equal(t, []string{"0 4 equal 0 false false", "4 8 different 3 false false", "8 10 equal 0 false false"}, d.windows())
	require.Equal(t, "4", d.verifiedOffset())
	require.Equal(t, []string{"altered stream updates, from_exclusive 4, to_inclusive 8 result"}, d.damaged(l.store))

	// Compared again after it was put right.
	d.Exec(`UPDATE indexer.created SET payload = '{"amount": "1.0"}', acs_delta = true WHERE ledger_offset = 6`)
	d.Exec(`INSERT INTO indexer.updates (ledger_offset, update_id, kind, synchronizer_ref, record_time, seen_by_ref)
		SELECT 7, 'update-7', kind, synchronizer_ref, record_time, seen_by_ref FROM indexer.updates WHERE ledger_offset = 8`)
	c, err = l.SealUpdates(t.Context(), page(4, 8))
	require.NoError(t, err)
	require.Empty(t, c.First)
	require.Equal(t, []string{"0 4 equal 0 false false", "4 8 equal 0 false false", "8 10 equal 0 false false"}, d.windows())
	require.Equal(t, "10", d.verifiedOffset())
	require.Empty(t, d.damaged(l.store))

	_, err = l.SealUpdates(t.Context(), page(3, 5))
	require.True(t, pg.HasCode(err, pg.ExclusionViolation), "windows do not overlap")
	_, err = l.SealUpdates(t.Context(), ledger.Page{From: 10, To: 11})
	require.ErrorIs(t, err, store.ErrWatermarkMoved, "nothing is stored there yet")
	d.Exec("UPDATE indexer.leadership SET epoch = epoch + 1 WHERE lease = 'updates'")
	_, err = l.SealUpdates(t.Context(), page(8, 10))
	require.ErrorIs(t, err, store.ErrNotLeader)
}

// Whatever was changed since is found and named, in rows as in the list of windows itself.
func TestCompareSeals(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "compares and repairs again and again")
	const first, second = "stream updates, from_exclusive 0, to_inclusive 4", "stream updates, from_exclusive 4, to_inclusive 8"
	for name, c := range map[string]struct {
		damage string
		want   []string
	}{
		"nothing":                   {"SELECT 1", nil},
		"outside of windows":        {"DELETE FROM indexer.created WHERE ledger_offset = 9", nil},
		"a window that is gone":     {"DELETE FROM indexer.verifications WHERE from_exclusive = 0", []string{"missing " + first + " "}},
		"a window's result":         {"UPDATE indexer.verifications SET result = 'not_shown' WHERE from_exclusive = 0", []string{"altered " + first + " digest"}},
		"a window's digest":         {"UPDATE indexer.verifications SET digest = sha256('') WHERE from_exclusive = 4", []string{"altered " + second + " digest"}},
		"a window's end":            {"UPDATE indexer.verifications SET to_inclusive = 9 WHERE from_exclusive = 4", []string{"altered stream updates, from_exclusive 4, to_inclusive 9 digest"}},
		"a window said to differ":   {"UPDATE indexer.verifications SET result = 'different', differences = 1 WHERE from_exclusive = 4", []string{"altered " + second + " result"}},
		"a window's beginning":      {"UPDATE indexer.verifications SET from_exclusive = 5 WHERE from_exclusive = 4", []string{"missing stream updates, from_exclusive 4, to_inclusive 5 ", "altered stream updates, from_exclusive 5, to_inclusive 8 digest"}},
		"a window of a source gone": {"UPDATE indexer.verifications SET stream = 'transactions' WHERE from_exclusive = 4", []string{"missing stream transactions, from_exclusive 0, to_inclusive 4 ", "altered stream transactions, from_exclusive 4, to_inclusive 8 digest"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, l, _ := sealedUpdates(t, [2]ledger.Offset{0, 4}, [2]ledger.Offset{4, 8})
			d.Exec(c.damage)
			require.Equal(t, c.want, d.damaged(l.store))
		})
	}
}

// The windows that follow one another from the floor on, and were equal, say how far everything was verified.
func TestVerifiedOffset(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := newDatabase(t)
	require.Equal(t, "<nil> <nil>", d.Row("SELECT ledger.verified_offset(), ledger.verified_seq()"))
	d.Exec("INSERT INTO indexer.checkpoints (stream, ledger_offset) VALUES ('updates', 100)")
	d.Exec("INSERT INTO indexer.floors (stream, history_floor) VALUES ('updates', 20)")
	d.Exec("UPDATE indexer.transactions_position SET revision = 1")
	require.Equal(t, "20 0", d.Row("SELECT ledger.verified_offset(), ledger.verified_seq()"))
	set := func(stream string, from, to int64, result string) {
		t.Helper()
		d.Exec(`INSERT INTO indexer.verifications (stream, from_exclusive, to_inclusive, verified_at, result, differences, digest)
			VALUES ($1, $2, $3, now(), $4, CASE $4 WHEN 'different' THEN 1 ELSE 0 END, sha256(''))
			ON CONFLICT (stream, from_exclusive) DO UPDATE SET result = excluded.result, differences = excluded.differences`, stream, from, to, result)
	}
	for _, step := range []struct {
		from, to int64
		result   string
		want     string
	}{
		{40, 50, "equal", "20"}, // a hole before it
		{20, 30, "equal", "30"},
		{30, 40, "different", "30"},
		{30, 40, "not_shown", "30"},
		{30, 40, "equal", "50"},
		{60, 70, "equal", "50"},
		{50, 60, "equal", "70"},
		{20, 30, "different", "20"},
		{20, 30, "equal", "70"},
		{70, 200, "equal", "100"}, // no further than the watermark
	} {
		set("updates", step.from, step.to, step.result)
		require.Equal(t, step.want, d.verifiedOffset(), "%v", step)
	}
	set("snapshot", 0, 20, "different")
	set("transactions", 0, 7, "equal")
	set("transactions", 7, 9, "equal")
	require.Equal(t, "100 9", d.Row("SELECT ledger.verified_offset(), ledger.verified_seq()"))
	d.Exec("UPDATE indexer.floors SET history_floor = 25")
	require.Equal(t, "100", d.verifiedOffset(), "a floor within a window")
	d.Exec("UPDATE indexer.floors SET history_floor = 10")
	require.Equal(t, "10", d.verifiedOffset(), "nothing was verified from there on")
}

// What is sealed next continues behind the last window, closes holes, and begins with what was repaired or differed.
func TestNextWindow(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d, l, page := sealedUpdates(t)
	next := func(size, again int64) *Window {
		t.Helper()
		w, err := l.store.NextWindow(t.Context(), tables.StreamUpdates, size, again, 0)
		require.NoError(t, err)
		return w
	}
	seal := func(from, to ledger.Offset) {
		t.Helper()
		_, err := l.SealUpdates(t.Context(), page(from, to))
		require.NoError(t, err)
	}
	require.Equal(t, &Window{From: 0, To: 3, Full: true}, next(3, 0))
	require.Equal(t, &Window{From: 0, To: 10}, next(11, 0))
	require.Equal(t, &Window{From: 0, To: 10, Full: true}, next(10, 0))
	seal(0, 3)
	require.Equal(t, &Window{From: 3, To: 6, Full: true}, next(3, 0))
	seal(5, 7)
	require.Equal(t, &Window{From: 3, To: 5, Full: true}, next(3, 0), "a hole")
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset IN (4, 9)")
	seal(3, 5)
	seal(7, 9)
	require.Equal(t, &Window{From: 3, To: 5, Full: true, Again: true}, next(3, 0))
	require.Equal(t, &Window{From: 7, To: 9, Full: true, Again: true}, next(3, 4))
	require.Equal(t, &Window{From: 9, To: 10}, next(3, 8))
	d.Exec("UPDATE indexer.verifications SET repaired_at = now() + interval '1 second' WHERE from_exclusive = 0")
	require.Equal(t, &Window{From: 0, To: 3, Full: true, Again: true}, next(3, 8))
	seal(9, 10)
	d.Exec("UPDATE indexer.verifications SET repaired_at = NULL")
	require.Nil(t, next(3, 8))
	d.Exec("DELETE FROM indexer.verifications WHERE from_exclusive IN (3, 9)")
	for known, want := range map[int64]*Window{5: {From: 9, To: 10}, 7: {From: 9, To: 10}, 9: {From: 3, To: 5, Full: true}, 0: {From: 3, To: 5, Full: true}} {
		w, err := l.store.NextWindow(t.Context(), tables.StreamUpdates, 3, 8, known)
		require.NoError(t, err)
		require.Equal(t, want, w, "no hole is looked for before %d, if a window begins there", known)
	}

	transactions := d.leadTransactions(d.store())
	none, err := l.store.NextWindow(t.Context(), tables.StreamTransactions, 2, 0, 0)
	require.NoError(t, err)
	require.Nil(t, none)
	records := storetest.EveryTransaction(t)
	_, err = transactions.AppendTransactions(t.Context(), ledger.TransactionsPosition{}, nil, records)
	require.NoError(t, err)
	w, err := l.store.NextWindow(t.Context(), tables.StreamTransactions, 2, 0, 0)
	require.NoError(t, err)
	require.Equal(t, &Window{From: 0, To: 2, Full: true}, w)
	c, err := transactions.SealRecords(t.Context(), 0, records[:2])
	require.NoError(t, err)
	require.Empty(t, c.First)
	w, err = l.store.NextWindow(t.Context(), tables.StreamTransactions, 1000, 0, 0)
	require.NoError(t, err)
	require.Equal(t, &Window{From: 2, To: int64(len(records))}, w)
	require.Equal(t, "2", d.Row("SELECT ledger.verified_seq()"))
	d.Exec("UPDATE indexer.transactions SET transaction_type = transaction_type || 1 WHERE seq > 2")
	c, err = transactions.SealRecords(t.Context(), 2, records[2:])
	require.NoError(t, err)
	require.NotZero(t, c.Differences)
	require.Equal(t, "2", d.Row("SELECT ledger.verified_seq()"))
}

// What is not shown any more is sealed as it is; what differed before stays different.
func TestSealNotShown(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d, l, page := sealedUpdates(t)
	ctx := t.Context()
	require.NoError(t, l.SealUnseen(ctx, tables.StreamUpdates, 0, 4, SealNotShown))
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 5")
	_, err := l.SealUpdates(ctx, page(4, 8))
	require.NoError(t, err)
	require.NoError(t, l.SealUnseen(ctx, tables.StreamUpdates, 4, 8, SealNotShown))
	require.Equal(t, []string{"0 4 not_shown 0 false false", "4 8 different 1 false false"}, d.windows())
	require.Equal(t, "0", d.verifiedOffset())
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 2")
	require.Equal(t, "altered stream updates, from_exclusive 0, to_inclusive 4 digest", d.damaged(l.store)[0])
}

// A repair seals what it wrote as a whole, and leaves alone what nobody looked at.
func TestReseal(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "alters columns and rows one after the other, and compares each time")
	d, l, page := sealedUpdates(t, [2]ledger.Offset{0, 4})
	ctx := t.Context()
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset IN (2, 6, 9)")
	for _, w := range [][2]ledger.Offset{{4, 8}, {8, 10}} {
		_, err := l.SealUpdates(ctx, page(w[0], w[1]))
		require.NoError(t, err)
	}
	repairer, ok, err := LeadRepair(ctx, l.store.Store)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	require.NoError(t, repairer.RepairUpdates(ctx, storetest.Scope, page(3, 9)))
	require.Equal(t, []string{"0 4 equal 0 true true", "4 8 equal 0 true false", "8 10 different 1 true true"}, d.windows())
	require.Equal(t, []string{"altered stream updates, from_exclusive 0, to_inclusive 4 digest", "altered stream updates, from_exclusive 8, to_inclusive 10 result"},
		d.damaged(l.store), "what was lost at offset 2 is not vouched for")

	l.Close() // a repair may begin a new term
	l = d.leadUpdates(d.store())
	for _, want := range [][2]ledger.Offset{{0, 4}, {8, 10}} { // as the daemon does
		w, err := l.store.NextWindow(ctx, tables.StreamUpdates, 1000, 1000, 0)
		require.NoError(t, err)
		require.Equal(t, &Window{From: int64(want[0]), To: int64(want[1]), Full: true, Again: true}, w)
		_, err = l.SealUpdates(ctx, page(want[0], want[1]))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"0 4 different 1 true false", "4 8 equal 0 true false", "8 10 equal 0 true false"}, d.windows())
	require.NoError(t, repairer.RepairUpdates(ctx, storetest.Scope, page(0, 10)))
	require.Equal(t, "10", d.verifiedOffset())
	require.Empty(t, d.damaged(l.store))
}

// What was repaired is compared again, once, also where the clock was set back since it was sealed, or repaired.
func TestRepairsWhereTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	d, l, page := sealedUpdates(t, [2]ledger.Offset{0, 4})
	d.Exec("UPDATE indexer.verifications SET verified_at = verified_at + interval '1 day'")
	d.Exec("DELETE FROM indexer.created WHERE ledger_offset = 2")
	repairer, ok, err := LeadRepair(t.Context(), l.store.Store)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	require.NoError(t, repairer.RepairUpdates(t.Context(), storetest.Scope, page(1, 3)))
	require.Equal(t, []string{"0 4 equal 0 true true"}, d.windows())
	l.Close()
	l = d.leadUpdates(d.store())
	_, err = l.SealUpdates(t.Context(), page(0, 4))
	require.NoError(t, err)
	require.Equal(t, []string{"0 4 equal 0 true false"}, d.windows())
	require.Empty(t, d.damaged(l.store))
}

// Whoever seals while a repair is at work seals what the repair has left.
func TestSealWaitsForARepair(t *testing.T) {
	t.Parallel()
	d, l, page := sealedUpdates(t)
	ctx := t.Context()
	d.Exec("UPDATE indexer.created SET payload = '{}' WHERE ledger_offset = 3")
	repairer, ok, err := LeadRepair(ctx, l.store.Store)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	sealed := make(chan error, 1)
	err = repairer.repair(ctx, []store.Lease{store.LeaseUpdates}, func(within context.Context, tx pgx.Tx) error {
		go func() {
			_, err := l.SealUpdates(ctx, page(0, 10))
			sealed <- err
		}()
		d.WaitFor(storetest.Waiting, 1)
		if _, err := tx.Exec(within, `UPDATE indexer.created SET payload = '{"amount": "1.0"}' WHERE ledger_offset = 3`); err != nil {
			return err
		}
		return repairer.repaired(within, tx, tables.StreamUpdates, 2, 3, writing.Repaired)
	})
	require.NoError(t, err)
	require.NoError(t, <-sealed)
	require.Equal(t, []string{"0 10 equal 0 false false"}, d.windows())
	require.Empty(t, d.damaged(l.store))
}

// The rows of a snapshot are sealed if nothing was repaired while they were compared.
func TestSealSnapshot(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d := everythingSealed(t)
	ctx := t.Context()
	s := d.store()
	w, err := s.SnapshotWindow(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, &Window{From: 0, To: 100, Full: true}, w)
	rows, err := s.SnapshotRows(ctx, 100)
	require.NoError(t, err)
	repairer, ok, err := LeadRepair(ctx, s.Store)
	require.NoError(t, err)
	require.True(t, ok)
	defer repairer.Close()
	require.NoError(t, repairer.repair(ctx, []store.Lease{store.LeaseUpdates}, nothingMore))
	ok, err = NewSealer(s.Store, repairer.Leader).SealSnapshot(ctx, 100, rows, Comparison{})
	require.NoError(t, err)
	require.False(t, ok, "something was repaired meanwhile")
	rows, err = s.SnapshotRows(ctx, 100)
	require.NoError(t, err)
	ok, err = NewSealer(s.Store, repairer.Leader).SealSnapshot(ctx, 100, rows, Comparison{})
	require.NoError(t, err)
	require.True(t, ok)
	w, err = s.SnapshotWindow(ctx, 0)
	require.NoError(t, err)
	require.Nil(t, w)
	require.Empty(t, d.damaged(s))
	require.NoError(t, repairer.repair(ctx, []store.Lease{store.LeaseUpdates}, func(ctx context.Context, tx pgx.Tx) error {
		return repairer.repaired(ctx, tx, tables.StreamSnapshot, 0, 100, writing.Repaired)
	}))
	w, err = s.SnapshotWindow(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, &Window{From: 0, To: 100, Full: true, Again: true}, w, "nobody compared the whole")
	d.Exec("DELETE FROM indexer.interface_views WHERE ledger_offset <= 100")
	require.Equal(t, []string{"altered stream snapshot, from_exclusive 0, to_inclusive 100 digest"}, d.damaged(s))
}

// Nobody waits while the rows of a snapshot are read, which may take longer than a transaction may.
func TestNobodyWaitsForTheDigestOfASnapshot(t *testing.T) {
	t.Parallel()
	d := everythingSealed(t)
	ctx := t.Context()
	s := d.store()
	l := NewSealer(s.Store, d.repairs(s).Leader) // the other leases are taken
	reads := d.Connect()
	tx, err := reads.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "LOCK TABLE indexer.created IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	sealed := make(chan error, 1)
	go func() { sealed <- l.SealUnseen(ctx, tables.StreamSnapshot, 0, 100, SealNotShown) }()
	d.WaitFor("SELECT EXISTS (SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database AND d.datname = current_database() WHERE NOT k.granted AND k.relation = 'indexer.created'::regclass)")
	d.Exec("SELECT FROM indexer.leadership WHERE lease = 'repair' FOR UPDATE NOWAIT")
	require.NoError(t, tx.Rollback(ctx))
	require.NoError(t, <-sealed)
	require.Equal(t, "snapshot not_shown", d.Row("SELECT stream, result FROM ledger.verifications"))
}

// What was pruned, or is being read again, between choosing a window and sealing it is not sealed.
func TestWhatIsGoneIsNotSealed(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	d, l, page := sealedUpdates(t)
	back := d.leadPruning(l.store)
	require.NoError(t, back.Prune(t.Context(), 5))
	back.Close()
	for _, w := range [][2]int64{{0, 4}, {2, 8}, {8, 11}} {
		require.ErrorIs(t, l.SealUnseen(t.Context(), tables.StreamUpdates, w[0], w[1], SealNotShown), store.ErrWatermarkMoved, "%v", w)
	}
	_, err := l.SealUpdates(t.Context(), page(2, 8))
	require.ErrorIs(t, err, store.ErrWatermarkMoved)
	require.Empty(t, d.windows())
	require.NoError(t, l.SealUnseen(t.Context(), tables.StreamUpdates, 5, 10, SealNotShown))

	h, records := storedPage(t)
	_, err = h.l.SealRecords(t.Context(), 0, records)
	require.NoError(t, err)
	h.moved(h.l.ClearTransactions(t.Context(), h.at))
	_, err = h.l.SealRecords(t.Context(), 0, records)
	require.ErrorIs(t, err, store.ErrPositionMoved)
	h.moved(h.l.AppendTransactions(t.Context(), h.at, nil, records))
	_, err = h.l.SealRecords(t.Context(), 0, records)
	require.ErrorIs(t, err, store.ErrPositionMoved)
	h.moved(h.l.CompleteTransactions(t.Context(), h.at))
	require.ErrorIs(t, h.l.SealUnseen(t.Context(), tables.StreamTransactions, 0, h.at.LastSeq+1, SealNotShown), store.ErrPositionMoved)
	require.Empty(t, h.Rows("SELECT from_exclusive FROM ledger.verifications"))
	_, err = h.l.SealRecords(t.Context(), 0, records)
	require.NoError(t, err)
}
