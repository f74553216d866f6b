package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

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
