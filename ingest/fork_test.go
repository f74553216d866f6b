package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// What is stored ahead of the watermark is looked for too: its last update, and nothing where nothing was. To go back
// to the watermark is enough, or further down if the fork lies below it.
func TestAForkOfWhatIsStoredAheadIsDetected(t *testing.T) {
	t.Parallel()
	stored := chronicleOf("first", 10, 20, 30, 40, 50)
	const watermark = 25
	ahead := []ledger.Range{{From: 25, To: 33}, {From: 38, To: 55}, {From: 60, To: 65}} // 38 to 40 and 50 on are empty in part
	grown := func(offsets ...ledger.Offset) *chronicle { return stored.restoredAt(50, append(offsets, 70)...) }
	for name, c := range map[string]struct {
		shown   *chronicle
		change  func(shown *chronicle)
		problem []string
		err     error
		log     string
	}{
		"the same":                              {shown: grown()},
		"the same, no look-ups":                 {shown: grown(), change: func(h *chronicle) { h.noLookUp = ledger.ErrNotOffered }},
		"the same, grown where nothing is read": {shown: grown(58)},
		"one behind the last update":            {shown: grown(53), problem: []string{"first-50 is stored at offset 50", "other-53 at offset 53, where there was none", "agree is 25"}},
		"one in a range of nothing":             {shown: grown(62), problem: []string{"other-62 at offset 62, where there was none", "agree is 25"}},
		"parted ahead":                          {shown: stored.restoredAt(40, 45, 70), problem: []string{"first-50 is stored at offset 50", "agree is 25"}},
		"parted just behind the watermark":      {shown: stored.restoredAt(20, 30, 70), problem: []string{"first-50 is stored at offset 50", "agree is 20"}},
		"not come so far":                       {shown: stored.restoredAt(40, 45), problem: []string{"ends below the checkpoint, at offset 45", "agree is 25"}},
		"pruned since":                          {shown: grown(), change: func(h *chronicle) { h.pruned = 66 }, log: "can't be found out"},
		"away by then":                          {shown: grown(), change: func(h *chronicle) { h.noLookUp, h.away = errAway, 30 }, err: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := *c.shown
			if c.change != nil {
				c.change(&shown)
			}
			var log bytes.Buffer
			r := newForkCheck(shown.source(), nil, stored.sink(Deviation{}), slog.New(slog.NewTextHandler(&log, nil)))
			err := r.begin(t.Context(), watermark, ahead)
			var problem *ledger.Problem
			switch {
			case c.problem != nil:
				require.ErrorAs(t, err, &problem)
				for _, part := range c.problem {
					require.Contains(t, problem.What+" / "+problem.Do, part)
				}
			case c.err != nil:
				require.ErrorIs(t, err, c.err)
				require.ErrorContains(t, err, "stored ahead of the watermark, up to offset 65")
			default:
				require.NoError(t, err)
				require.Equal(t, anchor{50, "first-50"}, r.last)
				require.Equal(t, []ledger.Range{{From: 50, To: 55}, {From: 60, To: 65}}, r.empty)
				require.Equal(t, c.log != "", strings.Contains(log.String(), c.log) && log.Len() > 0, log.String())
			}
		})
	}
	// Where nothing is stored up to the watermark, and what is ahead can't be seen.
	var log bytes.Buffer
	pruned := grown()
	pruned.pruned = 66
	r := newForkCheck(pruned.source(), nil, stored.sink(Deviation{}), slog.New(slog.NewTextHandler(&log, nil)))
	err := r.begin(t.Context(), 5, ahead)
	require.NoError(t, err)
	require.Contains(t, log.String(), "can't be found out")
	// Where no update is stored ahead, the anchor stays, with what is empty behind it.
	r = newForkCheck(grown().source(), nil, stored.sink(Deviation{}), slog.New(slog.DiscardHandler))
	err = r.begin(t.Context(), 55, []ledger.Range{{From: 60, To: 65}})
	require.NoError(t, err)
	require.Equal(t, anchor{50, "first-50"}, r.last)
	require.Equal(t, []ledger.Range{{From: 50, To: 55}, {From: 60, To: 65}}, r.empty)
}

// While reading, it is said that the anchor can't be seen any more; not so where that is asked for because reading
// can't continue, which says more.
func TestALandmarkThatCanNotBeSeenWhileReading(t *testing.T) {
	t.Parallel()
	shown := chronicleOf("first", 10, 20, 30, 70)
	shown.pruned = 25
	page := &ledger.Page{From: 30, To: 40}
	for name, look := range map[string]func(r *forkCheck) error{
		"reading": func(r *forkCheck) error { return r.accept(t.Context(), 0, page) },
		"stuck":   func(r *forkCheck) error { return r.stuck(t.Context()) },
	} {
		var log bytes.Buffer
		r := newForkCheck(shown.source(), nil, shown.sink(Deviation{}), slog.New(slog.NewTextHandler(&log, nil)))
		r.last, r.changes = anchor{20, "first-20"}, -1
		require.NoError(t, look(r), name)
		require.Equal(t, name == "reading", strings.Contains(log.String(), "can't be found out"), log.String())
	}
}

