package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/openapi"
)

func TestNetworkSnapshotsMatchTheServicesDocuments(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 35}, 300)
	c, _ := serveScan(t, l, ScanOptions{SnapshotEvery: 10 * time.Second})
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
			body = fmt.Sprintf(`{"migration_id":1,"record_time":%q,"owner_party_ids":%s}`, named["record_time"], mustJSON(l.Parties()))
			require.NoError(t, api.CheckRequest("POST", pathHoldingsSummary, nil, []byte(body)))
			a = c.post(pathHoldingsSummary, "%s", body)
			require.NoError(t, api.CheckResponse("POST", pathHoldingsSummary, 200, a.body))
			require.NotEmpty(t, a.object()["summaries"])
		}
	}
}
