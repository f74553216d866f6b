package admin

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/base/version"
)

// ours is the lines of /metrics that are the program's own, without the histograms' buckets and sums.
func ours(t *testing.T, m *Metrics) []string {
	t.Helper()
	url, stop := serve(t, NewHealth(nil), m)
	status, body := get(t, url+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, stop())
	for _, name := range []string{"go_goroutines ", "process_start_time_seconds "} {
		require.Contains(t, body, "\n"+name)
	}
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, namespace) && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "_sum{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.Build(version.Build{Version: "v1.2.0", Commit: "abc", Schema: 7, Go: "go1.26"})
	m.Committed(100, 0)
	m.LedgerEnd(150)
	m.Committed(120, 7)
	m.Committed(130, 3)
	m.Wrote("updates", 10)
	m.Wrote("created", 4)
	m.Wrote("created", 5)
	m.Phase(t.Context(), "copy", 20*time.Millisecond)
	m.Request(t.Context(), "updates", 200, 30*time.Millisecond, 1000)
	m.Request(t.Context(), "updates", 200, 10*time.Millisecond, 500)
	m.Request(t.Context(), "ledger-end", 0, time.Second, 0)
	m.NotJSON("updates")
	m.Retrying("updates", "database")
	m.Retrying("updates", "status_503")
	m.Decoded(t.Context(), "updates", 20*time.Millisecond)
	m.Queued(4096)
	m.Epoch("updates", 7)
	m.TaskRetrying("lookups")
	m.Leading("updates", true)
	m.Leading("transactions", false)
	m.StreamState("updates", Waits)
	m.StreamState("updates", Leads)
	m.StreamState("transactions", Stopped)
	m.LookedUp("found")
	m.LookedUp("found")
	m.LookedUp("not_found")
	m.TaskFailing("lookups", true)
	m.TaskFailing("packages", true)
	m.TaskFailing("packages", false)
	require.Equal(t, []string{
		`ledger_indexer_batch_phase_duration_seconds_count{phase="copy"} 1`,
		`ledger_indexer_build_info{commit="abc",go_version="go1.26",schema_version="7",version="v1.2.0"} 1`,
		`ledger_indexer_decode_duration_seconds_count{operation="updates"} 1`,
		`ledger_indexer_derived_offset 0`,
		`ledger_indexer_epoch{stream="updates"} 7`,
		`ledger_indexer_frontier_offset 130`,
		`ledger_indexer_hosting_changes_total{kind="added"} 0`,
		`ledger_indexer_hosting_changes_total{kind="changed"} 0`,
		`ledger_indexer_hosting_changes_total{kind="onboarding"} 0`,
		`ledger_indexer_hosting_changes_total{kind="revoked"} 0`,
		`ledger_indexer_lag_offsets NaN`,
		`ledger_indexer_lag_seconds{stream="transactions"} NaN`,
		`ledger_indexer_lag_seconds{stream="updates"} NaN`,
		`ledger_indexer_leading{stream="transactions"} 0`,
		`ledger_indexer_leading{stream="updates"} 1`,
		`ledger_indexer_ledger_end_offset 150`,
		`ledger_indexer_lookups_total{outcome="found"} 2`,
		`ledger_indexer_lookups_total{outcome="not_found"} 1`,
		`ledger_indexer_lookups_total{outcome="unusable"} 0`,
		`ledger_indexer_not_json_answers_total{operation="ledger-end"} 0`,
		`ledger_indexer_not_json_answers_total{operation="updates"} 1`,
		`ledger_indexer_package_changes_total 0`,
		`ledger_indexer_package_types_total{outcome="missing"} 0`,
		`ledger_indexer_package_types_total{outcome="stored"} 0`,
		`ledger_indexer_package_types_total{outcome="unreadable"} 0`,
		`ledger_indexer_packages_read_timestamp_seconds 0`,
		`ledger_indexer_partitions 0`,
		`ledger_indexer_queue_bytes 4096`,
		`ledger_indexer_received_bytes_total{operation="ledger-end"} 0`,
		`ledger_indexer_received_bytes_total{operation="updates"} 1500`,
		`ledger_indexer_request_duration_seconds_count{operation="ledger-end"} 1`,
		`ledger_indexer_request_duration_seconds_count{operation="updates"} 2`,
		`ledger_indexer_requests_total{operation="ledger-end",status="0"} 1`,
		`ledger_indexer_requests_total{operation="updates",status="200"} 2`,
		`ledger_indexer_retries_total{reason="database",stream="updates"} 1`,
		`ledger_indexer_retries_total{reason="status_503",stream="updates"} 1`,
		`ledger_indexer_rows_total{relation="created"} 9`,
		`ledger_indexer_rows_total{relation="unknown_elements"} 0`,
		`ledger_indexer_rows_total{relation="unknown_transactions"} 0`,
		`ledger_indexer_rows_total{relation="updates"} 10`,
		`ledger_indexer_stream_state{state="failed",stream="transactions"} 0`,
		`ledger_indexer_stream_state{state="failed",stream="updates"} 0`,
		`ledger_indexer_stream_state{state="leads",stream="transactions"} 0`,
		`ledger_indexer_stream_state{state="leads",stream="updates"} 1`,
		`ledger_indexer_stream_state{state="stands_by",stream="transactions"} 0`,
		`ledger_indexer_stream_state{state="stands_by",stream="updates"} 0`,
		`ledger_indexer_stream_state{state="waits",stream="transactions"} 0`,
		`ledger_indexer_stream_state{state="waits",stream="updates"} 0`,
		`ledger_indexer_tables_bytes 0`,
		`ledger_indexer_task_failing{task="lookups"} 1`,
		`ledger_indexer_task_failing{task="packages"} 0`,
		`ledger_indexer_task_retries_total{task="lookups"} 1`,
		`ledger_indexer_task_retries_total{task="packages"} 0`,
		`ledger_indexer_transaction_history_current_timestamp_seconds 0`,
		`ledger_indexer_transaction_history_newest_timestamp_seconds 0`,
		`ledger_indexer_transaction_history_records_total 0`,
		`ledger_indexer_transaction_history_rereading 0`,
		`ledger_indexer_transaction_history_seq 0`,
		`ledger_indexer_updates_total 10`,
		`ledger_indexer_verified_offset 0`,
		`ledger_indexer_verified_seq 0`,
		`ledger_indexer_watermark_offset 130`,
	}, ours(t, m))

	m.Leading("updates", false)
	m.TasksEnded("lookups", "packages")
	before := time.Now()
	m.PackagesRead(3)
	m.PackagesRead(0)
	lines := ours(t, m)
	require.Contains(t, lines, `ledger_indexer_leading{stream="updates"} 0`)
	require.Contains(t, lines, "ledger_indexer_package_changes_total 3")
	require.NotContains(t, strings.Join(lines, "\n"), "task_failing", "tasks end with the lead")
	requireSince(t, before, valueOf(t, lines, "ledger_indexer_packages_read_timestamp_seconds"))
}

