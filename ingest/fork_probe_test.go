package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// chronicle is a list of updates, and how a participant serves it.
type chronicle struct {
	updates  []ledger.Update
	end      ledger.Offset
	pruned   ledger.Offset
	strict   bool          // tells neither its end nor how far it is pruned
	noLookUp error         // what looking updates up ends with; nil: it works
	away     ledger.Offset // from where on nothing can be read; 0: all can be
	requests int
}

func chronicleOf(story string, offsets ...ledger.Offset) *chronicle {
	h := &chronicle{}
	for _, offset := range offsets {
		h.updates = append(h.updates, ledger.Update{Offset: offset, ID: fmt.Sprintf("%s-%d", story, offset)})
		h.end = offset
	}
	return h
}

// restoredAt is the history up to an offset, and then another one.
func (h *chronicle) restoredAt(cut ledger.Offset, offsets ...ledger.Offset) *chronicle {
	other := chronicleOf("other", offsets...)
	restored := &chronicle{end: max(cut, other.end)}
	for _, update := range h.updates {
		if update.Offset <= cut {
			restored.updates = append(restored.updates, update)
		}
	}
	restored.updates = append(restored.updates, other.updates...)
	return restored
}

func (h *chronicle) source() *fakeSource {
	return &fakeSource{
		ledgerEnd: func(context.Context) (ledger.Offset, error) {
			if h.strict {
				return 0, ledger.ErrNotOffered
			}
			return h.end, nil
		},
		prunedOffset: func(context.Context) (ledger.Offset, error) {
			if h.strict {
				return 0, ledger.ErrNotOffered
			}
			return h.pruned, nil
		},
		update: func(_ context.Context, id string) (ledger.Update, error) {
			h.requests++
			for _, update := range h.updates {
				if update.ID == id && update.Offset > h.pruned && h.noLookUp == nil {
					return update, nil
				}
			}
			if h.noLookUp != nil {
				return ledger.Update{}, h.noLookUp
			}
			return ledger.Update{}, ledger.ErrNotFound
		},
		readUpdates: func(_ context.Context, after, to ledger.Offset) (ledger.Page, error) {
			h.requests++
			switch {
			case after < h.pruned:
				return ledger.Page{}, &ledger.Problem{What: "pruned"}
			case h.away > 0 && to > h.away:
				return ledger.Page{}, errAway
			case to > h.end:
				return ledger.Page{}, &ledger.Problem{What: "after the ledger's end"}
			}
			page := ledger.Page{From: after, To: to}
			for _, update := range h.updates {
				if update.Offset > after && update.Offset <= to {
					page.Updates = append(page.Updates, update)
				}
			}
			return page, nil
		},
	}
}

// sink stores a history, of which differences are found.
func (h *chronicle) sink(differences Deviation) *fakeSink {
	return &fakeSink{
		last: func(_ context.Context, upTo ledger.Offset) (at ledger.Offset, id string, _ error) {
			for _, update := range h.updates {
				if update.Offset <= upTo {
					at, id = update.Offset, update.ID
				}
			}
			return at, id, nil
		},
		deviation: differences,
	}
}

