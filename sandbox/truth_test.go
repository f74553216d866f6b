package sandbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// collect reads all updates of a scope through the server, a page at a time.
func (c *client) collect(scope Scope, begin, end int64) []map[string]any {
	c.t.Helper()
	var all []map[string]any
	token := ""
	for {
		page := c.post("/v2/updates/get-updates-page", `{"beginOffsetExclusive":%d,"endOffsetInclusive":%d,"maxPageSize":150,"pageToken":%q,"updateFormat":%s}`,
			begin, end, token, scope.UpdateFormat()).object()
		for _, u := range page["updates"].([]any) {
			all = append(all, u.(map[string]any))
		}
		if page["nextPageToken"] == nil {
			return all
		}
		token = page["nextPageToken"].(string)
	}
}

// entries reads a whole snapshot through the server.
func (c *client) entries(scope Scope, at int64) []map[string]any {
	c.t.Helper()
	var all []map[string]any
	token := ""
	for {
		page := c.post("/v2/state/active-contracts-page", `{"activeAtOffset":%d,"maxPageSize":70,"pageToken":%q,"eventFormat":%s}`,
			at, token, scope.EventFormat()).object()
		for _, e := range page["activeContracts"].([]any) {
			all = append(all, e.(map[string]any))
		}
		if page["nextPageToken"] == nil {
			return all
		}
		token = page["nextPageToken"].(string)
	}
}

func key(parts ...any) string {
	for i, p := range parts {
		if f, ok := p.(float64); ok {
			parts[i] = int64(f)
		}
	}
	return fmt.Sprint(parts...)
}

// asSet is a list of texts in the order in which the truth has it.
func asSet(list any) []any {
	texts := slices.Clone(list.([]any))
	slices.SortFunc(texts, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return texts
}

// count adds up what updates hold, by relation and identity.
func count(t *testing.T, updates []map[string]any) map[string]map[string]int {
	t.Helper()
	got := map[string]map[string]int{}
	add := func(relation string, parts ...any) {
		if got[relation] == nil {
			got[relation] = map[string]int{}
		}
		got[relation][key(parts...)]++
	}
	created := func(e map[string]any, origin string) {
		argument, err := json.Marshal(e["createArgument"])
		require.NoError(t, err)
		add("created_events", e["offset"], " ", e["nodeId"], e["contractId"], origin, e["acsDelta"], e["createdEventBlob"] != "", string(argument), asSet(e["witnessParties"]))
		for _, v := range e["interfaceViews"].([]any) {
			view := v.(map[string]any)
			add("interface_views", e["offset"], " ", e["nodeId"], view["interfaceId"], view["viewStatus"].(map[string]any)["code"])
		}
	}
	for _, u := range updates {
		kind, value := updateOf(t, u)
		add("updates", value["offset"], value["updateId"])
		for i, raw := range value["events"].([]any) {
			if kind == "TopologyTransaction" {
				add("topology_events", value["offset"], " ", i)
				continue
			}
			name, e := variant(t, raw)
			switch name {
			case "CreatedEvent":
				created(e, "transaction")
			case "ArchivedEvent":
				add("archived_events", e["offset"], " ", e["nodeId"], e["contractId"], true)
			case "ExercisedEvent":
				add("exercised_events", e["offset"], " ", e["nodeId"], e["contractId"], e["choice"], e["acsDelta"])
				if e["consuming"] == true {
					add("archived_events", e["offset"], " ", e["nodeId"], e["contractId"], e["acsDelta"])
				}
			case "JsAssignmentEvent":
				c := e["createdEvent"].(map[string]any)
				created(c, "assignment")
				add("reassignments", c["offset"], " ", c["nodeId"], c["contractId"], "assigned", e["reassignmentId"])
			case "JsUnassignedEvent":
				e = e["value"].(map[string]any)
				add("reassignments", e["offset"], " ", e["nodeId"], e["contractId"], "unassigned", e["reassignmentId"])
			default: // its relation has its name
				add(strings.ToLower(strings.TrimSuffix(name, "Event"))+"_events", e["offset"], " ", e["nodeId"], " ", e["contractId"])
			}
		}
	}
	return got
}

// countRows adds up the truth in the same way.
func countRows(t *testing.T, rows map[string][]Row) map[string]map[string]int {
	t.Helper()
	got := map[string]map[string]int{}
	for relation, list := range rows {
		for _, r := range list {
			var parts []any
			switch relation {
			case "updates":
				parts = []any{r["ledger_offset"], r["update_id"]}
			case "created_events":
				argument, err := json.Marshal(r["payload"])
				require.NoError(t, err)
				parts = []any{r["ledger_offset"], " ", r["node_id"], r["contract_id"], r["origin"], r["acs_delta"], r["created_event_blob"] != `\x`, string(argument), r["witness_parties"]}
			case "interface_views":
				parts = []any{r["ledger_offset"], " ", r["node_id"], r["interface_id"], r["status_code"]}
			case "topology_events":
				parts = []any{r["ledger_offset"], " ", r["node_id"]}
			case "archived_events":
				parts = []any{r["ledger_offset"], " ", r["node_id"], r["contract_id"], r["acs_delta"]}
			case "exercised_events":
				parts = []any{r["ledger_offset"], " ", r["node_id"], r["contract_id"], r["choice"], r["acs_delta"]}
			case "reassignments":
				parts = []any{r["ledger_offset"], " ", r["node_id"], r["contract_id"], r["kind"], r["reassignment_id"]}
			default:
				if r["node_id"] == nil {
					continue // it is of no event
				}
				parts = []any{r["ledger_offset"], " ", r["node_id"], " ", r["contract_id"]}
			}
			if got[relation] == nil {
				got[relation] = map[string]int{}
			}
			for i, p := range parts {
				if n, ok := p.(json.Number); ok {
					parts[i] = n.String()
				}
			}
			got[relation][fmt.Sprint(parts...)]++
		}
	}
	return got
}

// The truth comes from the generator, the responses from the encoder: they must say
// the same.
func TestTruthIsWhatIsServed(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 11}, 260)
	c := serve(t, l, ServerOptions{})
	some := l.Parties()[:2]
	for name, scope := range map[string]Scope{
		"delta":      {},
		"effects":    {Shape: LedgerEffects, Interfaces: InterfaceNames(), Blobs: true},
		"parties":    {Shape: LedgerEffects, Parties: some},
		"templates":  {Templates: TemplateNames()[1:3], Parties: some},
		"interfaces": {Interfaces: InterfaceNames()[:1], InterfacesOnly: true},
		"less":       {NoReassignments: true, NoTopology: true},
	} {
		t.Run(name, func(t *testing.T) {
			end := l.Offset(240)
			served := count(t, c.collect(scope, 0, end))
			require.NotEmpty(t, served["created_events"])
			require.Equal(t, countRows(t, l.Truth(scope, end)), served)
		})
	}
}