// requireSince requires a time between before and now.
func requireSince(t *testing.T, before time.Time, seconds float64) {
	t.Helper()
	require.GreaterOrEqual(t, seconds, float64(before.Unix()))
	require.LessOrEqual(t, seconds, float64(time.Now().Unix()+1))
}

// valueOf is the value of a metric without labels.
func valueOf(t *testing.T, lines []string, name string) float64 {
	t.Helper()
	for _, line := range lines {
		if text, found := strings.CutPrefix(line, name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			return value
		}
	}
	require.FailNow(t, "no such metric", name)
	return 0
}

func TestMetricsOfTheHistory(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	newest := time.Date(2026, 7, 2, 10, 0, 0, 0, time.UTC)
	m.TransactionsCommitted(70, false, 0)
	m.TransactionsCommitted(72, true, 2)
	m.TransactionStored(newest)
	m.TransactionStored(newest.Add(-time.Hour)) // read again
	before := time.Now()
	m.TransactionsCurrent()
	lines := ours(t, m)
	require.Subset(t, lines, []string{
		"ledger_indexer_transaction_history_records_total 2", "ledger_indexer_transaction_history_seq 72", "ledger_indexer_transaction_history_rereading 1",
	})
	require.InDelta(t, newest.Unix(), valueOf(t, lines, "ledger_indexer_transaction_history_newest_timestamp_seconds"), 0)
	requireSince(t, before, valueOf(t, lines, "ledger_indexer_transaction_history_current_timestamp_seconds"))
	m.TransactionsCommitted(72, false, 0)
	require.Contains(t, ours(t, m), "ledger_indexer_transaction_history_rereading 0")

	// Who stands by does not say for ever what it found when it led: alerts would not end.
	const failing = `ledger_indexer_task_failing{task="transactions"} 1`
	m.TransactionsResumed(72, true)
	m.TaskFailing("transactions", true)
	require.Contains(t, ours(t, m), failing)
	m.StreamState("transactions", StandsBy)
	require.Contains(t, ours(t, m), "ledger_indexer_transaction_history_rereading 0")
	require.NotContains(t, ours(t, m), failing)
}

