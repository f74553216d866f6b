package audit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ingest"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
	"ledgerindexer/store/internal/storetest"
)

// twoHistories is what a participant serves and what is stored: words of updates, each "offset:id", maybe with
// "@seconds" of its record time and "/synchronizer".
type twoHistories struct {
	ingest.UpdateSource // what is not asked
	db                  *store.Store
	served, stored      []ledger.UpdateRef
	end                 ledger.Offset // 0: that of the last update
	blind               bool
	pruned              ledger.Offset
	bounds              store.Extent // Watermark 0: that of the last stored update
	ahead               []ledger.Range
	pages               int
	slow                ledger.Offset // behind it nothing comes within openIdle
	live                bool          // there is one more update whenever it is asked for some
}

func history(t *testing.T, text string) (list []ledger.UpdateRef) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		word, synchronizer, _ := strings.Cut(word, "/")
		word, seconds, timed := strings.Cut(word, "@")
		offset, id, ok := strings.Cut(word, ":")
		require.True(t, ok, word)
		u := ledger.UpdateRef{Offset: offsetOf(t, offset), UpdateKey: ledger.UpdateKey{ID: id, SynchronizerID: synchronizer}}
		at := u.Offset
		if timed {
			at = offsetOf(t, seconds)
		}
		u.RecordTime = time.Unix(int64(at), 0).UTC()
		list = append(list, u)
	}
	return list
}

func offsetOf(t *testing.T, text string) (n ledger.Offset) {
	t.Helper()
	for _, digit := range text {
		require.True(t, digit >= '0' && digit <= '9', text)
		n = 10*n + ledger.Offset(digit-'0')
	}
	return n
}

func (h *twoHistories) LedgerEnd(context.Context) (ledger.Offset, error) {
	if h.blind {
		return 0, ledger.ErrNotOffered
	}
	return h.last(), nil
}

func (h *twoHistories) last() ledger.Offset {
	if h.end == 0 && len(h.served) > 0 {
		return h.served[len(h.served)-1].Offset
	}
	return h.end
}

func (h *twoHistories) PrunedOffset(context.Context) (ledger.Offset, error) { return h.pruned, nil }

func (h *twoHistories) ReadUpdates(_ context.Context, after, to ledger.Offset) (ledger.Page, error) {
	if to > h.last() {
		return ledger.Page{}, &ledger.Problem{What: "beyond the end"}
	}
	page := ledger.Page{From: after, To: to}
	for _, u := range h.served {
		if u.Offset <= after || u.Offset > to {
			continue
		}
		if len(page.Updates) == 2 {
			page.To = page.Updates[1].Offset
			break
		}
		page.Updates = append(page.Updates, updateOf(u))
	}
	h.pages++
	return page, nil
}

func (h *twoHistories) TailUpdates(ctx context.Context, after ledger.Offset, _ int, idle time.Duration) (ledger.Page, bool, error) {
	if h.slow > 0 && after >= h.slow && idle <= openIdle {
		return ledger.Page{From: after, To: after}, false, nil
	}
	if h.live {
		h.served = append(h.served, ledger.UpdateRef{Offset: h.last() + 1, UpdateKey: ledger.UpdateKey{RecordTime: time.Now()}})
	}
	if after > h.last() || h.pages > 100 {
		return ledger.Page{}, false, &ledger.Problem{What: "beyond the end"}
	}
	page, err := h.ReadUpdates(ctx, after, h.last())
	if n := len(page.Updates); n > 0 {
		page.To = page.Updates[n-1].Offset
	} else {
		page.To = after
	}
	return page, page.To < h.last(), err
}

// database is one that holds what is stored.
func (h *twoHistories) database(t *testing.T) *store.Store {
	t.Helper()
	if h.db != nil {
		return h.db
	}
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	if h.bounds.Watermark == 0 {
		h.bounds.Watermark = h.stored[len(h.stored)-1].Offset
	}
	require.NoError(t, l.Start(t.Context(), "participant::1", storetest.Scope, h.bounds.HistoryFloor, true))
	require.NoError(t, l.Append(t.Context(), storetest.Scope, h.page(ledger.Range{From: h.bounds.HistoryFloor, To: h.bounds.Watermark})))
	for _, r := range h.ahead {
		require.NoError(t, l.WriteAhead(t.Context(), storetest.Scope, h.page(r)))
	}
	h.db = l.store.Store
	return h.db
}

// page is what is stored of a range.
func (h *twoHistories) page(r ledger.Range) []ledger.Page {
	page := ledger.Page{From: r.From, To: r.To}
	for _, u := range h.stored {
		if u.Offset > r.From && u.Offset <= r.To {
			page.Updates = append(page.Updates, updateOf(u))
		}
	}
	return []ledger.Page{page}
}

func updateOf(u ledger.UpdateRef) ledger.Update {
	update := ledger.Update{Offset: u.Offset, Kind: ledger.KindTransaction, ID: u.ID, RecordTime: ledger.Time{Time: u.RecordTime, Valid: true}}
	if u.SynchronizerID != "" {
		update.SynchronizerID = &u.SynchronizerID
	}
	return update
}

