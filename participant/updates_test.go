package participant

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

func offsets(page ledger.Page) []int64 {
	list := []int64{}
	for _, u := range page.Updates {
		list = append(list, int64(u.Offset))
	}
	return list
}

// listed serves bounded reads of a ledger as list paths do. Setting is the server's own limit; where it ignores a
// larger one it serves what the setting allows without a word, otherwise it refuses to when there is more.
func listed(ledger []int64, setting func() int, ignores bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ BeginExclusive, EndInclusive int64 }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			panic(err)
		}
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			panic(err)
		}
		var matching []int64
		for _, o := range ledger {
			if asked.BeginExclusive < o && o <= asked.EndInclusive {
				matching = append(matching, o)
			}
		}
		if most := setting(); limit > most {
			if !ignores && len(matching) > most {
				cantonError(http.StatusRequestEntityTooLarge, "JSON_API_MAXIMUM_LIST_ELEMENTS_NUMBER_REACHED", "too many", "")(w, r)
				return
			}
			limit = most
		}
		answer(transactions(matching[:min(limit, len(matching))]...))(w, r)
	}
}

// readAll reads a range as a caller does and checks what every page promises.
func readAll(t require.TestingT, c *Client, after, to ledger.Offset) (all []int64, reads int) {
	for after < to {
		page, err := c.ReadUpdates(context.Background(), after, to)
		require.NoError(t, err)
		require.Equal(t, after, page.From)
		require.Greater(t, page.To, after)
		require.LessOrEqual(t, page.To, to)
		all = append(all, offsets(page)...)
		after = page.To
		reads++
	}
	return all, reads
}

func TestNoServerSettingLosesUpdates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ledgerOffsets := rapid.SliceOfNDistinct(rapid.Int64Range(1, 120), 0, 60, rapid.ID[int64]).Draw(rt, "offsets")
		slices.Sort(ledgerOffsets)
		settings := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 3).Draw(rt, "settings")
		var setting atomic.Int64
		setting.Store(int64(settings[0]))
		f := newFake(t, map[string]http.HandlerFunc{
			pathUpdatesFlats: listed(ledgerOffsets, func() int { return int(setting.Load()) }, rapid.Bool().Draw(rt, "ignores")),
		})
		defer f.Close()
		limit := rapid.IntRange(1, 20).Draw(rt, "limit")
		c, err := New(Config{URL: f.URL}, anyParty)
		require.NoError(rt, err)
		limited(c, limit)
		defer c.Close()
		found := with34
		c.found.Store(&found)

		// Between the ranges the server starts anew with another setting.
		var all []int64
		for i, s := range settings {
			setting.Store(int64(s))
			f.CloseClientConnections()
			c.Close()
			from, to := ledger.Offset(i*120/len(settings)), ledger.Offset((i+1)*120/len(settings))
			got, _ := readAll(rt, c, from, to)
			all = append(all, got...)
		}
		if len(ledgerOffsets) == 0 {
			require.Empty(rt, all)
			return
		}
		require.Equal(rt, ledgerOffsets, all)
	})
}

// Once a full answer has proven that the limit is served, a shorter answer is the end and costs no further read.
func TestShortAnswerIsTheEndOnceTheLimitIsProven(t *testing.T) {
	t.Parallel()
	ten := func() int { return 10 }
	f := newFake(t, map[string]http.HandlerFunc{
		pathUpdatesFlats: listed([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15}, ten, false),
	})
	c := limited(newClient(t, f, with34, anyParty), 10)
	for changes := int64(-1); changes != c.Changes(); { // on a busy machine a connection may not be used again, and what came over it proves nothing
		readAll(t, c, 0, 1) // makes the connection
		changes = c.Changes()
		_, first := readAll(t, c, 0, 20)
		_, second := readAll(t, c, 10, 20)
		if changes == c.Changes() {
			require.Equal(t, 2, first)
			require.Equal(t, 1, second)
		}
	}

	fresh := limited(newClient(t, f, with34, anyParty), 10)
	_, reads := readAll(t, fresh, 10, 20)
	require.Equal(t, 2, reads, "nothing is proven yet: the server might serve no more than three at a time")
}

// A checkpoint may repeat the offset where the read begins. With nothing after it, it may be all the server serves.
func TestLoneCheckpointAtTheBeginningIsNotTheEnd(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 200} {
		f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: answer(`[` + checkpoint(4) + `]`)})
		c := limited(newClient(t, f, with34, anyParty), limit)
		page, err := c.ReadUpdates(t.Context(), 4, 12)
		_ = retryable(t, err)
		require.ErrorContains(t, err, "the answer is only a checkpoint at offset 4")
		require.Zero(t, page)
	}
}

