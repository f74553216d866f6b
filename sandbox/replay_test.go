package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestReplayOfRecordings(t *testing.T) {
	t.Parallel()
	dir := recorded.Beside(t, "recorded")
	file := filepath.Join(dir, "updates-ledger-effects-31.json")
	r, err := LoadReplay(file, filepath.Join(dir, "active-contracts-6.json"))
	require.NoError(t, err)
	require.EqualValues(t, 31, r.End())
	c := serve(t, r, ServerOptions{})
	list := c.post("/v2/updates", `{"endInclusive":31,"updateFormat":%s}`, allUpdates).list()
	var recorded []map[string]any
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &recorded))
	require.Len(t, list, 31)
	created, exercised, consuming, transient := 0, 0, 0, 0
	for i, u := range list {
		_, was := updateOf(t, recorded[i])
		_, is := updateOf(t, u)
		shift(was)
		born := map[any]bool{}
		for _, event := range was["events"].([]any) {
			name, e := variant(t, event)
			shift(e)
			if name == "CreatedEvent" {
				created++
				born[e["contractId"]] = true
				continue
			}
			exercised++
			if e["consuming"] == true {
				consuming++
				if born[e["contractId"]] {
					transient++
				}
			}
		}
		sortSets(was)
		require.Equal(t, was, is, "update %d is served as it was recorded, its offsets moved by one", i)
	}
	require.Equal(t, []int{59, 98, 47, 12}, []int{created, exercised, consuming, transient})

	entries := c.post("/v2/state/active-contracts", `{"activeAtOffset":31,"eventFormat":%s}`, anyParty).list()
	require.Len(t, entries, 6)
	views := 0
	for i, e := range entries {
		_, body := variant(t, e["contractEntry"])
		event := body["createdEvent"].(map[string]any)
		require.EqualValues(t, i, event["nodeId"])
		require.True(t, strings.HasPrefix(event["contractId"].(string), "snapshot-1:"))
		views += len(event["interfaceViews"].([]any))
	}
	require.Equal(t, 10, views)
	rest := c.post("/v2/state/active-contracts", `{"activeAtOffset":31,"eventFormat":%s,"streamContinuationToken":%q}`, anyParty, entries[3]["streamContinuationToken"]).list()
	require.Equal(t, entries[4:], rest)
	one := c.post("/v2/updates/update-by-id", `{"updateId":"update-7","updateFormat":%s}`, allUpdates).object()
	require.Equal(t, list[7], one)
	checkpoint := serve(t, r, ServerOptions{CheckpointInterval: 1}).post("/v2/updates?limit=1", `{"beginExclusive":31,"updateFormat":%s}`, allUpdates).list()
	_, value := updateOf(t, checkpoint[0])
	require.EqualValues(t, 31, value["offset"])
}

// shift moves the offset that an object has.
func shift(o map[string]any) { o["offset"] = o["offset"].(float64) + 1 }

// What a grown ledger served can be replayed: every kind of update and entry.
func TestReplayOfWhatWasServed(t *testing.T) {
	t.Parallel()
	l := inFlightAtEnd(t)
	c := serve(t, l, ServerOptions{ListLimit: 100_000})
	updates := c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates)
	entries := c.post("/v2/state/active-contracts", `{"activeAtOffset":%d,"eventFormat":%s}`, l.End(), anyParty)
	r, err := LoadReplay(writeFile(t, "u.json", string(updates.body)), writeFile(t, "a.json", string(entries.body)))
	require.NoError(t, err)
	require.Equal(t, l.Offset(l.Len()-1), r.End())
	again := serve(t, r, ServerOptions{ListLimit: 100_000})
	require.JSONEq(t, string(updates.body), string(again.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, r.End(), allUpdates).body))
	served := again.post("/v2/state/active-contracts", `{"activeAtOffset":%d,"eventFormat":%s}`, r.End(), anyParty).list()
	require.Len(t, served, len(entries.list()))
	for _, e := range served {
		_, body := variant(t, e["contractEntry"])
		if u, ok := body["unassignedEvent"].(map[string]any); ok {
			require.Equal(t, body["createdEvent"].(map[string]any)["contractId"], u["contractId"])
		}
	}
}

func TestReplayRefusesWhatIsNoRecording(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:               "unexpected end",
		`[]`:              "nothing in them",
		`[{"a":1}]`:       "neither updates nor active contracts",
		`[{"update":{}}]`: "the update has no offset",
		`[{"update":{"Transaction":{"value":{"offset":3}}}},{"update":{"Transaction":{"value":{"offset":3}}}}]`: "offset 1 does not grow",
	} {
		_, err := LoadReplay(writeFile(t, "r.json", text))
		require.ErrorContains(t, err, want, text)
	}
	_, err := LoadReplay("/does/not/exist")
	require.ErrorContains(t, err, "load a recording")
}
