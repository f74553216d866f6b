package participant

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/jsonhttp"
	"ledgerindexer/ledger"
)

// Each kind of answer has a limit of its own, and the error says which one was met.
func TestLimitsOfAnswers(t *testing.T) {
	t.Parallel()
	announced := func(length string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", length)
			w.WriteHeader(http.StatusOK)
		}
	}
	f := newFake(t, map[string]http.HandlerFunc{
		pathLedgerEnd: announced("4194305"), pathAuthenticatedUser: announced("4194305"), pathVettingList: announced("67108865"),
		pathUpdatesPage: announced("134217729"), pathSnapshot: announced("1073741825"),
		pathContractByID: announced("67108865"), pathVettingUpdate: announced("67108865"),
	})
	c := newClient(t, f, with35, anyParty)
	_, err := c.LedgerEnd(t.Context())
	require.ErrorContains(t, err, "ledger-end: the answer is too large: it has 4194305 bytes, and at most 4194304 are read")
	_, err = c.whoami(t.Context())
	require.ErrorContains(t, err, "at most 4194304 are read")
	_, ofList := c.ListVettedPackages(t.Context(), VettingFilter{})
	_, _, ofChange := c.UpdateVettedPackages(t.Context(), VettingRequest{Changes: []VettingChange{{}}})
	_, _, ofContract := c.ContractByID(t.Context(), "00ab", nil)
	for _, err := range []error{ofList, ofChange, ofContract} {
		require.Contains(t, problem(t, err), "the answer is larger than what is read of one")
		require.ErrorContains(t, err, "at most 67108864 are read")
	}
	_, err = c.ReadUpdates(t.Context(), 3, 8)
	require.Contains(t, problem(t, err), "the update after offset 3 is larger than what is read of an answer")
	require.ErrorContains(t, err, "at most 134217728 are read")
	_, err = c.wholeSnapshot(t.Context(), 7)
	require.Contains(t, problem(t, err), "the snapshot has more entries than the server serves in one answer")
	require.ErrorContains(t, err, "at most 1073741824 are read")
}

// A list whose pages have no end is given up.
func TestListsWithoutEnd(t *testing.T) {
	t.Parallel()
	pages := 0
	f := newFake(t, map[string]http.HandlerFunc{
		pathSnapshotPage: func(w http.ResponseWriter, r *http.Request) {
			pages++
			answer(fmt.Sprintf(`{"activeContracts":[],"activeAtOffset":9,"nextPageToken":"t%d"}`, pages))(w, r)
		},
		pathVettingList: func(w http.ResponseWriter, r *http.Request) {
			pages++
			answer(fmt.Sprintf(`{"vettedPackages":[%s],"nextPageToken":"t%d"}`, vettedAnswer(fmt.Sprint("p", pages), 1), pages))(w, r)
		},
		pathPackages + strings.Repeat("00", 32): func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1<<16))
			}
		},
	})
	c := newClient(t, f, with35, anyParty)
	var err error
	for token := (ledger.Token{}); err == nil; {
		var page ledger.SnapshotPage
		page, err = c.ReadSnapshot(t.Context(), 9, token)
		token = page.Next
	}
	require.Contains(t, problem(t, err), "1000 pages of a list in a row are empty, and none is the last")
	require.Equal(t, 1000, pages)

	pages, c.vettedBodies = 0, 100_000
	_, err = c.ListVettedPackages(t.Context(), VettingFilter{})
	require.ErrorContains(t, retryable(t, err), "the list has more than 100000 bytes, and no end comes")

	_, err = c.Package(t.Context(), strings.Repeat("00", 32))
	require.ErrorContains(t, err, "it has more than 67108864 bytes")
}

// Of a server, or a way to it, that is too slow for a page a smaller one is asked for with the next try.
func TestASlowAnswerMakesTheNextPageSmaller(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]http.HandlerFunc{pathUpdatesPage: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"updates":[`+strings.Repeat(" ", 1000))
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	}})
	c := newClient(t, f, with35, anyParty)
	c.longest = 50 * time.Millisecond
	_, err := c.ReadUpdates(t.Context(), 3, 8)
	_ = retryable(t, err)
	require.ErrorIs(t, err, jsonhttp.ErrSlow)
	require.Equal(t, updatesPageSize/2, c.updatesPage.Ask())
}

// An answer that is larger than the room for it is not read further, whether or not its length is announced, and
// nothing is wrong with it: the next one is asked for as before, and with more room it is read.
func TestAnAnswerThereIsNoRoomFor(t *testing.T) {
	t.Parallel()
	page := `{"updates":` + transactions(4, 8) + `,"lowestPageOffsetExclusive":3,"highestPageOffsetInclusive":8}`
	list := transactions(4, 8)
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "["+strings.Repeat(" ", 1000))
		}
	}
	for name, c := range map[string]struct {
		server Server
		path   string
		body   string
	}{
		"pages": {with35, pathUpdatesPage, page},
		"lists": {with34, pathUpdatesFlats, list},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size := int64(len(c.body))
			f := newFake(t, map[string]http.HandlerFunc{c.path: answer(c.body)})
			client := newClient(t, f, c.server, anyParty)
			for _, room := range []int64{1, size / 2, size - 1} {
				_, err := client.ReadUpdatesWithin(t.Context(), 3, 8, room)
				require.ErrorIs(t, err, ledger.ErrByteLimit)
				require.ErrorContains(t, err, "read updates after offset 3 up to 8: the answer exceeds the request's byte limit")
				var p *ledger.Problem
				require.NotErrorAs(t, err, &p, "with more room it can be read")
			}
			got, err := client.ReadUpdatesWithin(t.Context(), 3, 8, size)
			require.NoError(t, err)
			require.Equal(t, []int64{4, 8}, offsets(got))
			require.Equal(t, size, got.Bytes)
			requests := f.requests()
			require.Len(t, requests, 4, "not asked again by itself")
			for _, r := range requests {
				require.Equal(t, requests[0], r, "nor for less")
			}

			client = newClient(t, newFake(t, map[string]http.HandlerFunc{c.path: endless}), c.server, anyParty)
			_, err = client.ReadUpdatesWithin(t.Context(), 3, 8, 1<<20)
			require.ErrorIs(t, err, ledger.ErrByteLimit)

			client = newClient(t, f, c.server, anyParty)
			client.maxBody = size - 1
			_, err = client.ReadUpdatesWithin(t.Context(), 3, 8, 1<<30) // more room than is ever used
			require.NotErrorIs(t, err, ledger.ErrByteLimit)
			require.Contains(t, problem(t, err), "is larger than what is read of an answer")
		})
	}
}
