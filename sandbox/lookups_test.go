package sandbox

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

func (c *client) contract(id string, parties ...string) answer {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"contractId": id, "queryingParties": parties})
	require.NoError(c.t, err)
	return c.do(http.MethodPost, "/v2/contracts/contract-by-id", string(body))
}

func (a answer) created() map[string]any {
	a.t.Helper()
	return a.object()["createdEvent"].(map[string]any)
}

func TestArchivedContractsAreFoundUntilPruned(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 600)
	c := serve(t, l, ServerOptions{})
	at := l.Offset(400)
	truth := l.Truth(Scope{Shape: LedgerEffects}, at)
	active, gone := map[string]bool{}, map[string]bool{}
	for _, row := range truth["active_contracts"] {
		active[row["contract_id"].(string)] = true
	}
	for _, row := range truth["exercised_events"] {
		if row["consuming"] == true {
			gone[row["contract_id"].(string)] = true
		}
	}
	require.Greater(t, len(gone), 100)
	if brief.Run() {
		for _, ids := range []map[string]bool{active, gone} {
			maps.DeleteFunc(ids, func(string, bool) bool { return len(ids) > 30 })
		}
	}
	for id := range gone {
		require.Equal(t, id, c.contract(id).created()["contractId"])
	}
	require.NoError(t, l.Prune(at))
	for id := range gone {
		c.contract(id).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	}
	for id := range active {
		require.Equal(t, id, c.contract(id).created()["contractId"])
	}
	later := string(l.contractID(nil, int32(len(l.view().contracts)-1)))
	require.Equal(t, later, c.contract(later).created()["contractId"])
}

// A contract that is only divulged is pruned with the update that divulged it.
func TestDivulgedContractsArePruned(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 1}, 600)
	c := serve(t, l, ServerOptions{})
	v := l.view()
	number := int32(slices.IndexFunc(v.contracts, func(c contract) bool { return c.flags&flagDivulged != 0 }))
	u := v.updates[v.contracts[number].created]
	require.Equal(t, 1, len(slices.DeleteFunc(slices.Clone(v.events[u.first:u.first+u.count]), func(e event) bool { return e.contract != number })),
		"it is not archived at once")
	id := string(l.contractID(nil, number))
	require.NoError(t, l.Prune(u.offset-1))
	require.Equal(t, id, c.contract(id).created()["contractId"])
	c.contract(id, l.Parties()...).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
	require.NoError(t, l.Prune(u.offset))
	c.contract(id).refused(404, "CONTRACT_PAYLOAD_NOT_FOUND")
}
