package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/sandbox"
)

// What a Scan service must not send stops the network's stream with an error that says what it is. Nothing of it is
// stored, and when the service is mended nothing is lost.
func TestBadInputOfANetworkStopsTheStream(t *testing.T) {
	t.Parallel()
	type rewriting = func(raw, before []byte) []byte // before is the update before it
	var damage atomic.Pointer[rewriting]
	var id string // of the update that is damaged
	var before []byte
	_, scan := scanOf(79, 400, sandbox.ScanOptions{PageLimit: 10, Rewrite: func(e sandbox.Element) []byte {
		rewrite := damage.Load()
		if rewrite == nil || !strings.HasPrefix(string(e.Raw), `{"update_id":"`+id) {
			return e.Raw
		}
		return (*rewrite)(e.Raw, before)
	}})
	updates := scan.NetworkTruth()["updates"]
	bad := len(updates) * 3 / 4
	for updates[bad]["kind"] != "transaction" {
		bad++
	}
	at := int64Of(t, updates[bad]["ledger_offset"])
	database, url := networkDatabase(t), serveScan(t, scan)
	before, id = item(t, url, fmt.Sprint(updates[bad-1]["update_id"])), fmt.Sprint(updates[bad]["update_id"])
	cfg := networkFor(database, url)
	for name, c := range map[string]struct {
		rewrite rewriting
		want    string
	}{
		"an update in two pages": {func(raw, before []byte) []byte { return fmt.Appendf(nil, "%s,%s", before, raw) }, "updates must come in the order of migration id and record time"},
		"pages out of order":     {func(raw, before []byte) []byte { return fmt.Appendf(nil, "%s,%s", raw, before) }, "updates must come in the order of migration id and record time"},
		"a time that goes back": {func(raw, _ []byte) []byte {
			return replaceFirst(raw, `"record_time":"[^"]*"`, `"record_time":"2020-01-01T00:00:00.000000Z"`)
		}, "updates must come in the order of migration id and record time"},
		"a migration that falls": {func(raw, _ []byte) []byte { return replaceFirst(raw, `"migration_id":2`, `"migration_id":1`) }, "updates must come in the order of migration id and record time"},
		"an event without its parent": {func(raw, _ []byte) []byte {
			return replaceFirst(raw, `"root_event_ids":\[[^]]*\]`, `"root_event_ids":[]`)
		}, "which is below no root event"},
		"a tree that is cut off": {func(raw, _ []byte) []byte {
			return replaceFirst(raw, `"root_event_ids":\[`, `"root_event_ids":["lost:0",`)
		}, `names event "lost:0", which events_by_id does not have`},
	} {
		t.Run(name, func(t *testing.T) {
			damage.Store(&c.rewrite)
			require.ErrorContains(t, RunIndexer(t.Context(), cfg, testLogger(t)), c.want)
			require.Zero(t, count(t, database, fmt.Sprintf("network_indexer.updates WHERE ledger_offset = %d OR update_id = '%s'", at, id)))
			require.Equal(t, 1, count(t, database, fmt.Sprint("network.latest_offset() w WHERE w < ", at)))
		})
	}
	damage.Store(nil)
	require.NoError(t, RunIndexer(t.Context(), cfg, testLogger(t)))
	require.Empty(t, sandbox.Diff(scan.NetworkTruth(), networkRelations(t, database)))
}

// item is an update as the service sends it.
func item(t *testing.T, scanURL, updateID string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scanURL+"/v2/updates/"+updateID, nil)
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(body, []byte(`{"update_id"`)))
	return body
}
