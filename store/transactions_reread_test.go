package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

func (h *testHistory) reread() {
	h.t.Helper()
	h.moved(h.l.RereadHistory(h.t.Context(), h.at))
	require.True(h.t, h.at.Rereading)
	require.Empty(h.t, h.at.Window)
	require.Equal(h.t, "none", h.checkpoint())
	require.Equal(h.t, "0", h.row("SELECT count(*) FROM indexer.history_sightings"))
}

// finish ends the reread and tells how many records were not met again.
func (h *testHistory) finish() int64 {
	h.t.Helper()
	at, gone, err := h.l.FinishReread(h.t.Context(), h.at)
	h.moved(at, err)
	require.False(h.t, h.at.Rereading)
	require.Equal(h.t, "0", h.row("SELECT count(*) FROM indexer.history_sightings"))
	require.Len(h.t, h.gone(), int(gone))
	return gone
}

// What is stored already is kept once, what is missing is added behind it, and nothing that is stored changes.
func TestRereadInAnotherOrder(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c", "d")
	h.reread()
	h.append("d", "x", "b")
	require.Equal(t, "4:d* 5:x* 2:b*", h.window())
	require.Equal(t, "b", h.checkpoint())
	h.append("y", "a")
	require.Equal(t, "4:d* 5:x* 2:b* 6:y* 1:a*", h.window())
	require.EqualValues(t, 1, h.finish(), "c was not met again")
	require.Equal(t, []string{"1:a", "2:b", "3:c", "4:d", "5:x", "6:y"}, h.stored())
	require.Equal(t, "4:d* 5:x* 2:b* 6:y* 1:a*", h.window())
	require.Equal(t, "a", h.checkpoint())

	h.append("a") // not reading again any more: another one
	require.Equal(t, []string{"1:a", "2:b", "3:c", "4:d", "5:x", "6:y", "7:a"}, h.stored())
	require.Equal(t, "y", h.checkpoint())
}

// The same record again and again is kept as often as it is served, or as it was stored, whichever is more; also where the
// ones that are equal lie in different pages. Another content under the same id is another record.
func TestRereadEqualRecords(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "a", "b", "c", "c", "c", "d")
	h.reread()
	h.append("b", "a")
	h.append("a", "a", "c")
	require.Equal(t, "3:b* 1:a 2:a 8:a 4:c*", h.window())
	h.append("c", "b/2", "d/1.0")
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, []string{"1:a", "2:a", "3:b", "4:c", "5:c", "6:c", "7:d", "8:a", "9:b/2"}, h.stored())
	require.Equal(t, "3:b 1:a 2:a 8:a 4:c 5:c 9:b 7:d*", h.window(), "1.0 is 1, and what is stored stays as it was")
}

// A page whose records are all stored moves the position all the same.
func TestRereadOfWhatIsAllStored(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append(numbered("n", 1500)...)
	h.reread()
	for page := range slices.Chunk(numbered("n", 1500), 400) {
		h.append(page...)
	}
	require.Equal(t, "1500", h.row("SELECT count(*) FROM indexer.history_sightings"))
	require.Equal(t, windowLimit, len(h.at.Window), "what came before can't be looked up, so that more is kept")
	require.Zero(t, h.finish())
	require.EqualValues(t, 1500, h.at.LastSeq)
	require.Equal(t, "1500", h.row("SELECT count(*) FROM ledger.transactions"))

	h.append(numbered("m", windowLimit-1)...)
	require.Equal(t, windowLimit, len(h.at.Window))
	h.append("last")
	require.Equal(t, windowSize, len(h.at.Window))
}

// After a reread the order of seq is not the service's, so that no older record is put before the window.
func TestRereadDoesNotLengthenTheWindow(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c", "d")
	h.reread()
	h.append("d", "c")
	require.EqualValues(t, 2, h.finish())
	h.append("d", "c")
	require.Equal(t, "4:d 3:c 5:d 6:c", h.window())
	require.Equal(t, "none", h.checkpoint())
	h.append("e", "e")
	require.Equal(t, "4:d 3:c 5:d 6:c 7:e 8:e", h.window())
}

