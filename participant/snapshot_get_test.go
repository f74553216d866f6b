package participant

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// pagesBy serves a snapshot of three pages by a method. proxy, if not nil, may answer in place of the server and reports
// whether it did.
func pagesBy(method string, proxy func(w http.ResponseWriter, r *http.Request) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ActiveAtOffset int64
			PageToken      string
		}
		switch err := json.NewDecoder(r.Body).Decode(&asked); {
		case r.Method != method:
			plain(http.StatusMethodNotAllowed, "Method Not Allowed")(w, r)
			return
		case proxy != nil && proxy(w, r):
			return
		case method == http.MethodGet && r.Header.Get("Cache-Control") != "no-cache":
			answer(`{"activeContracts":[],"activeAtOffset":7,"nextPageToken":null}`)(w, r) // what a cache holds of the same URL
			return
		case err != nil:
			plain(http.StatusBadRequest, "Invalid value for: body (exhausted input)")(w, r)
			return
		case asked.ActiveAtOffset == 0:
			answer(`{"activeContracts":[],"activeAtOffset":0,"nextPageToken":null}`)(w, r)
			return
		}
		next := map[string]string{"": `"one"`, "one": `"two"`, "two": `null`}[asked.PageToken]
		answer(`{"activeContracts":[`+entry("after-"+asked.PageToken, "")+`],"activeAtOffset":9,"nextPageToken":`+next+`}`)(w, r)
	}
}

// pagesByGET are the pages of releases 3.5.0 to 3.5.9.
func pagesByGET(proxy func(w http.ResponseWriter, r *http.Request) bool) http.HandlerFunc {
	return pagesBy(http.MethodGet, proxy)
}

// Releases 3.5.0 to 3.5.9 serve them by GET, others by POST.
func TestSnapshotPages(t *testing.T) {
	t.Parallel()
	for method, path := range map[string]string{http.MethodGet: getSnapshotPage, http.MethodPost: pathSnapshotPage} {
		handlers := everything()
		handlers[pathSnapshotPage] = pagesBy(method, nil)
		f := newFake(t, handlers)
		c := newClient(t, f, Server{}, anyParty)
		found, err := c.Discover(t.Context())
		require.NoError(t, err)
		require.Equal(t, path, found.SnapshotPath)
		before := len(f.requests())
		ids, reads := readSnapshot(t, c)
		require.Equal(t, []string{"after-", "after-one", "after-two"}, ids)
		require.Equal(t, 3, reads)
		asked := f.requests()
		require.NotContains(t, asked[before].body, "pageToken")
		last := asked[len(asked)-1]
		require.Equal(t, method, last.method)
		require.EqualValues(t, 2000, last.body["maxPageSize"])
		require.Equal(t, "two", last.body["pageToken"])
		require.Equal(t, Offer{Path: path, Presence: Present}, c.Survey(t.Context()).SnapshotPage)
	}

	// Both are there from 3.5.10 on.
	handlers := everything()
	handlers[pathSnapshotPage] = func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, http.MethodPost, r.Method)
		answer(`{"activeContracts":[],"activeAtOffset":0,"nextPageToken":null}`)(w, r)
	}
	found, err := newClient(t, newFake(t, handlers), Server{}, anyParty).Discover(t.Context())
	require.NoError(t, err)
	require.Equal(t, pathSnapshotPage, found.SnapshotPath)
}

// A server that answers 404 has no pages: nothing is asked by GET.
func TestSnapshotPagesAreAskedForByGETOnlyAfter405(t *testing.T) {
	t.Parallel()
	for status, tries := range map[int]int{http.StatusNotFound: 1, http.StatusNotImplemented: 1, http.StatusMethodNotAllowed: 2} {
		var asked atomic.Int64
		handlers := everything()
		handlers[pathSnapshotPage] = func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			plain(status, "no")(w, r)
		}
		found, err := newClient(t, newFake(t, handlers), Server{}, anyParty).Discover(t.Context())
		require.NoError(t, err)
		require.Equal(t, pathSnapshot, found.SnapshotPath)
		require.EqualValues(t, tries, asked.Load(), status)
	}
}

