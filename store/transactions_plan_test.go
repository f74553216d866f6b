package store

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Records are searched by their event ids in the index of these, not by reading all records for each id,
// also in a table that grew from nothing since it was analyzed.
func TestEventIDsAreLookedUpByIndex(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.Exec("ANALYZE indexer.transactions")
	h.Exec("INSERT INTO indexer.transactions (seq, event_id, kind, fingerprint) SELECT i, '#' || md5(i::text) || ':0', 'tap', i FROM generate_series(1, 30000) i")
	for name, values := range map[string]map[string]string{
		"TransactionsStored": {"event_ids": "ARRAY['#1:0', '#2:0']"},
		"TransactionsMarks":  {"from_exclusive": "29000", "to_inclusive": "30000"},
	} {
		plan := h.plan(queryWith(t, "transactions_position.sql", name, values))
		require.Contains(t, plan, "transactions_event_id", name)
		_, subplan, found := strings.Cut(plan, "SubPlan")
		require.True(t, found, plan)
		require.NotContains(t, subplan, "transactions_pkey", name)
	}
}

// queryWith is a query of queries/ with values in the place of its parameters.
func queryWith(t *testing.T, file, name string, values map[string]string) string {
	t.Helper()
	all, err := os.ReadFile("../queries/" + file)
	require.NoError(t, err)
	_, query, found := strings.Cut(string(all), "-- name: "+name+" :")
	require.True(t, found, name)
	query, _, _ = strings.Cut(query, ";")
	_, query, _ = strings.Cut(query, "\n")
	for parameter, value := range values {
		query = regexp.MustCompile("@"+parameter+`\b`).ReplaceAllString(query, value)
	}
	return query
}