func (h *twoHistories) find(t *testing.T, since ledger.Offset) Divergence {
	t.Helper()
	p, err := FindForkPoint(t.Context(), h, h.database(t), since, func(Progress) {}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return p
}

func TestWhereTheyPart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored, served string
		more           twoHistories
		since          ledger.Offset
		want           Divergence // without Stored, Served and Missing
		first          string     // id of the first update after it: stored, served
	}{
		"nowhere": {
			stored: "1:a 4:b 7:c", served: "1:a 4:b 7:c 9:d",
			want: Divergence{Watermark: 7, Common: 7, Equal: 3},
		},
		"all that follows has other offsets": {
			stored: "1:a 4:b 7:c 8:d", served: "1:a 4:b 9:c@7 12:d@8 14:e",
			want: Divergence{Watermark: 8, Common: 4, Equal: 2, Parted: true, Moved: 2, New: 1}, first: "c c",
		},
		"two synchronizers were received in another order, and the last update is where it was": {
			stored: "1:a 2:b@1/x 3:c@1/y 4:d 5:e", served: "1:a 2:c@1/y 3:b@1/x 4:d 5:e",
			want: Divergence{Watermark: 5, Common: 1, Equal: 1, Parted: true, Moved: 2, Kept: 2}, first: "b c",
		},
		"one lost and one new, so that all others are where they were": {
			stored: "1:a 2:b 3:c", served: "1:a 2:x 3:c",
			want: Divergence{Watermark: 3, Common: 1, Equal: 1, Parted: true, Kept: 1, New: 1, Lost: 1}, first: "b x",
		},
		"the participant has not come so far": {
			stored: "1:a 2:b 3:c 4:d", served: "1:a 2:b",
			want: Divergence{Watermark: 4, Common: 2, Equal: 2, Parted: true, Lost: 2, Later: 2}, first: "c -",
		},
		"some are lost, and some may come yet": {
			stored: "1:a/x 2:b/x 3:c/y 4:d/x 5:e/y", served: "1:a/x 4:d/x",
			want: Divergence{Watermark: 5, Common: 1, Equal: 1, Parted: true, Kept: 1, Lost: 3, Later: 2}, first: "b d",
		},
		"where there was nothing": {
			stored: "1:a 2:b", served: "1:a 2:b 5:x 9:y", more: twoHistories{bounds: store.Extent{Watermark: 7}},
			want: Divergence{Watermark: 7, Common: 2, Equal: 2, Parted: true, New: 2}, first: "- x",
		},
		"the ledger ends below an offset checkpoint": {
			stored: "1:a 2:b", served: "1:a 2:b", more: twoHistories{bounds: store.Extent{Watermark: 7}, end: 3},
			want: Divergence{Watermark: 7, Common: 2, Equal: 2, Parted: true}, first: "- -",
		},
		"the ledger ends below an offset checkpoint, and does not tell": {
			stored: "1:a 2:b", served: "1:a 2:b", more: twoHistories{bounds: store.Extent{Watermark: 7}, end: 3, blind: true},
			want: Divergence{Watermark: 7, Common: 2, Equal: 2, Parted: true}, first: "- -",
		},
		"nowhere, and the server does not report its end": {
			stored: "1:a 4:b 7:c", served: "1:a 4:b 7:c 9:d", more: twoHistories{blind: true},
			want: Divergence{Watermark: 7, Common: 7, Equal: 3},
		},
		"the server does not report its end": {
			stored: "1:a 4:b 7:c", served: "1:a 5:b@4 8:c@7", more: twoHistories{blind: true},
			want: Divergence{Watermark: 7, Common: 1, Equal: 1, Parted: true, Moved: 2}, first: "b b",
		},
		"the same id at another time is another update": {
			stored: "1:a 2:b@5", served: "1:a 2:b@6",
			want: Divergence{Watermark: 2, Common: 1, Equal: 1, Parted: true, New: 1, Lost: 1}, first: "b b",
		},
		"ahead of the watermark, behind what is not stored yet": {
			stored: "1:a 2:b 8:h 9:i", served: "1:a 2:b 5:e 8:h 10:i@9",
			more: twoHistories{bounds: store.Extent{Watermark: 3}, ahead: []ledger.Range{{From: 6, To: 9}}},
			want: Divergence{Watermark: 3, Common: 8, Equal: 3, Parted: true, Moved: 1}, first: "i i",
		},
		"from an offset on, with the update before it": {
			stored: "1:lost 2:b 3:c 4:d", served: "2:b 3:c 5:d@4", since: 3,
			want: Divergence{From: 2, Watermark: 4, Common: 3, Equal: 1, Parted: true, Moved: 1}, first: "d d",
		},
		"from where the participant is pruned": {
			stored: "1:a 2:b 3:c 4:d", served: "3:c 5:d@4", more: twoHistories{pruned: 2},
			want: Divergence{From: 2, Watermark: 4, Common: 3, Equal: 1, Parted: true, Moved: 1}, first: "d d",
		},
		"from the floor": {
			stored: "3:c 4:d", served: "1:a 3:c 5:d@4", more: twoHistories{bounds: store.Extent{HistoryFloor: 2}},
			want: Divergence{From: 2, Watermark: 4, Common: 3, Equal: 1, Parted: true, Moved: 1}, first: "d d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.more
			h.stored, h.served = history(t, c.stored), history(t, c.served)
			got := h.find(t, c.since)
			id := func(u *ledger.UpdateRef) string {
				if u == nil {
					return "-"
				}
				return u.ID
			}
			if c.first != "" {
				require.Equal(t, c.first, id(got.Stored)+" "+id(got.Served))
			}
			require.Len(t, got.Missing, int(got.Lost-got.Later))
			got.Stored, got.Served, got.Missing = nil, nil, nil
			require.Equal(t, c.want, got)
			if got.Parted {
				to, err := got.Target()
				require.NoError(t, err)
				require.Equal(t, min(got.Common, got.Watermark), to)
			}
		})
	}
}

