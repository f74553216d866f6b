package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
)

// The trees are the updates in the LEDGER_EFFECTS shape without topology, their events
// by node id.
func TestUpdateTrees(t *testing.T) {
	t.Parallel()
	const treesPath = "/v2/updates/trees"
	l := inFlightAtEnd(t)
	for _, version := range []string{"3.4", "3.5"} {
		c := serve(t, l, ServerOptions{Version: version, ListLimit: 100_000})
		bounds := fmt.Sprintf(`"endInclusive":%d`, l.End())
		filter := `{"filtersForAnyParty":{"cumulative":[{"identifierFilter":{"InterfaceFilter":{"value":{"interfaceId":"` + InterfaceNames()[0] + `","includeInterfaceView":true}}}}]}}`
		trees := c.post(treesPath, `{%s,"filter":%s,"verbose":true}`, bounds, filter).list()
		format := `{"includeTransactions":{"transactionShape":"TRANSACTION_SHAPE_LEDGER_EFFECTS","eventFormat":%[1]s},"includeReassignments":%[1]s}`
		both := fmt.Sprintf(`{"filtersForAnyParty":{"cumulative":[%s,%s]}}`,
			`{"identifierFilter":{"InterfaceFilter":{"value":{"interfaceId":"`+InterfaceNames()[0]+`","includeInterfaceView":true}}}}`,
			`{"identifierFilter":{"WildcardFilter":{"value":{}}}}`)
		flat := c.post("/v2/updates", `{%s,"updateFormat":%s}`, bounds, fmt.Sprintf(format, both)).list()
		require.Len(t, trees, len(flat))
		kinds := map[string]int{}
		for i, u := range flat {
			kind, want := updateOf(t, u)
			served, got := updateOf(t, trees[i])
			kinds[served]++
			if kind != "Transaction" {
				require.Equal(t, u, trees[i])
				continue
			}
			require.Equal(t, "TransactionTree", served)
			byID := got["eventsById"].(map[string]any)
			require.Len(t, byID, len(want["events"].([]any)))
			for _, raw := range want["events"].([]any) {
				name, e := variant(t, raw)
				name = map[string]string{"CreatedEvent": "CreatedTreeEvent", "ExercisedEvent": "ExercisedTreeEvent"}[name]
				require.Equal(t, map[string]any{name: map[string]any{"value": e}}, byID[fmt.Sprint(e["nodeId"])])
			}
			for _, key := range []string{"events", "externalTransactionHash", "paidTrafficCost"} {
				delete(want, key)
			}
			delete(got, "eventsById")
			require.Equal(t, want, got)
		}
		require.Positive(t, kinds["TransactionTree"])
		require.Positive(t, kinds["Reassignment"])

		template := `{"filtersByParty":{"a":{"cumulative":[{"identifierFilter":{"TemplateFilter":{"value":{"templateId":"` + TemplateNames()[0] + `"}}}}]}}}`
		c.post(treesPath, `{%s,"filter":%s}`, bounds, template).refused(400, "INVALID_ARGUMENT")
		c.post(treesPath, `{%s,"updateFormat":%s}`, bounds, allUpdates).refused(400, "INVALID_ARGUMENT")
		c.post(treesPath, `{%s}`, bounds).refused(400, "INVALID_ARGUMENT")
		require.Equal(t, 400, c.post(treesPath, `{%s,"filter":7}`, bounds).status)
		tail := c.post(treesPath+"?limit=1", `{"beginExclusive":%d,"filter":%s}`, l.Offset(l.Len()-3), anyParty).list()
		require.Len(t, tail, 1)
	}
	for _, opts := range []ServerOptions{{Version: "3.6"}, {StrictInterface: true}} {
		require.Equal(t, http.StatusNotFound, serve(t, l, opts).post(treesPath, `{}`).status)
	}
}

func TestUpdateTreesOfARecording(t *testing.T) {
	t.Parallel()
	file := recorded.Beside(t, "recorded/updates-ledger-effects-31.json")
	r, err := LoadReplay(file)
	require.NoError(t, err)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var recorded []map[string]any
	require.NoError(t, json.Unmarshal(data, &recorded))
	trees := serve(t, r, ServerOptions{}).post("/v2/updates/trees", `{"endInclusive":31,"filter":%s}`, anyParty).list()
	require.Len(t, trees, len(recorded))
	for i, u := range trees {
		_, was := updateOf(t, recorded[i])
		kind, is := updateOf(t, u)
		require.Equal(t, "TransactionTree", kind)
		require.Len(t, is["eventsById"], len(was["events"].([]any)))
	}
}
