package sandbox

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

// walkSnapshot reads the contracts of a snapshot page by page.
func (c *client) walkSnapshot(migration int, at string, size int) (all []map[string]any) {
	c.t.Helper()
	after := ""
	for {
		page := c.post(pathNetworkACS, `{"migration_id":%d,"record_time":%q,"page_size":%d%s}`, migration, at, size, after).object()
		for _, item := range page["created_events"].([]any) {
			all = append(all, item.(map[string]any))
		}
		next, more := page["next_page_token"]
		require.Equal(c.t, len(page["created_events"].([]any)) == size, more)
		if !more {
			return all
		}
		after = fmt.Sprintf(`,"after":%.0f`, next)
	}
}

// A snapshot has what the updates up to its time leave active, in any page size, and says of what its migration created
// where.
func TestNetworkSnapshots(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 34}, 900)
	c, s := serveScan(t, l, ScanOptions{MigrateAfter: 400, SnapshotEvery: 10 * time.Second})
	for migration := 1; migration <= 2; migration++ {
		at := c.do(http.MethodGet, pathSnapshotBefore+fmt.Sprintf("?before=2030-01-01T00:00:00Z&migration_id=%d", migration), "").object()["record_time"].(string)
		taken, err := time.Parse(time.RFC3339Nano, at)
		require.NoError(t, err)
		require.Zero(t, taken.UnixMicro()%10_000_000)
		all := c.walkSnapshot(migration, at, 1000)
		require.Greater(t, len(all), 10)
		for _, size := range []int{1, 7, len(all)} {
			require.Equal(t, all, c.walkSnapshot(migration, at, size))
		}
		active := map[string]int{}
		for _, row := range s.NetworkTruthFromSnapshot(int64(migration), taken)["created_events"] {
			if row["origin"] == "snapshot" {
				active[row["contract_id"].(string)]++
			}
		}
		older := 0
		for _, item := range all {
			stakeholders := slices.Concat(item["signatories"].([]any), item["observers"].([]any))
			if id := item["contract_id"].(string); slices.Contains(stakeholders, any(l.DSO())) {
				require.Positive(t, active[id])
				active[id]--
			}
			id, known := item["created_in_update_id"]
			if !known {
				older++
				continue
			}
			update := c.do(http.MethodGet, pathNetworkUpdates+"/"+id.(string), "")
			require.Contains(t, string(update.body), item["contract_id"])
		}
		for id, n := range active {
			require.Zero(t, n, id)
		}
		require.Equal(t, migration == 2, older > 0, "what an earlier migration created")
	}
	first := c.do(http.MethodGet, pathSnapshotAfter+"?after=2020-01-01T00:00:00Z&migration_id=0", "").object()["record_time"].(string)
	next := c.do(http.MethodGet, pathSnapshotAfter+"?after="+first+"&migration_id=1", "").object()["record_time"].(string)
	require.Greater(t, next, first)
	require.Equal(t, first, c.do(http.MethodGet, pathSnapshotBefore+"?before="+first+"&migration_id=1", "").object()["record_time"], "up to")
	var last string
	for _, item := range c.walkNetwork(1000) {
		last = item["record_time"].(string)
	}
	newest := c.post(pathNetworkACS, `{"migration_id":2,"record_time":%q,"record_time_match":"at_or_before","page_size":1}`, last).object()
	taken, err := time.Parse(time.RFC3339Nano, newest["record_time"].(string))
	require.NoError(t, err)
	require.Less(t, taken.Format("2006-01-02T15:04:05.000000Z"), last)
	amulets := c.post(pathNetworkACS, `{"migration_id":2,"record_time":%q,"record_time_match":"at_or_before","page_size":1000,"templates":["splice-amulet:Splice.Amulet:Amulet"],"party_ids":[%q]}`, last, l.DSO()).object()
	require.NotEmpty(t, amulets["created_events"])
	for _, item := range amulets["created_events"].([]any) {
		require.Contains(t, item.(map[string]any)["template_id"], ":Splice.Amulet:Amulet")
	}
}

func TestNetworkSnapshotsMatchTheServicesDocuments(t *testing.T) {
	t.Parallel()
	c, _ := serveScan(t, grown(t, Options{Seed: 35}, 300), ScanOptions{SnapshotEvery: 10 * time.Second})
	for _, release := range []string{"0.6", "0.7"} {
		api := openapi.Scan(t, release)
		for _, path := range []string{pathSnapshotBefore, pathSnapshotAfter} {
			given := url.Values{"migration_id": {"1"}, "before": {"2030-01-01T00:00:00Z"}}
			if path == pathSnapshotAfter {
				given = url.Values{"migration_id": {"1"}, "after": {"2020-01-01T00:00:00Z"}}
			}
			require.NoError(t, api.CheckRequest("GET", path, given, nil))
			a := c.do(http.MethodGet, path+"?"+given.Encode(), "")
			require.NoError(t, api.CheckResponse("GET", path, 200, a.body))
			var named map[string]string
			require.NoError(t, json.Unmarshal(a.body, &named))
			body := fmt.Sprintf(`{"migration_id":1,"record_time":%q,"page_size":5}`, named["record_time"])
			require.NoError(t, api.CheckRequest("POST", pathNetworkACS, nil, []byte(body)))
			require.NoError(t, api.CheckResponse("POST", pathNetworkACS, 200, c.post(pathNetworkACS, "%s", body).body))
		}
	}
}

