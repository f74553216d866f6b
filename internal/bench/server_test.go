package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/sandbox"
)

// madeUpdates is a small data set of updates.
func madeUpdates(t *testing.T, o updatesOptions) (*dataset, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "updates")
	require.NoError(t, buildUpdates(t.Context(), name, o))
	d, err := openDataset(name)
	require.NoError(t, err)
	return d, name
}

// answer is what a handler says to a request; a body of "" is that of a GET.
func answer(t *testing.T, h http.Handler, path, body string) (status int, text string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// What is served is, byte for byte, what the simulated server answers itself: lists, pages, single updates, refusals.
func TestParticipantAnswersAsTheSimulatedServer(t *testing.T) {
	const n = 700
	d, _ := madeUpdates(t, updatesOptions{N: n, Events: 3, Shape: sandbox.ACSDelta})
	l := sandbox.NewLedger(sandbox.Options{Seed: seed, EventsPerUpdate: 3})
	l.Grow(n)
	end := l.Offset(n - 1)
	require.Equal(t, end, d.end())
	format := sandbox.Scope{}.UpdateFormat()
	for _, version := range []string{"3.4", "3.5"} {
		pages := version == "3.5"
		// The data is as 3.5 sends it; only what a release has differs, and how it refuses.
		ours, theirs := newParticipant(d, pages), sandbox.NewServer(l, sandbox.ServerOptions{})
		same := func(path, body string) {
			t.Helper()
			wantStatus, want := answer(t, theirs, path, body)
			status, got := answer(t, ours, path, body)
			require.Equal(t, wantStatus, status, "%s %s", path, body)
			if status == http.StatusOK {
				require.Equal(t, withoutToken(t, want), withoutToken(t, got), "%s %s", path, body)
			}
		}
		middle := d.offset(d.len() / 2)
		for _, bounds := range [][2]int64{{0, end}, {0, 1}, {middle, middle + 1}, {middle - 1, middle}, {middle, end}, {end - 1, end}} {
			for _, limit := range []string{"?limit=200", "?limit=1", "?limit=201", "", "?limit=0"} {
				same(pathUpdates+limit, fmt.Sprintf(`{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, bounds[0], bounds[1], format))
			}
			for _, size := range []int{1, 7, 200, pageSize} {
				body := fmt.Sprintf(`{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":%d,"updateFormat":%s}`, bounds[0], bounds[1], size, format)
				if pages {
					same(pathUpdatesPage, body)
				} else {
					status, _ := answer(t, ours, pathUpdatesPage, body)
					require.Equal(t, http.StatusNotFound, status)
				}
			}
		}
		same(pathUpdates+"?limit=5", fmt.Sprintf(`{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, end, l.End()+1, format))
		same(pathUpdateByID, fmt.Sprintf(`{"updateId":%q,"updateFormat":%s}`, l.UpdateID(17), format))
		same("/v2/parties/participant-id", "")
		status, got := answer(t, ours, pathLedgerEnd, "")
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, fmt.Sprintf(`{"offset":%d}`, end), got)
	}
}

// A page that is full and has nothing behind it is the last one, and covers all that was asked for.
func TestFullLastPage(t *testing.T) {
	d, _ := madeUpdates(t, updatesOptions{N: 50, Events: 1, Shape: sandbox.ACSDelta})
	beyond := 20 // behind the updates up to here there is a gap
	for d.offset(beyond) == d.offset(beyond-1)+1 {
		beyond++
	}
	body := fmt.Sprintf(`{"beginOffsetExclusive":0,"endOffsetInclusive":%d,"maxPageSize":%d}`, d.offset(beyond)-1, beyond)
	_, got := answer(t, newParticipant(d, true), pathUpdatesPage, body)
	require.Contains(t, got, fmt.Sprintf(`"highestPageOffsetInclusive":%d,"nextPageToken":null}`, d.offset(beyond)-1))
}

// withoutToken is an answer without the token of the next page, but with whether there is one: each server has its own.
func withoutToken(t *testing.T, body string) string {
	t.Helper()
	head, tail, found := strings.Cut(body, `,"nextPageToken":`)
	if !found {
		return body
	}
	require.True(t, tail == "null}" || strings.HasPrefix(tail, `"`), tail)
	return head + fmt.Sprint(tail == "null}")
}

// The rows that a data set says it must leave are those that the simulated ledger says itself.
func TestUpdatesAreCounted(t *testing.T) {
	const n = 900
	for _, shape := range []string{sandbox.ACSDelta, sandbox.LedgerEffects} {
		d, _ := madeUpdates(t, updatesOptions{N: n, Events: 4, Shape: shape})
		l := sandbox.NewLedger(sandbox.Options{Seed: seed, EventsPerUpdate: 4})
		l.Grow(n)
		truth := l.Truth(sandbox.Scope{Shape: shape}, l.End())
		for relation, table := range map[string]string{
			"updates": "updates", "created_events": "created", "archived_events": "archived", "exercised_events": "exercised",
			"reassignments": "reassignments", "topology_events": "topology_events",
		} {
			if relation == "archived_events" && shape == sandbox.LedgerEffects {
				require.Zero(t, d.Rows[table], "they are exercises that consume")
				continue
			}
			require.EqualValues(t, len(truth[relation]), d.Rows[table], "%s, %s", shape, table)
		}
	}
}

func TestSnapshotPagesAreWhole(t *testing.T) {
	const n = 2500
	name := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, buildSnapshot(t.Context(), name, n))
	d, err := openDataset(name)
	require.NoError(t, err)
	require.Equal(t, n, d.len())
	h := newSnapshotServer(d)
	var contracts int
	token := ""
	for page := 0; page == 0 || token != ""; page++ {
		status, body := answer(t, h, pathSnapshotPage, fmt.Sprintf(`{"activeAtOffset":%d,"maxPageSize":999,"pageToken":%q}`, d.end(), token))
		require.Equal(t, http.StatusOK, status)
		var got struct {
			ActiveContracts []json.RawMessage
			NextPageToken   string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		for _, entry := range got.ActiveContracts {
			require.Equal(t, string(d.slice(contracts, contracts+1)), string(entry))
			contracts++
		}
		token = got.NextPageToken
		require.Less(t, page, 4)
	}
	require.Equal(t, n, contracts)
}

// The history is read as from the simulated service, event ids that two records share included.
func TestHistoryAnswersAsTheSimulatedService(t *testing.T) {
	const n = 300
	name := filepath.Join(t.TempDir(), "history")
	require.NoError(t, buildHistory(t.Context(), name, n))
	d, err := openDataset(name)
	require.NoError(t, err)
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(20_000)
	theirs := sandbox.NewScan(l, sandbox.ScanOptions{})
	ids := theirs.EventIDs()
	theirs.SetLag(len(ids) - n)
	ours := newHistoryServer(d)
	statuses := map[int]int{}
	for _, body := range append(requestsAfter(ids[:n]), `{"page_size":1000,"sort_order":"asc"}`, `{"page_size":5,"sort_order":"desc"}`,
		`{"page_size":5,"sort_order":"asc","page_end_event_id":"#nothing:1"}`, `{"page_size":1000,"sort_order":"desc"}`) {
		wantStatus, want := answer(t, theirs, historyPath, body)
		status, got := answer(t, ours, historyPath, body)
		require.Equal(t, wantStatus, status, body)
		require.Equal(t, want, got, body)
		statuses[status]++
	}
	require.Positive(t, statuses[http.StatusInternalServerError], "no two records have the same id")
}

func requestsAfter(ids []string) (bodies []string) {
	for _, id := range ids {
		bodies = append(bodies, fmt.Sprintf(`{"page_size":7,"sort_order":"asc","page_end_event_id":%q}`, id))
	}
	return bodies
}

// Copies differ from the data set in offsets and ids and in nothing else, and no id comes twice.
func TestCopies(t *testing.T) {
	d, _ := madeUpdates(t, updatesOptions{N: 300, Events: 1, Shape: sandbox.ACSDelta, First: growthFirst})
	c := newCopies(d, 3)
	require.Equal(t, 3*d.len(), c.len())
	require.Equal(t, string(d.slice(0, d.len())), string(c.slice(0, d.len())), "the first copy is the data set")
	updates := map[string]bool{}
	created, archived := map[string]int64{}, map[string]bool{}
	for i := range c.len() {
		offset := c.offset(i)
		require.Equal(t, i, c.after(offset-1))
		require.Equal(t, i+1, c.after(offset))
		var element struct {
			Update map[string]struct{ Value map[string]any }
		}
		text := c.slice(i, i+1)
		require.NoError(t, json.Unmarshal(text, &element))
		for _, u := range element.Update {
			require.EqualValues(t, offset, u.Value["offset"])
			id, _ := u.Value["updateId"].(string)
			require.False(t, updates[id], "update id %s comes twice", id)
			place, ok := c.find("updateId", id)
			require.True(t, ok)
			require.Equal(t, i, place)
			updates[id] = true
			for _, e := range u.Value["events"].([]any) {
				for kind, fields := range e.(map[string]any) {
					id, _ := fields.(map[string]any)["contractId"].(string)
					switch kind {
					case "CreatedEvent":
						require.NotContains(t, created, id)
						created[id] = offset
					case "ArchivedEvent":
						require.Contains(t, created, id, "archived at %d and never created", offset)
						require.False(t, archived[id])
						archived[id] = true
					}
				}
			}
		}
	}
	require.NotEmpty(t, archived)
	require.Zero(t, c.after(growthFirst-1))
	require.Zero(t, c.after(0))
	require.Equal(t, c.len(), c.after(c.end()))
	across := string(c.slice(d.len()-2, d.len()+2))
	require.Equal(t, string(c.slice(d.len()-2, d.len()))+","+string(c.slice(d.len(), d.len()+2)), across)
}

func TestMeterCounts(t *testing.T) {
	m := newMeter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fprint(w, "12345") }), time.Microsecond)
	answer(t, m, "/a", "")
	answer(t, m, "/a", "{}")
	answer(t, m, "/b", "")
	_, told := answer(t, m, pathStats, "")
	var s stats
	require.NoError(t, json.Unmarshal([]byte(told), &s))
	require.Equal(t, stats{Requests: map[string]int64{"/a": 2, "/b": 1}, Bytes: 15}, s)
	require.EqualValues(t, 3, s.total())
}
