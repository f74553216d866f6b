package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/sandbox"
	"ledgerindexer/scan"
	"ledgerindexer/store/internal/storetest"
	"ledgerindexer/store/internal/tables"
)

// stepped seals step by step, so that no time passes.
type stepped struct {
	*SealTask
	d    *storetest.DB
	told []SealedWindow
	log  bytes.Buffer
}

func newStepped(d *storetest.DB) *stepped {
	s := &stepped{d: d}
	s.SealTask = &SealTask{Rate: 1_000_000, Window: 20, Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
		Sealed: func(sealing SealedWindow) { s.told = append(s.told, sealing) }}
	return s
}

// sealing seals what a database has of a participant's updates.
func (r *reread) sealing() *stepped {
	s := newStepped(r.DB)
	s.AddUpdates(&r.shown, r.leader.Sealer)
	return s
}

// all steps until nothing is to be sealed, and lists the windows of a stream that are sealed then.
func (s *stepped) all(stream string) []string {
	s.d.T.Helper()
	for again := true; again; {
		var err error
		again, err = s.step(s.d.T.Context(), false)
		require.NoError(s.d.T, err)
	}
	return s.windows(stream)
}

func (s *stepped) windows(stream string) []string {
	return s.d.Rows("SELECT from_exclusive || '-' || to_inclusive || ' ' || result FROM ledger.verifications WHERE stream = $1 ORDER BY from_exclusive", stream)
}

// waited is as if there had been nothing to do for as long as a rest, or what could not be sealed, waits.
func (s *stepped) waited() {
	for _, stream := range s.streams {
		m := stream.memory()
		m.shortAt, m.waitTill = m.shortAt.Add(-longestOpen), m.waitTill.Add(-longestOpen)
	}
}

// Full windows are sealed at once, and the rest of the first look too; later a rest waits until it is ten minutes that
// there was one, or nothing follows any more.
func TestARestWaits(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	s := r.sealing()
	require.Equal(t, []string{"10-30 equal", "30-50 equal", "50-70 equal", "70-90 equal", "90-100 equal"}, s.all("updates"))
	grow := func(from, to ledger.Offset) {
		require.NoError(t, r.leader.Append(t.Context(), storetest.Scope, []ledger.Page{pageUpTo(from, to)}))
	}
	grow(100, 103)
	require.Len(t, s.all("updates"), 5, "too few, too soon")
	grow(103, 125)
	require.Equal(t, []string{"100-120 equal"}, s.all("updates")[5:], "full")
	s.waited()
	require.Equal(t, []string{"100-120 equal", "120-125 equal"}, s.all("updates")[5:])
	grow(125, 127)
	require.Len(t, s.all("updates"), 7)
	more, err := s.step(t.Context(), true)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, []string{"125-127 equal"}, s.windows("updates")[7:])
}

// No more is read per second than it may.
func TestTheRateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := SealTask{Rate: 100}
		began, read := time.Now(), 0
		for time.Since(began) < time.Minute {
			s.wait(t.Context())
			s.spent(200)
			read += 200
			require.LessOrEqual(t, read, 100*int(time.Since(began)/time.Second)+200)
		}
		require.Greater(t, read, 5900)
	})
}

// A window of large updates ends sooner, and the next one begins there. Where one answer has all updates of a window,
// the next windows have fewer, so that their answers are smaller.
func TestLargeUpdatesMakeSmallWindows(t *testing.T) {
	t.Parallel()
	for pageSize, want := range map[ledger.Offset][]string{
		8:   {"10-26 equal", "26-42 equal", "42-58 equal", "58-74 equal", "74-90 equal", "90-100 equal"},
		200: {"10-50 equal", "50-66 equal", "66-82 equal", "82-98 equal", "98-100 equal"},
	} {
		t.Run(fmt.Sprint(pageSize), func(t *testing.T) {
			t.Parallel()
			r := newReread(t)
			r.pageSize, r.bytes = pageSize, sealBytes/16
			s := r.sealing()
			s.Window = 40
			require.Equal(t, want, s.all("updates"))
		})
	}
}

