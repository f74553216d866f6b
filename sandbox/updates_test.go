package sandbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const anyParty = `{"filtersForAnyParty":{"cumulative":[]}}`

var allUpdates = Scope{Shape: LedgerEffects}.UpdateFormat()

func TestCheckpointsOnlyOnOpenEndedReads(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 30)
	c := serve(t, l, ServerOptions{CheckpointInterval: time.Millisecond})
	list := c.post("/v2/updates?limit=2", `{"beginExclusive":%d,"updateFormat":%s}`, l.End(), allUpdates).list()
	var times []string
	for _, u := range list {
		kind, value := updateOf(t, u)
		require.Equal(t, "OffsetCheckpoint", kind)
		require.EqualValues(t, l.End(), value["offset"])
		list := value["synchronizerTimes"].([]any)
		require.Len(t, list, 2)
		times = append(times, list[0].(map[string]any)["recordTime"].(string))
	}
	require.Greater(t, times[1], times[0], "an offset is repeated with newer times")
	bounded := c.post("/v2/updates", `{"endInclusive":%d,"updateFormat":%s}`, l.End(), allUpdates)
	require.NotContains(t, string(bounded.body), "OffsetCheckpoint")
}

// The last offset checkpoint comes before the first update of a read that begins there, however often it is read.
func TestTheLastCheckpointComesBeforeTheNextUpdate(t *testing.T) {
	t.Parallel()
	l := grown(t, Options{Seed: 2}, 30)
	c := serve(t, l, ServerOptions{CheckpointInterval: time.Hour})
	begin := l.End()
	read := func(limit int) (kinds []string) {
		for _, u := range c.post(fmt.Sprintf("/v2/updates?limit=%d", limit), `{"beginExclusive":%d,"updateFormat":%s}`, begin, allUpdates).list() {
			kind, value := updateOf(t, u)
			if kind == "OffsetCheckpoint" {
				require.EqualValues(t, begin, value["offset"])
			}
			kinds = append(kinds, kind)
		}
		return kinds
	}
	require.Equal(t, []string{"OffsetCheckpoint"}, read(1), "it is made, and all that comes")
	l.Grow(1)
	for range 3 {
		require.Equal(t, []string{"OffsetCheckpoint"}, read(1))
	}
	both := read(2)
	require.Len(t, both, 2)
	require.Equal(t, "OffsetCheckpoint", both[0])
	require.NotEqual(t, "OffsetCheckpoint", both[1])
	bounded := c.post("/v2/updates", `{"beginExclusive":%d,"endInclusive":%d,"updateFormat":%s}`, begin, l.End(), allUpdates)
	require.Len(t, bounded.list(), 1)
	c = serve(t, l, ServerOptions{CheckpointInterval: time.Hour})
	c.post("/v2/updates?limit=1", `{"beginExclusive":%d,"updateFormat":%s}`, begin, allUpdates).list()
	require.NotEqual(t, []string{"OffsetCheckpoint"}, read(1), "the last one that was made stands elsewhere")
}

func TestSlowRequestIs503(t *testing.T) {
	t.Parallel()
	c := serve(t, grown(t, Options{}, 3), ServerOptions{RequestTimeout: 20 * time.Millisecond, NoCheckpoints: true})
	a := c.post("/v2/updates?stream_idle_timeout_ms=60000", `{"updateFormat":%s}`, allUpdates)
	require.Equal(t, 503, a.status)
	require.Contains(t, string(a.body), "not able to produce a timely response")
	require.Contains(t, a.kind, "text/plain")
}
