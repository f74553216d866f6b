package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const networkSnapshot = `{"record_time":"2026-01-01T03:00:00Z","migration_id":2,"created_events":[
	{"contract_id":"00c1","template_id":"p:M:E","package_name":"n","create_arguments":{},"created_at":"2025-12-31T23:00:00Z",
	 "signatories":["dso"],"observers":["alice"],"created_in_update_id":"u1"},
	{"contract_id":"00c2","template_id":"p:M:E","package_name":"n","create_arguments":{},"created_at":"2025-06-01T00:00:00Z",
	 "signatories":["bob"],"observers":[]}],"next_page_token":7}`

// Of a snapshot is read what says which contracts there are, and where they were created.
func TestDecodeNetworkSnapshot(t *testing.T) {
	t.Parallel()
	at := func(year, month, day, hour int) Time {
		return Time{Time: time.Date(year, time.Month(month), day, hour, 0, 0, 0, time.UTC), Valid: true}
	}
	got, err := DecodeNetworkSnapshot([]byte(networkSnapshot))
	require.NoError(t, err)
	require.Equal(t, NetworkSnapshotPage{
		MigrationID: 2, RecordTime: at(2026, 1, 1, 3), Next: new(int64(7)),
		Contracts: []NetworkContract{
			{ContractID: "00c1", CreatedAt: at(2025, 12, 31, 23), Signatories: []string{"dso"}, Observers: []string{"alice"}, UpdateID: "u1"},
			{ContractID: "00c2", CreatedAt: at(2025, 6, 1, 0), Signatories: []string{"bob"}, Observers: []string{}},
		},
	}, got)
	got, err = DecodeNetworkSnapshot([]byte(`{"record_time":"2026-01-01T03:00:00Z","migration_id":2,"created_events":[]}`))
	require.NoError(t, err)
	require.Nil(t, got.Next)
	for name, c := range map[string][2]string{
		"no list":      {`"created_events"`, `created_events: is required`},
		"no migration": {`"migration_id"`, `migration_id: is required`},
		"no contract":  {`"contract_id":"00c2"`, `element 1`},
		"no time":      {`"created_at":"2025-06-01T00:00:00Z"`, `element 1`},
		"no parties":   {`"signatories":["bob"]`, `element 1`},
	} {
		_, err := DecodeNetworkSnapshot([]byte(strings.Replace(networkSnapshot, c[0], `"x`+c[0][1:], 1)))
		requireDecodeError(t, err)
		require.ErrorContains(t, err, c[1], name)
	}
	_, err = DecodeNetworkSnapshot([]byte(networkSnapshot[:200]))
	requireDecodeError(t, err)
}