// Whatever fails: it is tried again, and the windows are those that would have been. What differs is compared once when
// it is sealed, and once more by the next who seals.
func TestWhatDiffersIsComparedOnceMore(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.damage("UPDATE indexer.created SET payload = '{}' WHERE ledger_offset IN (15, 95)")
	r.failures = 2
	s := r.sealing()
	for range 2 {
		_, err := s.step(t.Context(), false)
		require.ErrorContains(t, err, "a moment's trouble")
	}
	require.Equal(t, []string{"10-30 different", "30-50 equal", "50-70 equal", "70-90 equal", "90-100 different"}, s.all("updates"))
	require.Equal(t, 2, strings.Count(s.log.String(), "what is stored differs"))
	r.Exec(`UPDATE indexer.created SET payload = '{"amount": "1.0"}' WHERE ledger_offset = 15`)
	again := r.sealing()
	require.Equal(t, []string{"10-30 equal", "30-50 equal", "50-70 equal", "70-90 equal", "90-100 different"}, again.all("updates"))
	require.Len(t, again.told, 2, "the others stay as they are")
	r.Exec("UPDATE indexer.verifications SET repaired_at = clock_timestamp() WHERE from_exclusive = 30")
	again.all("updates")
	require.Len(t, again.told, 3)
}

// A window of an earlier scope is compared again like any other. One that can't be read any more leaves what was never
// compared its turn.
func TestWindowsOfAnEarlierScopeAreComparedAgain(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	r.sealing().all("updates")
	r.Exec("UPDATE indexer.coverage SET scope = 'earlier', to_inclusive = 60")
	r.Exec("INSERT INTO indexer.coverage VALUES ('updates', $1, 60, 100)", storetest.Scope.Hash())
	r.Exec("UPDATE indexer.floors SET changed_to = $1", storetest.Scope.Hash())
	r.Exec("UPDATE indexer.verifications SET repaired_at = clock_timestamp() WHERE from_exclusive = 30")
	s := r.sealing()
	s.all("updates")
	require.Len(t, s.told, 1)

	r.Exec("UPDATE indexer.verifications SET repaired_at = clock_timestamp() WHERE from_exclusive = 30")
	r.Exec("DELETE FROM indexer.verifications WHERE from_exclusive = 70")
	s = newStepped(r.DB)
	s.AddUpdates(forbidden{&r.shown}, r.leader.Sealer)
	s.all("updates")
	require.Len(t, s.told, 1)
	require.EqualValues(t, 70, s.told[0].From)
	require.Equal(t, 1, strings.Count(s.log.String(), "can't be read again"))
}

// forbidden does not show what comes before offset 60.
type forbidden struct{ *shown }

func (u forbidden) ReadUpdates(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if after < 60 {
		return ledger.Page{}, &ledger.Problem{What: "the token lacks a right"}
	}
	return u.shown.ReadUpdates(ctx, after, to)
}

// What the participant has pruned is sealed as it is up to there, and said once. A window that is compared again stays
// one.
func TestPrunedWindowsAreSealedUpToThere(t *testing.T) {
	t.Parallel()
	r := newReread(t)
	s := r.sealing()
	_, err := s.step(t.Context(), false) // the snapshot's turn, and that of the updates
	require.NoError(t, err)
	require.Equal(t, []string{"10-30 equal"}, s.windows("updates"))
	r.Exec("UPDATE indexer.verifications SET repaired_at = clock_timestamp()")
	r.pruned = 55
	require.Equal(t, []string{"10-30 not_shown", "30-50 not_shown", "50-55 not_shown", "55-75 equal", "75-95 equal", "95-100 equal"}, s.all("updates"))
	require.Equal(t, 1, strings.Count(s.log.String(), "does not show any more"))
}

