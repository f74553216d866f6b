package sandbox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

// items are the updates of an answer.
func (a answer) items() (items []map[string]any) {
	a.t.Helper()
	for _, item := range a.object()["transactions"].([]any) {
		items = append(items, item.(map[string]any))
	}
	return items
}

// networkPlace returns the migration id and the record time of an item.
func networkPlace(t *testing.T, item map[string]any) (migration int64, at time.Time) {
	t.Helper()
	id := item["migration_id"]
	if event, ok := item["event"].(map[string]any); ok {
		id = event["migration_id"]
	}
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`, item["record_time"])
	at, err := time.Parse(time.RFC3339Nano, item["record_time"].(string))
	require.NoError(t, err)
	return int64(id.(float64)), at
}

func after(t *testing.T, item map[string]any) string {
	t.Helper()
	migration, _ := networkPlace(t, item)
	return fmt.Sprintf(`{"after_migration_id":%d,"after_record_time":%q}`, migration, item["record_time"])
}

// walkNetwork reads all updates page by page.
func (c *client) walkNetwork(size int) (all []map[string]any) {
	c.t.Helper()
	begin := "null"
	for {
		page := c.post(pathNetworkUpdates, `{"page_size":%d,"after":%s}`, size, begin).items()
		all = append(all, page...)
		if len(page) < size {
			return all
		}
		begin = after(c.t, page[len(page)-1])
	}
}

func TestNetworkUpdatesMatchTheServicesDocuments(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 32, Elsewhere: true}, 900)
	for _, release := range []string{"0.6", "0.7"} {
		api := openapi.Scan(t, release)
		c, _ := serveScan(t, l, ScanOptions{Release: release + ".1"})
		a := c.post(pathNetworkUpdates, `{"page_size":1000}`)
		require.NoError(t, api.CheckResponse("POST", pathNetworkUpdates, 200, a.body))
		for _, item := range a.items()[:20] {
			one := c.do(http.MethodGet, pathNetworkUpdates+"/"+item["update_id"].(string), "")
			require.NoError(t, api.CheckResponse("GET", pathNetworkUpdates+"/{update_id}", 200, one.body))
		}
	}
}

// The truth is what the served trees say, walked depth first, and the events are those that a participant shows.
func TestNetworkTruthIsWhatIsServed(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"of this participant": false, "and elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireNetworkTruth(t, grown(t, Options{Seed: 34, Elsewhere: elsewhere}, 1200))
		})
	}
}

func requireNetworkTruth(t *testing.T, l *Ledger) {
	t.Helper()
	c, s := serveScan(t, l, ScanOptions{MigrateAfter: 700})
	known := map[string]map[string]any{} // what a participant shows as created, by contract id
	for _, u := range serve(t, l, ServerOptions{}).collect(Scope{Shape: LedgerEffects}, 0, l.End()) {
		if kind, value := updateOf(t, u); kind == "Transaction" {
			for _, raw := range value["events"].([]any) {
				if name, e := variant(t, raw); name == "CreatedEvent" {
					known[e["contractId"].(string)] = e
				}
			}
		}
	}
	truth := s.NetworkTruth()
	items := c.walkNetwork(1000)
	require.Len(t, truth["updates"], len(items))
	rows := map[string]Row{} // by offset and node id
	for _, relation := range []string{"created_events", "exercised_events"} {
		for _, r := range truth[relation] {
			rows[mustJSON([]any{r["ledger_offset"], r["node_id"]})] = r
		}
	}
	walked, children, moved := 0, 0, 0
	for i, item := range items {
		migration, at := networkPlace(t, item)
		offset := number(migration<<52 + at.UnixMicro())
		require.Equal(t, offset, truth["updates"][i]["ledger_offset"])
		require.Equal(t, item["update_id"], truth["updates"][i]["update_id"])
		if item["event"] != nil {
			moved++
			continue
		}
		events := item["events_by_id"].(map[string]any)
		next := 0
		var walk func(ids []any) []int
		walk = func(ids []any) (numbers []int) {
			for _, id := range ids {
				event, own := events[id.(string)].(map[string]any), next
				require.Equal(t, fmt.Sprintf("%s:%d", item["update_id"], own), id)
				require.Equal(t, id, event["event_id"])
				next++
				walked++
				numbers = append(numbers, own)
				row := rows[mustJSON([]any{offset, own})]
				require.Equal(t, row["contract_id"], event["contract_id"])
				require.Equal(t, row["template_id"], event["template_id"])
				if event["event_type"] == "created_event" {
					require.Equal(t, row["signatories"], event["signatories"])
					require.True(t, slices.IsSortedFunc(event["signatories"].([]any), func(a, b any) int { return strings.Compare(a.(string), b.(string)) }))
					if own := known[event["contract_id"].(string)]; own != nil {
						require.Equal(t, own["createArgument"], event["create_arguments"])
					} else {
						require.NotContains(t, mustJSON(event["signatories"]), l.Parties()[0], "the participant shows what its parties see")
					}
					continue
				}
				require.Equal(t, row["choice"], event["choice"])
				children += len(walk(event["child_event_ids"].([]any)))
				require.Equal(t, number(next-1), row["last_descendant_node_id"])
			}
			return numbers
		}
		walk(item["root_event_ids"].([]any))
		require.Len(t, events, next, "every event is in the tree")
	}
	require.Len(t, truth["reassignments"], moved)
	require.Len(t, rows, walked+countKind(truth["reassignments"], "assigned"))
	require.Positive(t, children)
	require.NotEmpty(t, truth["active_contracts"])
	require.NotEmpty(t, truth["archived_events"])
	require.Empty(t, truth["interface_views"])
	require.Empty(t, truth["topology_events"])
	t.Logf("%d items, %d events, %d below others, %d reassignments", len(items), walked, children, moved)
}

func countKind(rows []Row, kind string) (n int) {
	for _, r := range rows {
		if r["kind"] == kind {
			n++
		}
	}
	return n
}