func TestMetricsOfTheVerification(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.Sealed("updates", "equal", 0)
	m.Sealed("updates", "different", 3)
	m.Sealed("updates", "equal", 0)
	m.Sealed("transactions", "not_shown", 0)
	m.Verified(120, 7)
	require.Subset(t, ours(t, m), []string{
		`ledger_indexer_sealed_windows_total{result="equal",stream="updates"} 2`, `ledger_indexer_sealed_windows_total{result="different",stream="updates"} 1`,
		`ledger_indexer_sealed_windows_total{result="not_shown",stream="transactions"} 1`, `ledger_indexer_differences_total{stream="updates"} 3`,
		`ledger_indexer_differences_total{stream="transactions"} 0`, "ledger_indexer_verified_offset 120", "ledger_indexer_verified_seq 7",
	})
}

// What is told of a network's updates stands beside what is told of a participant's, with a label.
func TestMetricsOfANetwork(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	n := m.OfNetwork()
	m.Leading("updates", true)
	n.Leading("updates", false)
	m.Committed(100, 3)
	n.Committed(200, 5)
	n.LedgerEnd(250)
	lines := ours(t, m)
	require.Subset(t, lines, []string{
		"ledger_indexer_watermark_offset 100", `ledger_indexer_watermark_offset{ledger="network"} 200`,
		"ledger_indexer_updates_total 3", `ledger_indexer_updates_total{ledger="network"} 5`,
		`ledger_indexer_lag_offsets{ledger="network"} 50`,
		`ledger_indexer_leading{stream="updates"} 1`, `ledger_indexer_leading{ledger="network",stream="updates"} 0`,
	})

	// The records that follow from them have the metrics of a transaction history, and how far they are.
	n.Leading("transactions", true)
	n.TransactionsResumed(4, false)
	n.TransactionsCommitted(9, false, 5)
	n.Derived(180)
	stored := time.Now()
	n.TransactionStored(stored.Add(-time.Hour))
	n.Retrying("transactions", "database")
	lines = ours(t, m)
	require.Subset(t, lines, []string{
		`ledger_indexer_transaction_history_records_total{ledger="network"} 5`, "ledger_indexer_transaction_history_records_total 0",
		`ledger_indexer_transaction_history_seq{ledger="network"} 9`, `ledger_indexer_derived_offset{ledger="network"} 180`, "ledger_indexer_derived_offset 0",
		`ledger_indexer_retries_total{ledger="network",reason="database",stream="transactions"} 1`,
	})
	lag := valueOf(t, lines, `ledger_indexer_lag_seconds{ledger="network",stream="transactions"}`)
	require.GreaterOrEqual(t, lag, 3600.0, "what was missing still is")
	require.LessOrEqual(t, lag, (time.Hour + time.Since(stored)).Seconds())
	n.TransactionsCurrent()
	require.Contains(t, ours(t, m), `ledger_indexer_lag_seconds{ledger="network",stream="transactions"} 0`)
}

// Two of them in one process do not meet in a registry, and many goroutines may tell one of them.
func TestMetricsHaveARegistryOfTheirOwn(t *testing.T) {
	t.Parallel()
	one, two := NewMetrics(), NewMetrics()
	one.Leading("updates", true)
	var everybody sync.WaitGroup
	for range 8 {
		everybody.Go(func() {
			for i := range int64(100) {
				one.Committed(i, 1)
				one.LedgerEnd(200)
				one.Request(t.Context(), "updates", 200, time.Millisecond, 1)
			}
			one.Committed(99, 0)
		})
	}
	everybody.Wait()
	require.Subset(t, ours(t, one), []string{"ledger_indexer_updates_total 800", "ledger_indexer_lag_offsets 101"})
	require.Contains(t, ours(t, two), "ledger_indexer_updates_total 0")
}