func activeKeys(t *testing.T, entries []map[string]any) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for _, e := range entries {
		name, body := variant(t, e["contractEntry"])
		if name != "JsActiveContract" {
			continue
		}
		c := body["createdEvent"].(map[string]any)
		argument, err := json.Marshal(c["createArgument"])
		require.NoError(t, err)
		k := key(c["contractId"], " ", body["synchronizerId"], " ", c["offset"], " ", c["nodeId"], " ", body["reassignmentCounter"], " ", string(argument))
		require.False(t, keys[k], "an entry is served twice")
		keys[k] = true
	}
	return keys
}

// Active contracts of the truth, advanced event by event, are those of the snapshot,
// which the generator keeps book of by itself.
func TestTruthOfActiveContractsIsTheSnapshot(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 12}, 400)
	c := serve(t, l, ServerOptions{})
	for name, scope := range map[string]Scope{
		"all":       {},
		"effects":   {Shape: LedgerEffects},
		"party":     {Parties: l.Parties()[2:3]},
		"template":  {Templates: TemplateNames()[:1]},
		"interface": {Interfaces: InterfaceNames()[1:2], InterfacesOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]bool{}
			for _, r := range l.Truth(scope, l.End())["active_contracts"] {
				argument, err := json.Marshal(r["payload"])
				require.NoError(t, err)
				want[fmt.Sprint(r["contract_id"], " ", r["synchronizer_id"], " ", r["activated_offset"], " ", r["activated_node_id"], " ", r["reassignment_counter"], " ", string(argument))] = true
			}
			require.NotEmpty(t, want)
			require.Equal(t, want, activeKeys(t, c.entries(scope, l.End())))
		})
	}
}

// A database that began with a snapshot and one that began at genesis agree on what
// is active, and on where it was created unless it had moved before.
func TestTruthFromSnapshotEndsWithTheSameActiveContracts(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 17}, 400)
	at := l.Offset(250)
	whole, later := l.Truth(Scope{}, l.End()), l.TruthFromSnapshot(Scope{}, at, l.End())
	unknown, known := 0, 0
	for i, r := range later["active_contracts"] {
		if r["reassignment_counter"] == json.Number("0") {
			require.Equal(t, r["activated_offset"], r["created_offset"])
			continue
		}
		require.NotEqual(t, r["activated_offset"], r["created_offset"])
		if r["created_offset"] != nil {
			known++
			continue
		}
		unknown++
		r["created_offset"] = whole["active_contracts"][i]["created_offset"]
	}
	require.Positive(t, unknown)
	require.Positive(t, known)
	require.Equal(t, "", Diff(
		map[string][]Row{"active_contracts": whole["active_contracts"]},
		map[string][]Row{"active_contracts": later["active_contracts"]}))
	var snapshot, after int
	for _, r := range later["created_events"] {
		if r["origin"] == "snapshot" {
			snapshot++
			require.Nil(t, r["update_id"])
		} else {
			after++
		}
	}
	require.Positive(t, snapshot)
	require.Positive(t, after)
	require.Less(t, len(later["updates"]), len(whole["updates"]))
}

func TestDecodeRowAndDiff(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 14}, 100)
	want := l.Truth(Scope{}, l.End())
	got := map[string][]Row{}
	for relation, rows := range want {
		for _, r := range rows {
			raw, err := json.Marshal(r)
			require.NoError(t, err)
			row, err := DecodeRow(relation, raw)
			require.NoError(t, err)
			got[relation] = append(got[relation], row)
		}
	}
	require.Equal(t, "", Diff(want, got))
	got["created_events"][3]["payload"] = nil
	got["updates"] = got["updates"][1:]
	diff := Diff(want, got)
	require.Contains(t, diff, "created_events: row")
	require.Contains(t, diff, "updates: missing")
	row, err := DecodeRow("topology_events", []byte(`{"ledger_offset":1,"node_id":0,"kind":"added","party_id":"p","participant_id":"q","permission":null,
		"update_id":"u","synchronizer_id":"s","record_time":"2026-01-01T02:00:00.5+02:00","more":1}`))
	require.NoError(t, err)
	require.Equal(t, "2026-01-01T00:00:00.500000Z", row["record_time"])
	one := map[string][]Row{"updates": {{"ledger_offset": json.Number("1"), "update_id": "u"}}}
	less := map[string][]Row{"updates": {{"ledger_offset": json.Number("1")}}}
	require.Empty(t, Diff(one, one))
	require.Contains(t, Diff(one, less), "column update_id is missing")
	require.Contains(t, Diff(less, one), "column update_id is not in the truth")
}