// A page that can't be looked at again is not used, and nothing is taken from it.
func TestAPageThatCanNotBeLookedAtAgainIsNotUsed(t *testing.T) {
	t.Parallel()
	shown := chronicleOf("first", 10, 20, 30, 40)
	source := shown.source()
	source.update = func(_ context.Context, id string) (ledger.Update, error) {
		if id == "first-20" {
			return shown.updates[1], nil
		}
		return ledger.Update{}, errAway
	}
	source.ledgerEnd = func(context.Context) (ledger.Offset, error) { return 0, errAway }
	shown.away = 20
	for _, page := range []*ledger.Page{
		{From: 20, To: 40, Updates: shown.updates[2:]},
		{From: 20, To: 25},
	} {
		r := newForkCheck(source, nil, shown.sink(Deviation{}), slog.New(slog.DiscardHandler))
		r.last = anchor{20, "first-20"}
		require.ErrorIs(t, r.accept(t.Context(), -1, page), errAway)
		require.Equal(t, anchor{20, "first-20"}, r.last)
		require.Empty(t, r.empty)
	}
}

// Why reading can't continue is what ends the process, also where the anchor can't be asked for.
func TestWhyReadingCanNotGoOnIsSaid(t *testing.T) {
	for name, updates := range map[string]int{"near the end": 30, "catching up": 10_000} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, updates)
				l.ledger.pageSize = 20
				l.named(func(offset ledger.Offset) string { return fmt.Sprint(offset) })
				end, read := l.source.ledgerEnd, l.source.readUpdates
				var stuck atomic.Bool
				l.source.update = func(context.Context, string) (ledger.Update, error) { return ledger.Update{}, errAway }
				l.source.ledgerEnd = func(ctx context.Context) (ledger.Offset, error) {
					if stuck.Load() {
						return 0, errAway
					}
					return end(ctx)
				}
				l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					if after >= 60 {
						stuck.Store(true)
						return ledger.Page{}, &ledger.Problem{What: "it is not shown"}
					}
					return read(ctx, after, to)
				}
				l.run()
				require.ErrorContains(t, <-l.done, "it is not shown")
				require.Zero(t, l.retried())
			})
		})
	}
}

// Another server that begins to answer while the loop reads is looked at before its page is used. What was read of the
// one before is stored, and then compared, so that the last common offset is right for it too.
func TestAnotherHistoryWhileReading(t *testing.T) {
	for name, c := range map[string]struct{ another, noticed, stuck bool }{
		"another history":                        {another: true, noticed: true},
		"another history, and no new connection": {another: true, stuck: true},
		"the same history":                       {noticed: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLoop(t, 30)
				l.ledger.pageSize = 20
				var changes int64
				replaced := false
				id := func(offset ledger.Offset) string {
					if c.another && replaced && offset >= 60 { // the last update of the first page is the first that differs
						return fmt.Sprint("other-", offset)
					}
					return fmt.Sprint("first-", offset)
				}
				l.source.changes = func() int64 { return changes }
				l.named(id)
				read := l.source.readUpdates
				l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
					if after == 60 {
						replaced = true
						if c.noticed {
							changes = 1
						}
						if c.stuck {
							return ledger.Page{}, &ledger.Problem{What: "its ledger ends below"}
						}
					}
					return read(ctx, after, to)
				}
				l.sink.last = l.memory.last
				l.sink.append = func(ctx context.Context, scope ledger.Scope, pages []ledger.Page) error {
					time.Sleep(time.Second) // the first page is on its way while the second is read
					return l.memory.append(ctx, scope, pages)
				}
				stop := l.run()
				if !c.another {
					pass(time.Minute)
					require.Equal(t, l.ledger.all(), l.memory.got())
					require.Zero(t, l.retried())
					require.NoError(t, stop())
					return
				}
				var problem *ledger.Problem
				require.ErrorAs(t, <-l.done, &problem)
				require.Contains(t, problem.What, "agree is 57")
				require.Equal(t, l.ledger.all()[:20], l.memory.got(), "nothing of the other one is stored")
				require.ErrorIs(t, l.retries[0], errForked)
			})
		})
	}
}