// Where nothing differs no more is read than is stored.
func TestNoMoreIsComparedThanIsStored(t *testing.T) {
	t.Parallel()
	h := twoHistories{stored: history(t, "1:a 2:b"), served: history(t, "1:a 2:b 3:c 4:d 5:e 6:f 7:g")}
	require.False(t, h.find(t, 0).Parted)
	require.Equal(t, 1, h.pages)
}

func TestWhatAResetCanNotCure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored, served string
		more           twoHistories
		since          ledger.Offset
		why            string
	}{
		"another ledger":               {stored: "1:a 2:b", served: "1:x 2:y", why: "none of the updates that are stored"},
		"an empty ledger":              {stored: "1:a 2:b", served: "", why: "none of the updates that are stored"},
		"other offsets from the floor": {stored: "3:c 4:d", served: "4:c 5:d", more: twoHistories{bounds: store.Extent{HistoryFloor: 2}}, why: "first update that is stored after offset 2"},
		"pruned above the divergence":  {stored: "1:a 2:b 3:c 4:d", served: "4:c 5:d", more: twoHistories{pruned: 3}, why: "first update that is stored after offset 3"},
		"since when they had parted":   {stored: "1:a 2:b 3:c 4:d", served: "1:a 3:b 4:c 5:d", since: 3, why: "an earlier --since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.more
			h.stored, h.served = history(t, c.stored), history(t, c.served)
			p := h.find(t, c.since)
			require.True(t, p.Parted)
			_, err := p.Target()
			storetest.RequireProblem(t, err, c.why)
		})
	}
	// From the beginning all can be read again.
	h := twoHistories{stored: history(t, "1:a 2:b"), served: history(t, "2:a@1 4:b@2")}
	p := h.find(t, 0)
	to, err := p.Target()
	require.NoError(t, err)
	require.Zero(t, to)
	require.EqualValues(t, 2, p.Moved)
}

// A server that does not report its end, and is silent for a moment, has not ended: only a longer silence counts.
func TestSilenceIsNotTheEndAtOnce(t *testing.T) {
	t.Parallel()
	const all = "1:a 2:b 3:c 4:d 5:e"
	h := twoHistories{stored: history(t, all), served: history(t, all), blind: true, slow: 2}
	p := h.find(t, 0)
	require.False(t, p.Parted)
	require.EqualValues(t, 5, p.Equal)
	h.served = h.served[:3]
	p = h.find(t, 0)
	require.True(t, p.Parted)
	require.EqualValues(t, 3, p.Common)
	require.EqualValues(t, 2, p.Lost)
}

// A server that does not report its end, and is never silent, has none: what it has recorded since does not matter.
func TestAForkPointOfALedgerAtWorkIsFound(t *testing.T) {
	t.Parallel()
	h := twoHistories{stored: history(t, "1:a 2:b 3:c"), served: history(t, "1:a 2:x 3:b@2 4:c@3"), blind: true, live: true}
	p := h.find(t, 0)
	require.EqualValues(t, 1, p.Common)
	require.EqualValues(t, 2, p.Moved)
}

// Updates of several synchronizers may have one id: each is found where it is stored.
func TestUpdatesThatShareAnID(t *testing.T) {
	t.Parallel()
	h := twoHistories{
		stored: history(t, "1:a 2:b@2/one 3:b@3/two 4:c"),
		served: history(t, "1:a 2:c@4 3:b@3/two 5:b@2/one"),
	}
	p := h.find(t, 0)
	require.EqualValues(t, 1, p.Common)
	require.EqualValues(t, []int64{2, 1, 0, 0}, []int64{p.Moved, p.Kept, p.New, p.Lost})
}

// Errors of either side end it.
func TestAForkPointThatCanNotBeFound(t *testing.T) {
	t.Parallel()
	h := twoHistories{stored: history(t, "1:a"), served: history(t, "1:a")}
	_, err := FindForkPoint(t.Context(), failing{&h}, h.database(t), 0, func(Progress) {}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "read the updates after offset 0: gone")
}

type failing struct{ *twoHistories }

func (failing) ReadUpdates(context.Context, ledger.Offset, ledger.Offset) (ledger.Page, error) {
	return ledger.Page{}, &ledger.Problem{What: "gone", Err: errors.New("for good")}
}