// An answer of as many elements as were asked for is cut, whatever was served before the limit was lowered.
func TestFullAnswerIsNeverTheEnd(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{
		pathUpdatesFlats: listed([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, func() int { return 200 }, false),
	})
	c := limited(newClient(t, f, with34, anyParty), 10)
	_, err := c.ReadUpdates(t.Context(), 0, 20)
	require.NoError(t, err)
	c.updatesList = jsonhttp.NewSize(4)
	page, err := c.ReadUpdates(t.Context(), 0, 20)
	require.NoError(t, err)
	require.Equal(t, ledger.Offset(4), page.To)
}

func TestBoundedListReadSendsLimitAndNoIdleTimeout(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: answer(`[]`)})
	c := newClient(t, f, with34, anyParty)
	page, err := c.ReadUpdates(t.Context(), 3, 9)
	require.NoError(t, err)
	require.Equal(t, ledger.Page{From: 3, To: 9, Bytes: 2}, page)
	r := f.requests()[0]
	require.Equal(t, "limit=200", r.query)
	require.EqualValues(t, 3, r.body["beginExclusive"])
	require.EqualValues(t, 9, r.body["endInclusive"])
	require.Contains(t, r.body, "updateFormat")
	require.NotContains(t, r.body, "filter")
	require.NotContains(t, r.body, "verbose")
}

func Test413WithALimitOf1IsAProblem(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: plain(413, "too large, exceeded size limit (10485760 bytes)!")})
	_, err := limited(newClient(t, f, with34, anyParty), 2).ReadUpdates(t.Context(), 0, 6)
	require.Contains(t, problem(t, err), "even with a limit of 1. raise http-list-max-elements-limit")
	require.ErrorContains(t, err, "exceeded size limit")
}

func TestPageCoversWhatTheServerSays(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: answer(`{"updates":` + transactions(5, 8) +
		`,"lowestPageOffsetExclusive":4,"highestPageOffsetInclusive":11,"nextPageToken":"bmV4dA=="}`)})
	page, err := newClient(t, f, with35, anyParty).ReadUpdates(t.Context(), 4, 20)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 8}, offsets(page))
	require.Equal(t, ledger.Offset(4), page.From)
	require.Equal(t, ledger.Offset(11), page.To)
	r := f.requests()[0]
	require.EqualValues(t, 4, r.body["beginOffsetExclusive"])
	require.EqualValues(t, 20, r.body["endOffsetInclusive"])
	require.EqualValues(t, 2000, r.body["maxPageSize"])
	require.NotContains(t, r.body, "pageToken")
}

// With pages a pruned participant starts where it can: that is no empty past.
func TestPageThatStartsAboveWhatWasAskedMeansPruned(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: answer(`{"updates":` + transactions(58) +
		`,"lowestPageOffsetExclusive":50,"highestPageOffsetInclusive":60,"nextPageToken":null}`)})
	_, err := newClient(t, f, with35, anyParty).ReadUpdates(t.Context(), 0, 60)
	require.Contains(t, problem(t, err), "pruned up to offset 50, and updates after offset 0 are needed")
	require.Contains(t, problem(t, err), "re-seed an empty database with `backfill`")
}

func TestAnswerThatContradictsTheQuestionIsNotTaken(t *testing.T) {
	t.Parallel()
	page := func(updates string, lowest, highest int) string {
		return fmt.Sprintf(`{"updates":%s,"lowestPageOffsetExclusive":%d,"highestPageOffsetInclusive":%d,"nextPageToken":null}`, updates, lowest, highest)
	}
	for name, test := range map[string]struct {
		server     Server
		body, want string
	}{
		"page covers nothing":               {with35, page("[]", 4, 4), "covers nothing"},
		"update above the page":             {with35, page(transactions(9), 4, 8), "do not lie within the page"},
		"update above what was asked":       {with35, page(transactions(15), 4, 20), "offset 15 is above"},
		"list goes beyond what was asked":   {with34, transactions(9, 15), "offset 15 is above the requested range"},
		"list begins at what we have":       {with34, transactions(4, 9), "offset 4"},
		"offsets of a list do not grow":     {with34, transactions(9, 7), "offset 7"},
		"an object in place of the list":    {with34, `{"updates":[]}`, "updates"},
		"a list in place of the page":       {with35, `[]`, "updates-page"},
		"not JSON, and says that it is":     {with34, `<html>`, "updates"},
		"an element that is of two kinds":   {with34, `[{"update":{"Transaction":{"value":{}},"Reassignment":{"value":{}}}}]`, "element 0"},
		"an element of which a key repeats": {with34, `[{"update":{"Transaction":{"value":{"offset":5,"offset":6}}}}]`, "element 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := answer(test.body)
			f := newFake(t, map[string]http.HandlerFunc{pathUpdatesFlats: body, pathUpdatesPage: body})
			_, err := newClient(t, f, test.server, anyParty).ReadUpdates(t.Context(), 4, 12)
			require.ErrorContains(t, err, "read updates after offset 4 up to 12")
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestRefusedPageSizeIsHalved(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ MaxPageSize int }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			panic(err)
		}
		if asked.MaxPageSize > 500 {
			cantonError(http.StatusBadRequest, "INVALID_ARGUMENT", "max_page_size 2000 exceeds 500", "")(w, r)
			return
		}
		answer(`{"updates":[],"lowestPageOffsetExclusive":0,"highestPageOffsetInclusive":9,"nextPageToken":null}`)(w, r)
	}})
	c := newClient(t, f, with35, anyParty)
	for range 2 {
		_, err := c.ReadUpdates(t.Context(), 0, 9)
		require.NoError(t, err)
	}
	require.Len(t, f.requests(), 4, "2000, 1000, 500, and 500 again")
}

