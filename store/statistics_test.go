package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// Statistics of a partitioned table are gathered when it has become large, again when it has grown or shrunk much since, and by its owner.
func TestStatisticsAreRefreshedWhereATableHasChangedMuch(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	up := d.started()
	require.NoError(t, up.Append(t.Context(), storetest.Scope, []ledger.Page{{To: 1, Updates: []ledger.Update{storetest.NewUpdate(1, "sync::1")}}}))
	rows := func(from, to int) {
		t.Helper()
		d.Exec(`INSERT INTO indexer.updates SELECT (jsonb_populate_record(u, jsonb_build_object('ledger_offset', g))).*
			FROM indexer.updates u, generate_series($1::bigint, $2) g WHERE u.ledger_offset = 1`, from, to)
		d.Exec("ANALYZE indexer.updates_p0")
	}
	refreshed := func() []string {
		t.Helper()
		list, err := up.store.RefreshStatistics(t.Context())
		require.NoError(t, err)
		return list
	}
	inherited := func() string {
		return d.Row("SELECT count(*) FROM pg_stats WHERE schemaname = 'indexer' AND tablename = 'updates' AND attname = 'record_time' AND inherited")
	}
	require.Empty(t, refreshed(), "it is small")
	rows(2, leastAnalyzed)

	role, url := throwaway.Login(t, d.URL, "")
	d.Exec("GRANT USAGE ON SCHEMA indexer TO " + quotedName(role) + "; GRANT SELECT ON ALL TABLES IN SCHEMA indexer TO " + quotedName(role))
	reader, err := Open(Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(reader.Close)
	list, err := reader.RefreshStatistics(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "of a role that can't there is nothing to do")

	require.Equal(t, "0", inherited())
	require.Equal(t, []string{"updates"}, refreshed())
	require.Equal(t, "1", inherited())
	require.Empty(t, refreshed())
	rows(leastAnalyzed+1, leastAnalyzed*5/4)
	require.Empty(t, refreshed(), "it has grown little")
	rows(leastAnalyzed*5/4+1, 2*leastAnalyzed)

	busy := d.Begin("LOCK TABLE ONLY indexer.updates IN SHARE UPDATE EXCLUSIVE MODE")
	require.Empty(t, refreshed(), "something changes it")
	require.NoError(t, busy.Rollback(t.Context()))
	require.Equal(t, []string{"updates"}, refreshed())
	d.Exec("DELETE FROM indexer.updates WHERE ledger_offset > $1", leastAnalyzed)
	d.Exec("ANALYZE indexer.updates_p0")
	require.Equal(t, []string{"updates"}, refreshed())
}