// The participant is asked for the last stored update, and for what lies between it and the watermark.
func TestAForkIsDetected(t *testing.T) {
	t.Parallel()
	stored := chronicleOf("first", 10, 20, 30, 40, 50)
	withoutID := chronicleOf("first", 10, 20)
	withoutID.updates[1].ID = ""
	const unsaid = "can't be found out"
	for name, c := range map[string]struct {
		stored    *chronicle
		watermark ledger.Offset
		shown     *chronicle
		change    func(shown *chronicle)
		problem   []string // what it says; nil: none
		log       string   // what is said; empty: nothing
		mark      ledger.Offset
	}{
		"the same":                          {stored, 50, stored, nil, nil, "", 50},
		"the same, and grown":               {stored, 50, stored.restoredAt(50, 52, 60), nil, nil, "", 50},
		"the watermark is a checkpoint's":   {stored, 55, stored.restoredAt(50, 56, 60), nil, nil, "", 50},
		"nothing is stored":                 {chronicleOf("first"), 55, stored, nil, nil, "", 0},
		"it can't look updates up":          {stored, 50, stored, func(h *chronicle) { h.noLookUp = ledger.ErrNotOffered }, nil, "", 50},
		"looking updates up fails":          {stored, 50, stored, func(h *chronicle) { h.noLookUp = errAway }, nil, "", 50},
		"a look-up is not understood":       {stored, 50, stored, func(h *chronicle) { h.noLookUp = &ledger.DecodeError{Err: errAway} }, nil, "", 50},
		"strict, and no look-ups":           {stored, 50, stored, func(h *chronicle) { h.strict, h.noLookUp = true, ledger.ErrNotOffered }, nil, "", 50},
		"an update without an id":           {withoutID, 25, withoutID.restoredAt(20, 30), nil, nil, "", 20},
		"pruned since":                      {stored, 55, stored.restoredAt(50, 60), func(h *chronicle) { h.pruned = 55 }, nil, unsaid, 0},
		"pruned since, not told":            {stored, 55, stored.restoredAt(50, 60), func(h *chronicle) { h.pruned, h.strict = 55, true }, nil, unsaid, 0},
		"restored and grown past":           {stored, 50, stored.restoredAt(30, 35, 50, 55), nil, []string{"first-50", "offset 50", "other-50 there", "agree is 30"}, "", 0},
		"restored, another offset":          {stored, 50, stored.restoredAt(40, 45, 55), nil, []string{"no update there", "agree is 40"}, "", 0},
		"the same update elsewhere":         {stored, 50, &chronicle{updates: append(chronicleOf("first", 10, 20, 30).updates, ledger.Update{Offset: 51, ID: "first-50"}), end: 60}, nil, []string{"has it at offset 51", "agree is 30"}, "", 0},
		"restored, and not come so far":     {stored, 50, stored.restoredAt(20, 33), nil, []string{"ends below the checkpoint, at offset 33", "agree is 20"}, "", 0},
		"strict, restored and grown past":   {stored, 50, stored.restoredAt(30, 35, 50, 55), func(h *chronicle) { h.strict = true }, []string{"agree is 30"}, "", 0},
		"no look-ups, restored and grown":   {stored, 50, stored.restoredAt(30, 35, 50, 55), func(h *chronicle) { h.noLookUp = ledger.ErrNotOffered }, []string{"agree is 30"}, "", 0},
		"restored behind the last update":   {stored, 55, stored.restoredAt(50, 53, 60), nil, []string{"other-53 at offset 53, where there was none", "agree is 50"}, "", 0},
		"the first is another one":          {stored, 50, chronicleOf("other", 10, 20, 30, 40, 50), nil, []string{"no stored update was found on which they agree", "new database"}, "", 0},
		"the last common is pruned":         {stored, 50, stored.restoredAt(30, 50, 60), func(h *chronicle) { h.pruned = 35 }, []string{"no stored update was found on which they agree", "new database"}, "", 0},
		"the last common is just not":       {stored, 50, stored.restoredAt(30, 50, 60), func(h *chronicle) { h.pruned = 29 }, []string{"agree is 30"}, "", 0},
		"the last common, pruned, not told": {stored, 50, stored.restoredAt(30, 50, 60), func(h *chronicle) { h.pruned, h.strict = 35, true }, []string{"no stored update was found", "new database"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := *c.shown
			if c.change != nil {
				c.change(&shown)
			}
			var log bytes.Buffer
			u := newForkCheck(shown.source(), nil, c.stored.sink(Deviation{}), slog.New(slog.NewTextHandler(&log, nil)))
			for range 2 { // what is said is said once
				mark, err := u.compareLast(t.Context(), c.watermark)
				require.Equal(t, c.mark, mark.offset)
				var problem *ledger.Problem
				if c.problem == nil {
					require.NoError(t, err)
				} else {
					require.ErrorAs(t, err, &problem)
					for _, part := range c.problem {
						require.Contains(t, problem.What+" / "+problem.Do, part)
					}
				}
			}
			if c.log == "" {
				require.Empty(t, log.String())
			} else {
				require.Equal(t, 1, strings.Count(log.String(), c.log), log.String())
			}
		})
	}
}

// What to do names the commands and flags of what is stored: a participant's updates have no --network, and a network's
// offsets can't be anchored again.
func TestAdviceForAForkIsOfItsLedger(t *testing.T) {
	t.Parallel()
	stored := chronicleOf("first", 10, 20, 30)
	for name, shown := range map[string]*chronicle{
		"restored": stored.restoredAt(20, 25, 30), "another": chronicleOf("other", 10, 20, 30), "behind": stored.restoredAt(20, 25),
	} {
		for network, c := range map[bool]struct{ named, not []string }{
			false: {[]string{"indexer reanchor"}, []string{"network", "--scan-url"}},
			true:  {[]string{"network"}, []string{"reanchor", "--ledger-url", "participant"}},
		} {
			t.Run(fmt.Sprint(name, " ", network), func(t *testing.T) {
				t.Parallel()
				sink := stored.sink(Deviation{})
				sink.network = network
				_, err := CheckLast(t.Context(), shown.source(), sink, 30)
				var problem *ledger.Problem
				require.ErrorAs(t, err, &problem)
				said := problem.What + " / " + problem.Do
				for _, part := range c.named {
					require.Contains(t, said, part)
				}
				for _, part := range c.not {
					require.NotContains(t, said, part)
				}
				if network && name != "another" {
					require.Contains(t, problem.Do, "`indexer reset --network --to-offset 20 --apply`")
				}
			})
		}
	}
}