// The snapshot has the first turn, and takes turns with the updates; one that is refused, or repaired meanwhile, does
// not hold them up.
func TestTheSnapshotHasTheFirstTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*reread)
		want   []string
		later  []string // after it was tried again
	}{
		"equal":     {func(*reread) {}, []string{"0-20 equal"}, []string{"0-20 equal"}},
		"different": {func(r *reread) { r.damage("UPDATE indexer.created SET payload = '{}' WHERE ledger_offset = 15") }, []string{"0-20 different"}, []string{"0-20 different"}},
		"more":      {func(r *reread) { r.hidden = 17 }, []string{"0-20 different"}, []string{"0-20 different"}},
		"pruned":    {func(r *reread) { r.pruned = 40 }, []string{"0-20 not_shown"}, []string{"0-20 not_shown"}},
		"refused":   {func(r *reread) { r.refusal = noSnapshots }, []string{}, []string{}},
		"repaired meanwhile": {func(r *reread) {
			r.reading = func(ledger.Offset) { // while the updates have their turn
				r.reading = nil
				repairer := r.repairs(r.leader.store)
				defer repairer.Close()
				require.NoError(r.T, repairer.RepairUpdates(r.T.Context(), storetest.Scope, pageUpTo(20, 22)))
			}
		}, []string{}, []string{"0-20 equal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBegun(t)
			r.entries = 4
			c.change(r)
			s := r.sealing()
			require.Equal(t, c.want, s.all(tables.StreamSnapshot))
			require.Len(t, s.windows("updates"), 4)
			if name == "equal" {
				require.Equal(t, tables.StreamUpdates, s.told[0].Stream, "they do not wait for it")
			}
			s.waited()
			require.Equal(t, c.later, s.all(tables.StreamSnapshot))
			require.LessOrEqual(t, strings.Count(s.log.String(), "can't be read again"), 1)
			for _, sealing := range s.told {
				if sealing.Stream == tables.StreamSnapshot && sealing.Result() == SealDifferent {
					require.EqualValues(t, 1, sealing.Differences, "each is counted once")
				}
			}
		})
	}
}

// What was told of a page that failed is told again, and counted once.
func TestAPageOfTheSnapshotThatFailed(t *testing.T) {
	t.Parallel()
	r := newBegun(t)
	r.damage("UPDATE indexer.created SET payload = '{}' WHERE ledger_offset = 15")
	s := r.sealing()
	trouble := errors.New("a moment's trouble")
	fails := func() {
		_, err := s.step(t.Context(), false)
		require.ErrorIs(t, err, trouble)
		s.turn-- // it is the snapshot's again
	}
	r.refusal = trouble
	fails()
	r.refusal = nil
	walk := s.streams[0].(*snapshotSeals).walk
	compare := walk.compare
	walk.compare = func(ctx context.Context, before int64, entries []ledger.ContractEntry, again bool) ([]EntryKey, error) {
		walk.compare = compare
		keys, err := compare(ctx, before, entries, again)
		return keys, errors.Join(err, trouble)
	}
	fails()
	require.Equal(t, []string{"0-20 different"}, s.all(tables.StreamSnapshot))
	of := slices.IndexFunc(s.told, func(sealing SealedWindow) bool { return sealing.Stream == tables.StreamSnapshot })
	require.EqualValues(t, 1, s.told[of].Differences)
}

// hiding is a service that shows nothing of the history for a while.
type hiding struct {
	*scan.Client
	nothing bool
}

func (b *hiding) TransactionsAfter(ctx context.Context, after string) ([]ledger.Record, error) {
	if b.nothing {
		return nil, nil
	}
	return b.Client.TransactionsAfter(ctx, after)
}

// The history is sealed in its order; nothing while it is read again. A service that does not show a window may be
// behind: it is asked again before the window is sealed as not shown.
func TestTheHistoryIsSealedInItsOrder(t *testing.T) {
	t.Parallel()
	h := newServedTransactions(t, 150, sandbox.ScanOptions{})
	records, service := h.all(), &hiding{Client: h.client}
	h.append(records[:9])
	s := newStepped(&storetest.DB{T: t, Conn: h.conn})
	s.Window = 5
	s.AddTransactions(service, NewSealer(h.store, h.leader.Leader))
	h.exec("UPDATE indexer.transactions_position SET rereading = true")
	require.Empty(t, s.all("transactions"))
	h.exec("UPDATE indexer.transactions_position SET rereading = false")
	require.Empty(t, s.all("transactions"), "it is looked at later")
	s.waited()
	require.Equal(t, []string{"0-5 equal", "5-9 equal"}, s.all("transactions"))
	for _, shown := range []bool{true, false} {
		before := s.windows("transactions")
		h.append(records[h.at.LastSeq : h.at.LastSeq+5])
		service.nothing = true
		for range hiddenTries - 1 {
			require.Equal(t, before, s.all("transactions"))
			s.waited()
		}
		service.nothing = !shown
		require.Len(t, s.all("transactions"), len(before)+1)
	}
	require.Equal(t, []string{"9-14 equal", "14-19 not_shown"}, s.windows("transactions")[2:])
}