// Not even one that came while the history was read again: old records stood between the new ones.
func TestRereadKeepsTheWindowThatBeginsWithANewRecord(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append(numbered("n", 300)...)
	h.reread()
	h.append("first")
	h.append(numbered("n", 250)...)
	require.Equal(t, 251, len(h.at.Window))
	require.EqualValues(t, 50, h.finish())
	h.append("last")
	require.Equal(t, 252, len(h.at.Window))
}

// A process that dies in the middle is followed by one that goes on where it was.
func TestRereadGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "b", "c")
	h.reread()
	h.append("b", "x")
	h.restart()
	require.True(t, h.at.Rereading)
	h.append("b", "b", "a")
	require.Equal(t, "2:b 5:x* 3:b 6:b 1:a*", h.window())
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, []string{"1:a", "2:b", "3:b", "4:c", "5:x", "6:b"}, h.stored())
}

// A reread that turns out to need another one starts again from nothing met.
func TestRereadBegunTwice(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	h.reread()
	h.append("b", "c")
	h.reread()
	require.EqualValues(t, 3, h.finish(), "nothing came")
	h.reread()
	h.append("a", "b", "c")
	require.Zero(t, h.finish())
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, h.stored())
}

func TestRereadOfNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.reread()
	require.Zero(t, h.finish())
	h.append("a")
	require.Equal(t, "1:a*", h.window())

	_, _, err := h.l.FinishReread(t.Context(), h.at)
	var bug *ledger.Bug
	require.ErrorAs(t, err, &bug)
	require.Equal(t, "false", h.row("SELECT rereading FROM indexer.history_position"))
}

// A page that the database refuses notes no sighting.
func TestRereadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	h.reread()
	_, err := h.l.AppendTransactions(t.Context(), h.at, recordsOf([]string{"b", "new\x00"}))
	require.Error(t, err)
	require.Equal(t, "0", h.row("SELECT count(*) FROM indexer.history_sightings"))
	h.append("b", "new")
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, []string{"1:a", "2:b", "3:new"}, h.stored())
}

// Whatever is stored, and however it is served again: of each content there are as many records as were stored or
// served, whichever is more, and an event id is unique if one served record has it.
func TestRereadKeepsTheGreaterCount(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	r := rand.New(rand.NewPCG(1, 2))
	some := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%c/%d", 'a'+r.IntN(5), 1+r.IntN(2))
		}
		return list
	}
	count := func(list []string) map[string]int {
		counts := map[string]int{}
		for _, text := range list {
			counts[text]++
		}
		return counts
	}
	pages := func(list []string) {
		for len(list) > 0 {
			n := 1 + r.IntN(len(list))
			h.append(list[:n]...)
			list = list[n:]
		}
	}
	shown := func(served []string) {
		t.Helper()
		ids := map[string]int{}
		for _, text := range served {
			ids[text[:1]]++
		}
		for _, mark := range h.at.Window {
			require.Equal(t, ids[mark.EventID] == 1, mark.Unique, "%s, of which %d are shown", mark.EventID, ids[mark.EventID])
		}
	}
	want := map[string]int{}
	for range 15 {
		before := h.stored()
		served := some(r.IntN(30))
		h.reread()
		pages(served)
		gone := 0
		counts := count(served)
		for text, n := range want {
			gone += max(0, n-counts[text])
		}
		for text, n := range counts {
			want[text] = max(want[text], n)
		}
		shown(served)
		require.EqualValues(t, gone, h.finish())
		shown(served)
		require.Equal(t, before, h.stored()[:len(before)], "what was stored changed")
		more := some(r.IntN(5))
		pages(more)
		shown(append(served, more...))
		for _, text := range more {
			want[text]++
		}
		stored := h.rows("SELECT x.event_id || '/' || t.amount FROM ledger.transactions x JOIN ledger.taps t USING (seq)")
		require.Equal(t, want, count(stored))
	}
}