// Looking at a history that is the same takes one request, or two where the watermark is beyond the last update.
func TestTheForkCheckTakesARequestOrTwo(t *testing.T) {
	t.Parallel()
	stored := chronicleOf("first", 10, 20)
	for watermark, requests := range map[ledger.Offset]int{20: 1, 25: 2} {
		shown := stored.restoredAt(20, 30)
		u := newForkCheck(shown.source(), nil, stored.sink(Deviation{}), slog.New(slog.DiscardHandler))
		_, err := u.compareLast(t.Context(), watermark)
		require.NoError(t, err)
		require.Equal(t, requests, shown.requests)
	}
}

// A server that is away is asked again; it is not taken for another one.
func TestAServerThatIsAwayIsNotAnotherHistory(t *testing.T) {
	t.Parallel()
	stored := chronicleOf("first", 10, 20)
	source := stored.source()
	source.update = func(context.Context, string) (ledger.Update, error) { return ledger.Update{}, errAway }
	source.ledgerEnd = func(context.Context) (ledger.Offset, error) { return 0, errAway }
	u := newForkCheck(source, nil, stored.sink(Deviation{}), slog.New(slog.DiscardHandler))
	_, err := u.compareLast(t.Context(), 20)
	require.ErrorIs(t, err, errAway)
	require.False(t, Lasting(err))
}

// Where id and offset agree and the content does not, our own database is damaged: that is said once, and no reason to
// stop.
func TestADamagedUpdateIsNoOtherHistory(t *testing.T) {
	t.Parallel()
	stored := chronicleOf("first", 10, 20)
	var log bytes.Buffer
	u := newForkCheck(stored.source(), nil, stored.sink(Deviation{Differences: 3}), slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		mark, err := u.compareLast(t.Context(), 20)
		require.NoError(t, err)
		require.EqualValues(t, 20, mark.offset)
	}
	require.Equal(t, 1, strings.Count(log.String(), "indexer verify --repair"), log.String())
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "update_id=first-20 offset=20 differences=3")
}

// A participant that was upgraded shows values that it did not show before: that is no fork.
func TestAnUpgradedParticipantHasNotDamagedAnything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found Deviation
		level string
	}{
		"columns that were not sent": {Deviation{Differences: 2, Lacking: 2}, "level=INFO"},
		"another column too":         {Deviation{Differences: 2, Lacking: 1, UpdateAltered: true}, "level=ERROR"},
		"a row that is not stored":   {Deviation{Differences: 1, ElementsLost: 1}, "level=ERROR"},
	} {
		stored := chronicleOf("first", 10, 20)
		sink := stored.sink(c.found)
		var log bytes.Buffer
		u := newForkCheck(stored.source(), nil, sink, slog.New(slog.NewTextHandler(&log, nil)))
		_, err := u.compareLast(t.Context(), 20)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(log.String(), "indexer verify --repair"), name)
		require.Contains(t, log.String(), c.level, name)
	}
}

// The last common offset is found exactly, wherever the histories part, by a bounded number of requests.
func TestTheLastCommonOffsetIsFoundExactly(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 5))
	for range 300 {
		var offsets []ledger.Offset
		for at := ledger.Offset(0); len(offsets) < 2+random.IntN(200); {
			at += 1 + ledger.Offset(random.IntN(1<<uint(random.IntN(20))))
			offsets = append(offsets, at)
		}
		stored := chronicleOf("first", offsets...)
		common := random.IntN(len(offsets) - 1)
		cut, last := offsets[common], offsets[len(offsets)-1]
		var others []ledger.Offset
		for at := cut; at < last; {
			at += 1 + ledger.Offset(random.IntN(1<<18))
			others = append(others, at)
		}
		shown := stored.restoredAt(cut, others...)
		shown.strict = random.IntN(2) == 0
		if random.IntN(3) == 0 {
			shown.noLookUp = ledger.ErrNotOffered
		}
		u := newForkCheck(shown.source(), nil, stored.sink(Deviation{}), slog.New(slog.DiscardHandler))
		found, err := u.lastCommon(t.Context(), last)
		require.NoError(t, err)
		require.Equal(t, cut, found, "offsets %v", offsets)
		require.LessOrEqual(t, shown.requests, 2*64)
	}
}