// What stands between may do anything to the body of a GET. Lists do as well, with a word.
func TestSnapshotPagesByGETThatDoNotComeThrough(t *testing.T) {
	t.Parallel()
	for name, proxy := range map[string]http.HandlerFunc{
		"body dropped": plain(http.StatusBadRequest, "Invalid value for: body (exhausted input)"),
		"refused":      plain(http.StatusForbidden, "request blocked"),
		"not allowed":  plain(http.StatusMethodNotAllowed, "no"),
		"a web page":   plain(http.StatusOK, "<html>"),
		"from a cache": answer(`{"activeContracts":[],"activeAtOffset":7,"nextPageToken":null}`),
		"bad gateway":  plain(http.StatusBadGateway, "no"),
		"cut off":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handlers := everything()
			handlers[pathSnapshotPage] = pagesByGET(func(w http.ResponseWriter, r *http.Request) bool {
				proxy(w, r)
				return true
			})
			handlers[pathSnapshot] = entriesFrom(5, 200, true)
			var log strings.Builder
			c := newClient(t, newFake(t, handlers), Server{}, anyParty, func(cfg *Config) {
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			found, err := c.Discover(t.Context())
			require.NoError(t, err)
			require.Equal(t, pathSnapshot, found.SnapshotPath)
			require.Contains(t, log.String(), "what stands between does not let that through")
			ids, _ := readSnapshot(t, c)
			require.Len(t, ids, 5)
			offer := c.Survey(t.Context()).SnapshotPage
			require.Equal(t, Absent, offer.Presence)
			require.ErrorContains(t, offer.Err, "pages by GET with a body")
		})
	}
}

func TestRefusalsOfSnapshotPagesByGET(t *testing.T) {
	t.Parallel()
	handlers := everything()
	refuse := cantonError(http.StatusForbidden, "NA", "A security-sensitive error has been received", "")
	handlers[pathSnapshotPage] = pagesByGET(func(w http.ResponseWriter, r *http.Request) bool {
		refuse(w, r)
		return true
	})
	_, err := newClient(t, newFake(t, handlers), Server{}, anyParty).Discover(t.Context())
	require.Contains(t, problem(t, err), "CanReadAsAnyParty")

	handlers[pathSnapshotPage] = pagesByGET(func(w http.ResponseWriter, r *http.Request) bool {
		cantonError(http.StatusNotFound, "PACKAGE_NAMES_NOT_FOUND", "unknown package", "")(w, r)
		return true
	})
	found, err := newClient(t, newFake(t, handlers), Server{}, anyParty).Discover(t.Context())
	require.NoError(t, err)
	require.Equal(t, getSnapshotPage, found.SnapshotPath)
}

// The proxy between is replaced by one that drops the bodies, after the first page and before it.
func TestSnapshotPagesByGETThatComeThroughNoMore(t *testing.T) {
	t.Parallel()
	var drops atomic.Bool
	handlers := everything()
	handlers[pathSnapshotPage] = pagesByGET(func(w http.ResponseWriter, r *http.Request) bool {
		if drops.Load() {
			plain(http.StatusBadRequest, "Invalid value for: body (exhausted input)")(w, r)
		}
		return drops.Load()
	})
	handlers[pathSnapshot] = entriesFrom(5, 200, true)
	c := newClient(t, newFake(t, handlers), Server{}, anyParty)
	begun, err := c.ReadSnapshot(t.Context(), 9, ledger.Token{})
	require.NoError(t, err)
	require.Equal(t, ledger.Token{Kind: ledger.TokenPage, Value: "one"}, begun.Next)

	drops.Store(true)
	_, err = c.ReadSnapshot(t.Context(), 9, ledger.Token{})
	require.Contains(t, retryable(t, err).Body, "exhausted input")
	require.ErrorContains(t, err, "the next read discovers its paths again")
	ids, _ := readSnapshot(t, c)
	require.Len(t, ids, 5)
	_, err = c.ReadSnapshot(t.Context(), 9, begun.Next)
	require.Contains(t, problem(t, err), "was begun with GET /v2/state/active-contracts-page")
	require.Contains(t, problem(t, err), "--restart")

	drops.Store(false)
	c = newClient(t, newFake(t, handlers), Server{}, anyParty)
	page, err := c.ReadSnapshot(t.Context(), 9, begun.Next)
	require.NoError(t, err, "another process continues")
	require.Equal(t, "after-one", page.Entries[0].Active.Created.ContractID)
}

// A failure that may pass changes nothing for a client that has read pages by GET.
func TestSnapshotPagesByGETAreKept(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	handlers := everything()
	handlers[pathSnapshotPage] = pagesByGET(func(w http.ResponseWriter, r *http.Request) bool {
		if status.Load() != 0 {
			plain(int(status.Load()), "later")(w, r)
		}
		return status.Load() != 0
	})
	c := newClient(t, newFake(t, handlers), Server{}, anyParty)
	_, err := c.Discover(t.Context())
	require.NoError(t, err)
	for _, passing := range []int64{http.StatusServiceUnavailable, http.StatusForbidden} {
		status.Store(passing)
		_, err = c.Discover(t.Context())
		_ = retryable(t, err)
	}
	status.Store(0)
	found, err := c.Discover(t.Context())
	require.NoError(t, err)
	require.Equal(t, getSnapshotPage, found.SnapshotPath)
}
