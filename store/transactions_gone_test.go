package store

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// gone lists the records that analysts see as gone, by seq.
func (h *testHistory) gone() []string {
	h.t.Helper()
	return h.rows("SELECT seq || ':' || event_id FROM ledger.transactions WHERE gone ORDER BY seq")
}

// restart goes on as another process, which must find the position as this one left it.
func (h *testHistory) restart() {
	h.t.Helper()
	h.l.Close()
	h.l = h.leadTransactions(h.store())
	at, err := h.l.HistoryPosition(h.t.Context())
	require.NoError(h.t, err)
	require.Equal(h.t, h.at, at)
}

// A service that shows every record with another content, under the same event ids, leaves each id unique: what it does
// not show any more does not count.
func TestRereadOfOtherContentsKeepsIDsUnique(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c", "d")
	h.reread()
	h.append("a/2", "b/2")
	require.Equal(t, "5:a* 6:b*", h.window())
	require.Equal(t, "b", h.checkpoint())
	h.restart()
	require.Equal(t, "5:a* 6:b*", h.window())
	h.append("c/2")
	h.append("d/2")
	require.Equal(t, "5:a* 6:b* 7:c* 8:d*", h.window())
	require.Empty(t, h.gone(), "it may come yet")
	require.EqualValues(t, 4, h.finish())
	require.Equal(t, "5:a* 6:b* 7:c* 8:d*", h.window())
	require.Equal(t, "d", h.checkpoint())
	require.Equal(t, []string{"1:a", "2:b", "3:c", "4:d"}, h.gone())
	h.restart()
	require.Equal(t, "5:a* 6:b* 7:c* 8:d*", h.window())

	h.append("e", "b/3")
	require.Equal(t, "5:a* 6:b 7:c* 8:d* 9:e* 10:b", h.window(), "two that it shows have one id")
	require.Equal(t, "e", h.checkpoint())
	require.Equal(t, []string{"1:a", "2:b", "3:c", "4:d"}, h.gone())
}

// While the history is read again, an id counts as often as it was met: what is stored besides may be gone.
func TestRereadCountsWhatItMet(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "b", "c")
	h.reread()
	h.append("b", "c/2")
	require.Equal(t, "2:b* 5:c*", h.window())
	h.append("c")
	require.Equal(t, "2:b* 5:c 4:c", h.window())
	h.append("b")
	h.restart()
	require.Equal(t, "2:b 5:c 4:c 3:b", h.window())
	require.Equal(t, "none", h.checkpoint())
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, "2:b 5:c 4:c 3:b", h.window())
	require.Equal(t, []string{"1:a"}, h.gone())
}

// What is put in front of a window is unique in the same way.
func TestWindowIsLengthenedWithoutRegardToGoneRecords(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append(numbered("n", 300)...)
	h.reread()
	h.append("first")
	require.EqualValues(t, 300, h.finish())
	h.append(numbered("m", windowLimit)...)
	h.append(numbered("n", 300)...)
	require.Equal(t, windowSize, len(h.at.Window))
	require.Equal(t, "n299", h.checkpoint())
	h.append(numbered("n", 300)[100:]...)
	require.Equal(t, "n99", h.checkpoint())
	require.Equal(t, 0, h.at.Cursor())
	require.Equal(t, 401, len(h.at.Window))
	h.restart()
}

// A gone record that is shown again while the history is read again is met: it is not stored twice, and not gone when the
// reading is done. Until then it stays what it was.
func TestGoneRecordIsShownAgain(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c")
	h.reread()
	h.append("a", "c")
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, []string{"2:b"}, h.gone())

	h.reread()
	require.Equal(t, []string{"2:b"}, h.gone())
	h.append("b", "a")
	require.Equal(t, "2:b* 1:a*", h.window())
	require.Equal(t, []string{"2:b"}, h.gone())
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, []string{"3:c"}, h.gone(), "replaced")
	require.Equal(t, []string{"1:a", "2:b", "3:c"}, h.stored())
}

// Of equal records those that are shown stay shown, however early a gone one was stored.
func TestGoneRecordIsMetAfterEqualOnes(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c")
	h.reread()
	h.append("a", "c")
	require.EqualValues(t, 1, h.finish())
	h.append("b") // not reading again: another one
	require.Equal(t, "1:a* 3:c* 4:b*", h.window())
	require.Equal(t, []string{"2:b"}, h.gone())

	h.reread()
	h.append("b", "a", "c")
	require.Equal(t, "4:b* 1:a* 3:c*", h.window())
	require.EqualValues(t, 1, h.finish())
	require.Equal(t, []string{"2:b"}, h.gone())

	h.reread()
	h.append("b", "a", "c", "b")
	require.Equal(t, "4:b 1:a* 3:c* 2:b", h.window())
	require.Zero(t, h.finish())
}

// A reading that was begun anew counts what was not met in the last one, and keeps what was gone before it.
func TestGoneRecordsOfARereadBegunTwice(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b", "c")
	h.reread()
	h.append("a", "b")
	require.EqualValues(t, 1, h.finish())
	h.reread()
	h.append("c")
	h.reread()
	require.Equal(t, []string{"3:c"}, h.gone())
	h.append("b")
	require.EqualValues(t, 2, h.finish())
	require.Equal(t, []string{"1:a", "3:c"}, h.gone())
}

func TestMetTransactions(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	all := []string{"a", "b", "c", "d", "a"}
	tells := func(met ...string) {
		t.Helper()
		h.metAre(all, met)
	}
	tells()
	h.append("a", "b", "b")
	tells("a", "b")
	h.reread()
	tells()
	h.append("b", "c", "a/2")
	tells("a", "b", "c")
	h.reread()
	tells()
	h.append("b")
	tells("b")
	require.EqualValues(t, 4, h.finish())
	tells("a", "b", "c")
	has, err := h.l.HasTransactions(t.Context(), all)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"a": true, "b": true, "c": true, "d": false}, has, "gone ones too")

	none, err := h.l.MetTransactions(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// A dump holds every table until it ends. The history is read on beside it, and the dump is of one moment.
func TestRereadBesideADump(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.append("a", "b")
	h.reread()
	h.append("b", "c")
	dump, err := h.connect().BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	require.NoError(t, err)
	defer func() { _ = dump.Rollback(context.WithoutCancel(t.Context())) }()
	dumped := func() (sightings, gone int) {
		require.NoError(t, dump.QueryRow(t.Context(), "SELECT count(*) FROM indexer.history_sightings").Scan(&sightings))
		require.NoError(t, dump.QueryRow(t.Context(), "SELECT count(*) FROM ledger.transactions WHERE gone").Scan(&gone))
		return sightings, gone
	}
	sightings, gone := dumped()
	require.Equal(t, []int{2, 0}, []int{sightings, gone})
	require.EqualValues(t, 1, h.finish())
	h.reread()
	h.append("c")
	require.EqualValues(t, 2, h.finish())
	sightings, gone = dumped()
	require.Equal(t, []int{2, 0}, []int{sightings, gone})
}

// Writers compile no plans, and the history's keeps none.
func TestWriterSessions(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for role, cache := range map[Role]string{RoleUpdates: "auto", RoleTransactions: "force_custom_plan"} {
		var jit, plans string
		l := d.lead(d.store(), role)
		require.NoError(t, l.pool.QueryRow(t.Context(), "SELECT current_setting('jit'), current_setting('plan_cache_mode')").Scan(&jit, &plans))
		require.Equal(t, "off", jit, role)
		require.Equal(t, cache, plans, role)
	}
}