// The sums of holdings are those of the amulets in the snapshot, of the owners that are asked for.
func TestHoldingsSummaries(t *testing.T) {
	t.Parallel()
	c, _ := serveScan(t, grown(t, Options{Seed: 37}, 700), ScanOptions{SnapshotEvery: 10 * time.Second})
	at := c.do(http.MethodGet, pathSnapshotBefore+"?before=2030-01-01T00:00:00Z&migration_id=1", "").object()["record_time"].(string)
	type sums [3]string // unlocked, locked, all
	held, owners := map[string]*[3]big.Rat{}, []string{"nobody::1220"}
	for _, item := range c.walkSnapshot(1, at, 1000) {
		amulet, locked := item["create_arguments"].(map[string]any), false
		switch {
		case strings.HasSuffix(item["template_id"].(string), ":Splice.Amulet:LockedAmulet"):
			amulet, locked = amulet["amulet"].(map[string]any), true
		case !strings.HasSuffix(item["template_id"].(string), ":Splice.Amulet:Amulet"):
			continue
		}
		owner := amulet["owner"].(string)
		if held[owner] == nil {
			held[owner] = new([3]big.Rat)
			owners = append(owners, owner)
		}
		part := &held[owner][0]
		if locked {
			part = &held[owner][1]
		}
		for _, sum := range []*big.Rat{part, &held[owner][2]} {
			sum.Add(sum, rat(t, amulet["amount"].(map[string]any)["initialAmount"]))
		}
	}
	require.Greater(t, len(held), 3)
	delete(held, owners[len(owners)-1])
	want := map[string]sums{}
	for owner, of := range held {
		want[owner] = sums{of[0].FloatString(10), of[1].FloatString(10), of[2].FloatString(10)}
	}
	asked := mustJSON(owners[:len(owners)-1])
	body := fmt.Sprintf(`{"migration_id":1,"record_time":%q,"owner_party_ids":%s}`, at, asked)
	a := c.post(pathHoldingsSummary, "%s", body)
	for _, release := range []string{"0.6", "0.7"} {
		api := openapi.Scan(t, release)
		require.NoError(t, api.CheckRequest("POST", pathHoldingsSummary, nil, []byte(body)))
		require.NoError(t, api.CheckResponse("POST", pathHoldingsSummary, 200, a.body))
	}
	answer := a.object()
	require.Equal(t, []any{at, 1.0}, []any{answer["record_time"], answer["migration_id"]})
	got := map[string]sums{}
	for _, each := range answer["summaries"].([]any) {
		of := each.(map[string]any)
		got[of["party_id"].(string)] = sums{of["total_unlocked_coin"].(string), of["total_locked_coin"].(string), of["total_coin_holdings"].(string)}
	}
	require.Equal(t, want, got)
	c.post(pathHoldingsSummary, `{"migration_id":1,"record_time":"2020-01-01T00:00:00Z","record_time_match":"at_or_before","owner_party_ids":%s}`, asked).scanError(404, "No snapshots found before")
	c.post(pathHoldingsSummary, `{"migration_id":1,"record_time":%q}`, at).scanError(400, "owner_party_ids: Missing required field")
}

func TestNetworkSnapshotsThatAreRefused(t *testing.T) {
	t.Parallel()
	c, _ := serveScan(t, grown(t, Options{Seed: 36}, 200), ScanOptions{SnapshotEvery: 10 * time.Second})
	at := c.do(http.MethodGet, pathSnapshotBefore+"?before=2030-01-01T00:00:00Z&migration_id=1", "").object()["record_time"].(string)
	for path, refused := range map[string]struct {
		status int
		text   string
	}{
		pathSnapshotBefore + "?before=2030-01-01T00:00:00Z":                {404, "missing required query parameter 'migration_id'"},
		pathSnapshotBefore + "?before=soon&migration_id=1":                 {400, "malformed"},
		pathSnapshotBefore + "?before=2020-01-01T00:00:00Z&migration_id=1": {404, "No snapshots found before 2020"},
		pathSnapshotBefore + "?before=2030-01-01T00:00:00Z&migration_id=2": {404, "No snapshots found before"},
		pathSnapshotAfter + "?after=2030-01-01T00:00:00Z&migration_id=1":   {404, "No snapshots found after"},
	} {
		c.do(http.MethodGet, path, "").scanError(refused.status, refused.text)
	}
	for rest, refused := range map[string]struct {
		status int
		text   string
	}{
		`"page_size":1`:                                    {400, "record_time: Missing required field"},
		`"record_time":"` + at + `"`:                       {400, "page_size: Missing required field"},
		`"record_time":"` + at + `","page_size":0`:         {400, "Limit must be at least 1."},
		`"record_time":"` + at + `","page_size":1001`:      {400, "Exceeded limit maximum (1001 > 1000)."},
		`"record_time":"soon","page_size":1`:               {400, "record_time: soon"},
		`"record_time":"` + at[:19] + `.5Z","page_size":1`: {404, "Failed to find ACS snapshot for migration id 1"},
		`"record_time":"2020-01-01T00:00:00Z","page_size":1,"record_time_match":"at_or_before"`: {404, "No snapshots found before"},
		`"record_time":"` + at + `","page_size":1,"record_time_match":"near"`:                   {400, "record_time_match"},
		`"record_time":"` + at + `","page_size":1,"after":1000000`:                              {400, "Invalid after token, outside of snapshot range"},
	} {
		c.post(pathNetworkACS, `{"migration_id":1,%s}`, rest).scanError(refused.status, refused.text)
	}
}
