package ledger

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/recorded"
)

// recordedKinds are the oracles of the operations whose answers this package decodes.
var recordedKinds = map[string]string{
	"/v2/updates": "list", "/v2/updates/flats": "list", "/v2/updates/get-updates-page": "page",
	"/v2/updates/update-by-id":   "update",
	"/v2/state/active-contracts": "entries", "/v2/state/active-contracts-page": "contract page",
	"/v2/contracts/contract-by-id": "contract", "/v2/package-vetting/list": "vetted",
}

// Every answer of a real participant decodes, and the server's JSON can be rebuilt of it key by key.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	read := map[string]int{}
	for _, e := range recorded.Exchanges(t) {
		path, _, _ := strings.Cut(e.Path, "?")
		kind := recordedKinds[path]
		if kind == "" || e.Status != 200 {
			continue
		}
		read[kind]++
		requireRead(t, kind, []byte(e.Answer))
	}
	require.Equal(t, map[string]int{
		"list": 8, "page": 7, "update": 2, "entries": 10, "contract page": 1, "contract": 1, "vetted": 3,
	}, read)
}

// The long answers with updates hold what the ledger was made of, in both shapes, and nothing that this project does
// not know.
func TestRecordedUpdates(t *testing.T) {
	t.Parallel()
	both := map[string]int{
		"reassignment": 10, "unassigned": 7, "assigned": 7, "created by assignment": 7, "topology": 20,
		"topology events": 20, "keys": 5,
	}
	got := map[string]map[string]int{}
	for _, e := range recorded.Exchanges(t) {
		switch {
		case len(e.Answer) < 1_000_000:
		case e.Path == "/v2/updates":
			list, err := DecodeUpdateList([]byte(e.Answer), 0)
			require.NoError(t, err)
			got["list"] = tally(t, list)
		default:
			page, err := DecodeUpdatePage([]byte(e.Answer), 0)
			require.NoError(t, err)
			require.Equal(t, []Offset{0, 519}, []Offset{page.Lowest, page.Highest})
			shape := ShapeACSDelta
			if strings.Contains(e.Request, "LEDGER_EFFECTS") {
				shape = ShapeLedgerEffects
			}
			got["page, "+string(shape)] = tally(t, page.UpdateList)
		}
	}
	with := func(more map[string]int) map[string]int {
		maps.Copy(more, both)
		return more
	}
	require.Equal(t, map[string]map[string]int{
		"list":            {"checkpoints": 1, "transaction": 82, "created": 664, "exercised": 377, "keys": 5},
		"page, acs-delta": with(map[string]int{"transaction": 79, "created": 589, "archived": 269}),
		"page, ledger-effects": with(map[string]int{
			"transaction": 82, "created": 664, "exercised": 377, "views": 12, "blobs": 671,
		}),
	}, got)
}

// tally counts what a list holds, and requires that it holds nothing unknown.
func tally(t *testing.T, list UpdateList) map[string]int {
	t.Helper()
	n := map[string]int{"checkpoints": len(list.Checkpoints)}
	for _, u := range list.Updates {
		require.Nil(t, u.Extra)
		require.Empty(t, u.Unknown)
		n[string(u.Kind)]++
		n["archived"] += len(u.Archived)
		n["exercised"] += len(u.Exercised)
		n["assigned"] += len(u.Assigned)
		n["unassigned"] += len(u.Unassigned)
		n["topology events"] += len(u.Topology)
		for _, c := range u.Created {
			require.Nil(t, c.Extra)
			n[map[Origin]string{OriginTransaction: "created", OriginAssignment: "created by assignment"}[c.Origin]]++
			n["views"] += len(c.InterfaceViews)
			n["blobs"] += min(len(c.Blob), 1)
			n["keys"] += min(len(c.ContractKey), 1)
		}
	}
	maps.DeleteFunc(n, func(_ string, many int) bool { return many == 0 })
	return n
}
