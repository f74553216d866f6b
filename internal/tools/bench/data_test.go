package bench

import (
	"encoding/json"
	"io"
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

// The rows that a data set says it must leave are those that the simulated ledger says itself.
func TestUpdatesAreCounted(t *testing.T) {
	const n = 900
	for _, shape := range []string{sandbox.ACSDelta, sandbox.LedgerEffects} {
		d, _ := madeUpdates(t, updatesOptions{N: n, Events: 4, Shape: shape})
		l := sandbox.NewLedger(sandbox.Options{Seed: seed, EventsPerUpdate: 4})
		l.Grow(n)
		truth := l.Truth(sandbox.Scope{Shape: shape}, l.End())
		for relation := range truth {
			table := strings.TrimSuffix(relation, "_events")
			switch relation {
			case "active_contracts":
				continue // they follow from the events
			case "topology_events":
				table = relation
			}
			if relation == "archived_events" && shape == sandbox.LedgerEffects {
				require.Zero(t, d.Rows[table], "they are exercises that consume")
				continue
			}
			require.EqualValues(t, len(truth[relation]), d.Rows[table], "%s, %s", shape, table)
		}
	}
}

// Copies differ from the data set in offsets and ids and in nothing else, and no id comes twice.
func TestCopies(t *testing.T) {
	d, _ := madeUpdates(t, updatesOptions{N: 300, Events: 1, Shape: sandbox.ACSDelta, First: growthFirst})
	c := newCopies(d, 3, later{})
	require.Equal(t, 3*d.Len(), c.Len())
	d.index("updateId")
	updates := map[string]bool{}
	created, archived := map[string]int64{}, map[string]bool{}
	for i := range c.Len() {
		offset := c.Offset(i)
		require.Equal(t, i, c.After(offset-1))
		require.Equal(t, i+1, c.After(offset))
		var element struct {
			Update map[string]struct{ Value map[string]any }
		}
		text := c.Element(i)
		if i < d.Len() {
			require.Equal(t, string(d.Element(i)), string(text), "the first copy is the data set")
		}
		require.NoError(t, json.Unmarshal(text, &element))
		for _, u := range element.Update {
			require.EqualValues(t, offset, u.Value["offset"])
			id, _ := u.Value["updateId"].(string)
			require.False(t, updates[id], "update id %s comes twice", id)
			place, ok := c.Named(id)
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
	require.Zero(t, c.After(growthFirst-1))
	require.Zero(t, c.After(0))
	require.Equal(t, c.Len(), c.After(c.End()))
}

// Copies that follow each other in time are later by the same time and rounds, and records have other event ids too.
func TestCopiesAreLater(t *testing.T) {
	name := filepath.Join(t.TempDir(), "records")
	l := sandbox.NewLedger(sandbox.Options{Seed: seed})
	l.Grow(600)
	o := sandbox.ScanOptions{BalanceChanges: true}
	require.NoError(t, buildRecords(t.Context(), name, l, o, len(sandbox.NewScan(l, o).EventIDs())))
	d, err := openDataset(name)
	require.NoError(t, err)
	d.index("event_id")
	type record struct {
		EventID string `json:"event_id"`
		Date    time.Time
		Round   *int64
	}
	read := func(text []byte) (r record) {
		require.NoError(t, json.Unmarshal(text, &r))
		return r
	}
	c := newCopies(d, 12, later{Time: 90 * time.Minute, Rounds: 7})
	ids := map[string]bool{}
	for i := range d.Len() {
		first, last := read(c.Element(i)), read(c.Element(11*d.Len()+i))
		require.Equal(t, string(d.Element(i)), string(c.Element(i)), "the first copy is the data set")
		require.Equal(t, 11*90*time.Minute, last.Date.Sub(first.Date))
		require.Equal(t, first.Round == nil, last.Round == nil)
		if first.Round != nil {
			require.EqualValues(t, 77, *last.Round-*first.Round)
		}
		require.NotEqual(t, first.EventID, last.EventID)
		at, ok := c.Named(last.EventID)
		require.True(t, ok)
		if one, _ := d.Named(first.EventID); one < 0 {
			require.Negative(t, at, "two records share the id")
		} else {
			require.Equal(t, 11*d.Len()+i, at)
		}
		ids[first.EventID], ids[last.EventID] = true, true
	}
	require.Greater(t, len(ids), d.Len())
}

func TestMeterCounts(t *testing.T) {
	m := newRequestCounter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "12345") }))
	answer(t, m, "/a", "")
	answer(t, m, "/a", "{}")
	answer(t, m, "/b", "")
	_, told := answer(t, m, pathStats, "")
	var s stats
	require.NoError(t, json.Unmarshal([]byte(told), &s))
	require.Equal(t, stats{Requests: map[string]int64{"/a": 2, "/b": 1}, Bytes: 15}, s)
	require.EqualValues(t, 3, s.total())
}