// A page that the server can't make in time is asked for smaller, when the caller tries again.
func TestSlowServerIsAskedForLess(t *testing.T) {
	t.Parallel()
	slow := plain(http.StatusServiceUnavailable, "The server was not able to produce a timely response to your request.")
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: slow})
	c := newClient(t, f, with35, anyParty)
	for range 2 {
		_, err := c.ReadUpdates(t.Context(), 0, 9)
		require.Equal(t, http.StatusServiceUnavailable, retryable(t, err).Status)
	}
	got := f.requests()
	require.EqualValues(t, 2000, got[0].body["maxPageSize"])
	require.EqualValues(t, 1000, got[1].body["maxPageSize"])

	for range 100 {
		c.updatesPage.Worked()
	}
	require.Equal(t, 2000, c.updatesPage.Ask())
}

func TestTailSendsLimitAndIdle(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdates: answer(`[` + checkpoint(7) + `,` + transaction(9) + `]`)})
	page, full, err := newClient(t, f, with35, anyParty).TailUpdates(t.Context(), 7, 2, 300*time.Millisecond)
	require.NoError(t, err)
	require.True(t, full)
	require.Equal(t, []int64{9}, offsets(page))
	require.Len(t, page.Checkpoints, 1)
	require.Equal(t, ledger.Offset(9), page.To)
	r := f.requests()[0]
	require.Equal(t, "limit=2&stream_idle_timeout_ms=300", r.query)
	require.NotContains(t, r.body, "endInclusive")
	require.NotContains(t, r.body, "descendingOrder")
}

func TestTailSaysWhetherThereMayBeMore(t *testing.T) {
	t.Parallel()
	next := make(chan string, 1)
	f := newFake(t, map[string]http.HandlerFunc{pathUpdates: func(w http.ResponseWriter, r *http.Request) { answer(<-next)(w, r) }})
	c := newClient(t, f, with35, anyParty)
	read := func(body string) (ledger.Offset, bool) {
		next <- body
		page, full, err := c.TailUpdates(t.Context(), 7, 50, time.Second)
		require.NoError(t, err)
		return page.To, full
	}
	for _, test := range []struct {
		body string
		to   ledger.Offset
		full bool
	}{
		{`[]`, 7, false},
		{`[` + checkpoint(7) + `]`, 7, false},
		{`[` + checkpoint(12) + `]`, 12, false},
		{transactions(8, 9, 10), 10, true}, // the server may have cut it at three
		{transactions(8, 9), 9, false},     // it serves three
	} {
		to, full := read(test.body)
		require.Equal(t, test.to, to, test.body)
		require.Equal(t, test.full, full, test.body)
	}
}

// What was too large once is asked for again, also where only the tail asks for lists.
func TestTheTailRecoversFromALargeAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t, newFake(t, map[string]http.HandlerFunc{pathUpdates: answer(transactions(8))}), with35, anyParty)
	c.updatesList.ShrinkAfter(jsonhttp.ErrTooLarge, 100, false, false)
	_, _, err := c.TailUpdates(t.Context(), 7, 200, time.Second)
	require.NoError(t, err)
	require.Greater(t, c.updatesList.Ask(), 50)
}

// Elements that trickle keep the idle gap from occurring until the server gives up: one of them is there at once.
func TestTailOfATrickleMakesProgress(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdates: func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") != "1" {
			plain(http.StatusServiceUnavailable, "The server was not able to produce a timely response to your request.")(w, r)
			return
		}
		answer(transactions(8))(w, r)
	}})
	c := newClient(t, f, with35, anyParty)
	page, full, err := c.TailUpdates(t.Context(), 7, 50, time.Second)
	require.NoError(t, err)
	require.True(t, full)
	require.Equal(t, ledger.Offset(8), page.To)
	require.Equal(t, 200, c.updatesList.Ask(), "bounded reads are not to blame")
}

func TestReadUpdatesRefusesAnEmptyRange(t *testing.T) {
	t.Parallel()
	c := newClient(t, newFake(t, nil), with35, anyParty)
	_, err := c.ReadUpdates(t.Context(), 5, 5)
	require.ErrorContains(t, err, "there is nothing between")
}
