package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// made are elements that a server sent.
type made struct {
	elements []Element
	end      int64
	ids      []string
}

func (m *made) Len() int             { return len(m.elements) }
func (m *made) End() int64           { return m.end }
func (m *made) Offset(i int) int64   { return m.elements[i].Offset }
func (m *made) Element(i int) []byte { return m.elements[i].Raw }
func (m *made) After(offset int64) int {
	return sort.Search(len(m.elements), func(i int) bool { return m.elements[i].Offset > offset })
}

func (m *made) Named(id string) (at int, ok bool) {
	for i := range m.ids {
		switch {
		case m.ids[i] != id:
		case ok:
			return -1, true
		default:
			at, ok = i, true
		}
	}
	return at, ok
}

// keep is a Rewrite that keeps what is sent.
func (m *made) keep(e Element) []byte {
	e.Raw = bytes.Clone(e.Raw)
	m.elements = append(m.elements, e)
	return e.Raw
}

func said(t *testing.T, h http.Handler, path, body string) (status int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// What was prepared comes out as the ledger that it was made from sends it: lists, pages, single updates and refusals.
func TestPreparedUpdatesAreServedAsTheLedgers(t *testing.T) {
	t.Parallel()
	const n = 700
	l := NewLedger(Options{Seed: 5, EventsPerUpdate: 3})
	l.Grow(n)
	format := Scope{}.UpdateFormat()
	data := &made{end: l.End()}
	for from := int64(0); from < l.End(); from = data.elements[len(data.elements)-1].Offset {
		before := len(data.elements)
		_, _ = said(t, NewServer(l, ServerOptions{Rewrite: data.keep}), "/v2/updates/get-updates-page",
			fmt.Sprintf(`{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":2000,"updateFormat":%s}`, from, l.End(), format))
		if len(data.elements) == before {
			break
		}
	}
	for _, e := range data.elements {
		var element struct {
			Update map[string]struct {
				Value struct{ UpdateID string }
			}
		}
		require.NoError(t, json.Unmarshal(e.Raw, &element))
		for _, u := range element.Update {
			data.ids = append(data.ids, u.Value.UpdateID)
		}
	}
	require.Greater(t, data.Len(), n/2)
	for _, version := range []string{"3.4", "3.5"} {
		// The elements are as 3.5 sends them; only paths differ, and how a release refuses.
		ours, theirs := NewServer(NewPrepared(data, nil), ServerOptions{Version: version}), NewServer(l, ServerOptions{})
		same := func(path, body string) {
			t.Helper()
			wantStatus, want := said(t, theirs, path, body)
			status, got := said(t, ours, path, body)
			require.Equal(t, wantStatus, status, "%s %s", path, body)
			if status == http.StatusOK {
				require.Equal(t, withoutToken(t, want), withoutToken(t, got), "%s %s", path, body)
			}
		}
		end, middle := l.End(), data.Offset(data.Len()/2)
		for _, bounds := range [][2]int64{{0, end}, {0, 1}, {middle, middle + 1}, {middle - 1, middle}, {middle, end}, {end - 1, end}, {end, end + 1}} {
			for _, limit := range []string{"?limit=200", "?limit=1", "?limit=201", "", "?limit=0"} {
				same("/v2/updates"+limit, fmt.Sprintf(`{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, bounds[0], bounds[1], format))
			}
			if version == "3.4" {
				continue
			}
			for _, size := range []int{1, 7, 200, 2000} {
				same("/v2/updates/get-updates-page", fmt.Sprintf(`{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":%d,"updateFormat":%s}`,
					bounds[0], bounds[1], size, format))
			}
		}
		same("/v2/updates/update-by-id", fmt.Sprintf(`{"updateId":%q,"updateFormat":%s}`, data.ids[17], format))
		same("/v2/updates/update-by-id", fmt.Sprintf(`{"updateId":%q,"updateFormat":%s}`, "1220"+strings.Repeat("0", 64), format))
	}
}

// withoutToken decodes an answer, but for a token: that is good for the server that made it.
func withoutToken(t *testing.T, body string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	sortSets(v)
	if page, ok := v.(map[string]any); ok && page["nextPageToken"] != nil {
		page["nextPageToken"] = "some"
	}
	return v
}

// The pages of a prepared snapshot hold every entry once, and there is none at any other offset.
func TestPreparedSnapshotIsServedInPages(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 5, ActiveShare: 1})
	l.Grow(1500)
	data := &made{end: l.End()}
	ask := func(h http.Handler, at int64, size int, token string) (status int, entries []json.RawMessage, next string) {
		status, body := said(t, h, "/v2/state/active-contracts-page",
			fmt.Sprintf(`{"activeAtOffset":%d,"maxPageSize":%d,"pageToken":%q,"eventFormat":%s}`, at, size, token, Scope{}.EventFormat()))
		var page struct {
			ActiveContracts []json.RawMessage
			NextPageToken   string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &page), body)
		return status, page.ActiveContracts, page.NextPageToken
	}
	_, _, next := ask(NewServer(l, ServerOptions{Rewrite: data.keep}), l.End(), 10_000, "")
	require.Empty(t, next, "the first page must hold all")
	ours := NewServer(NewPrepared(nil, data), ServerOptions{})
	var got []json.RawMessage
	for token := ""; ; {
		status, entries, next := ask(ours, l.End(), 99, token)
		require.Equal(t, http.StatusOK, status)
		got = append(got, entries...)
		if token = next; token == "" {
			break
		}
		require.Len(t, entries, 99)
	}
	require.Len(t, got, data.Len())
	for i := range got {
		require.Equal(t, string(data.Element(i)), string(got[i]))
	}
	status, _, _ := ask(ours, l.End()-1, 99, "")
	require.Equal(t, http.StatusBadRequest, status)
}

// A prepared history of transactions is read as the ledger's, event ids that two records share included.
func TestPreparedTransactionsAreServedAsTheLedgers(t *testing.T) {
	t.Parallel()
	l := NewLedger(Options{Seed: 1})
	l.Grow(2000)
	theirs := NewScan(l, ScanOptions{})
	data := &made{ids: theirs.EventIDs()}
	keeping := NewScan(l, ScanOptions{Rewrite: data.keep, PageLimit: 1 << 20})
	_, _ = said(t, keeping, pathTransactions, `{"page_size":1000000}`)
	require.Len(t, data.ids, data.Len())
	ours := NewPreparedScan(data)
	bodies := []string{`{"page_size":1000,"sort_order":"asc"}`, `{"page_size":5,"sort_order":"desc"}`, `{"page_size":1000,"sort_order":"desc"}`,
		`{"page_size":5,"page_end_event_id":"#nothing:1"}`, `{"page_size":0}`}
	for _, id := range data.ids {
		bodies = append(bodies, fmt.Sprintf(`{"page_size":7,"page_end_event_id":%q}`, id), fmt.Sprintf(`{"page_size":3,"sort_order":"desc","page_end_event_id":%q}`, id))
	}
	statuses := map[int]int{}
	for _, body := range bodies {
		wantStatus, want := said(t, theirs, pathTransactions, body)
		status, got := said(t, ours, pathTransactions, body)
		require.Equal(t, wantStatus, status, body)
		require.Equal(t, want, got, body)
		statuses[status]++
	}
	require.Positive(t, statuses[http.StatusInternalServerError], "no two records have the same id")
}