// Of two servers behind one address, another one answers one page only. Look-ups are answered by the first, which has
// what was read before, so that only reading the page again shows the fork. If the page is right, it is used.
func TestAPageOfAnotherServerIsLookedAtAgain(t *testing.T) {
	const from = 60 // what is before comes from the first
	for _, near := range []bool{true, false} {
		for name, another := range map[string]func(page *ledger.Page) (same bool){
			"another history":  func(page *ledger.Page) bool { return renamed(page.Updates) },
			"another end":      func(page *ledger.Page) bool { return renamed(page.Updates[len(page.Updates)-1:]) },
			"the same history": func(*ledger.Page) bool { return true },
			"it lacks the end": func(page *ledger.Page) bool {
				page.Updates = page.Updates[:len(page.Updates)-1]
				return false
			},
			"it has nothing there": func(page *ledger.Page) bool {
				page.Updates = nil
				return false
			},
		} {
			t.Run(fmt.Sprint(name, ", near the end: ", near), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					l := newLoop(t, 10_000)
					if near {
						l = newLoop(t, 45)
					}
					l.ledger.pageSize = 20
					var changes, lookUps atomic.Int64
					l.source.changes = changes.Load
					l.named(func(offset ledger.Offset) string { return fmt.Sprint(offset) })
					update := l.source.update
					l.source.update = func(ctx context.Context, id string) (ledger.Update, error) {
						lookUps.Add(1)
						return update(ctx, id)
					}
					var once atomic.Bool
					same := false
					read := l.source.readUpdates
					l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
						page, err := read(ctx, after, to)
						if len(page.Updates) > 2 && page.Updates[0].Offset > from && once.CompareAndSwap(false, true) {
							same = another(&page)
							changes.Add(1)
						}
						return page, err
					}
					stop := l.run()
					pass(time.Hour)
					require.NoError(t, stop())
					require.True(t, once.Load())
					require.Empty(t, l.memory.mistakes)
					requireAll(t, l.ledger.all(), l.memory.got())
					for update := range l.memory.everyWritten() {
						require.Equal(t, fmt.Sprint(update.Offset), update.ID)
					}
					// Of the anchor, and of each page that was under way.
					require.LessOrEqual(t, lookUps.Load(), int64(1+DefaultMaxRequests))
					if same {
						require.Zero(t, l.retried())
					} else {
						require.Len(t, l.retries, 1)
						require.ErrorIs(t, l.retries[0], errForked)
					}
				})
			})
		}
	}
}

// renamed gives updates the ids of another history.
func renamed(updates []ledger.Update) (same bool) {
	for i := range updates {
		updates[i].ID = "other-" + updates[i].ID
	}
	return false
}

// Of windows that come in any order, what is empty behind the anchor is remembered as one range where it is one: each
// costs a request where another server may have begun to answer.
func TestEmptyWindowsInAnyOrderAreOneRange(t *testing.T) {
	t.Parallel()
	r := &forkCheck{last: anchor{offset: 100, id: "a"}}
	for _, came := range []ledger.Range{{From: 90, To: 110}, {From: 150, To: 200}, {From: 300, To: 400}, {From: 110, To: 150}, {From: 200, To: 250}} {
		r.noteAccepted(&ledger.Page{From: came.From, To: came.To})
	}
	require.Equal(t, []ledger.Range{{From: 100, To: 250}, {From: 300, To: 400}}, r.empty)
	r.noteAccepted(&ledger.Page{From: 250, To: 300, Updates: []ledger.Update{{Offset: 260, ID: "b"}}})
	require.Equal(t, []ledger.Range{{From: 260, To: 400}}, r.empty)
	require.Equal(t, anchor{260, "b"}, r.last)
	r.noteAccepted(&ledger.Page{From: 200, To: 250, Updates: []ledger.Update{{Offset: 210, ID: "a"}}})
	require.Equal(t, anchor{260, "b"}, r.last, "a window that comes late")
}

// While a page is looked for, none is accepted of a server that answers by then.
func TestPagesAreAcceptedOneAfterTheOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 1000)
		var turned atomic.Bool // to another history, from offset 200 on
		l.source.changes = func() int64 {
			if turned.Load() {
				return 2
			}
			return 1 // a new connection to the same server
		}
		shown := func() map[string]ledger.Offset {
			if turned.Load() {
				return map[string]ledger.Offset{"before": 99, "other": 300}
			}
			return map[string]ledger.Offset{"before": 99, "first": 201}
		}
		l.source.update = func(ctx context.Context, id string) (ledger.Update, error) {
			offset, ok := shown()[id]
			if id == "first" {
				Sleep(ctx, time.Second)
			}
			if !ok {
				return ledger.Update{}, ledger.ErrNotFound
			}
			return ledger.Update{Offset: offset, ID: id}, nil
		}
		r := newForkCheck(l.Source, nil, l.Sink, l.Logger)
		r.last, r.changes = anchor{99, "before"}, 0
		first := make(chan error)
		go func() {
			first <- r.accept(t.Context(), 0, &ledger.Page{From: 150, To: 201, Updates: []ledger.Update{{Offset: 201, ID: "first"}}})
		}()
		synctest.Wait()
		turned.Store(true)
		second := make(chan error)
		go func() {
			second <- r.accept(t.Context(), 2, &ledger.Page{From: 201, To: 300, Updates: []ledger.Update{{Offset: 300, ID: "other"}}})
		}()
		errs := []error{<-first, <-second}
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], errForked)
	})
}
