package scan

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// The migrations of a network are found in few requests, however many there are and however far their ids are apart.
func TestMigrationsAreFoundInFewRequests(t *testing.T) {
	t.Parallel()
	begins := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)
	var all []ledger.Offset
	add := func(migrationID int64) {
		all = append(all, every(networkOffset(t, migrationID, begins.Format(time.RFC3339)), 3, time.Hour)...)
		begins = begins.AddDate(0, 1, 0)
	}
	for id := range int64(13) {
		add(id)
	}
	add(2047)
	n := &network{party: "dso", at: all}
	oldest := time.UnixMicro(int64(all[0])).UTC()
	u, s := readerOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != pathSnapshotBefore:
			n.ServeHTTP(w, r)
		case r.URL.Query().Get("migration_id") == "10":
			answer(200, `{"record_time":"2025-04-01T01:00:00Z"}`)(w, r)
		default:
			answer(404, `{"error":"No snapshots found before"}`)(w, r)
		}
	}))
	updates := func() (n int) {
		for _, asked := range s.requests() {
			if !strings.Contains(asked, pathNetwork) {
				n++
			}
		}
		return n
	}
	last := all[len(all)-1]
	at, err := u.SnapshotOffset(t.Context(), last)
	require.NoError(t, err)
	require.Equal(t, networkOffset(t, 10, "2025-04-01T01:00:00Z"), at)
	require.Less(t, updates(), 25)

	// The creation of a contract, which may be in any of the migrations.
	for id, offset := range map[int64]ledger.Offset{0: all[0], 7: all[7*3+1], 12: all[12*3]} {
		_, created := offset.NetworkPosition()
		found, err := u.migrationBefore(t.Context(), 2047, func(at time.Time) bool { return !at.After(created) })
		require.NoError(t, err)
		require.Equal(t, id, found, fmt.Sprint(created))
	}
	require.Less(t, updates(), 20)
	none, err := u.migrationBefore(t.Context(), 2047, func(at time.Time) bool { return at.Before(oldest) })
	require.NoError(t, err)
	require.Equal(t, int64(-1), none)
	require.Less(t, updates(), 6)

	end, err := u.LedgerEnd(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, end)
}
