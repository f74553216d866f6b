package admin

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lagsOf are what the metrics say of lag: in offsets, and in seconds of the updates and of the history.
func lagsOf(t *testing.T, m *Metrics) (offsets, updates, history float64) {
	t.Helper()
	lines := ours(t, m)
	of := func(stream string) float64 {
		return valueOf(t, lines, `ledger_indexer_lag_seconds{stream="`+stream+`"}`)
	}
	return valueOf(t, lines, "ledger_indexer_lag_offsets"), of(streamUpdates), of(streamTransactions)
}

// Lag is 0 where everything is shown as the participant answered last, and not known where it does not answer.
func TestLagOfTheUpdates(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	expect := func(wantOffsets, wantSeconds float64, why string) {
		t.Helper()
		offsets, seconds, _ := lagsOf(t, m)
		for _, pair := range [][2]float64{{wantOffsets, offsets}, {wantSeconds, seconds}} {
			if math.IsNaN(pair[0]) {
				require.True(t, math.IsNaN(pair[1]), "%s: %v", why, pair[1])
				continue
			}
			require.InDelta(t, pair[0], pair[1], 60, why)
		}
	}
	unknown := math.NaN()
	require.NotContains(t, strings.Join(ours(t, m), "\n"), "_lag_", "nothing is to be read")
	m.Leading("transactions", false)
	m.Leading("updates", false)
	expect(unknown, unknown, "nobody was asked")
	require.True(t, math.IsNaN(valueOf(t, ours(t, m), "ledger_indexer_ledger_end_offset")))
	m.Leading("updates", true)
	m.Committed(1000, 0)
	expect(unknown, unknown, "resumed, and the end was not asked for")
	m.LedgerEnd(9000)
	expect(8000, unknown, "nothing is known of the age of what is shown")
	m.Shown(time.Now().Add(time.Hour))
	expect(8000, unknown, "the ledger's clock is ahead")
	m.Shown(time.Now().Add(-2 * time.Hour))
	expect(8000, 7200, "behind")
	m.Retrying("updates", "database")
	expect(8000, 7200, "the participant failed, and what was missing still is")
	m.UpdatesRecovered()
	expect(8000, 7200, "it answers again, and was ahead")
	m.Shown(time.Now().Add(-time.Hour))
	m.Committed(9000, 5)
	expect(0, 0, "everything is shown")
	m.LedgerEnd(20_000)
	expect(11_000, 1, "everything was shown just now, however old it is")
	m.Committed(20_000, 5)
	m.TaskRetrying("lookups")
	expect(0, 0, "another one failed")
	m.Retrying("updates", "database")
	expect(unknown, unknown, "it may have grown")
	m.UpdatesRecovered()
	expect(unknown, unknown, "where the ledger ends by now was not said")
	m.Committed(20_000, 0)
	expect(unknown, unknown, "resumed")
	m.LedgerEnd(20_000)
	expect(0, 0, "asked, and it has not grown")
	m.LedgerEnd(30_000)
	m.Shown(time.Now().Add(time.Hour))
	expect(10_000, 1, "the ledger's clock is ahead, and everything was shown just now")
	m.Leading("updates", false)
	expect(unknown, unknown, "another process may lead")
	m.Leading("updates", true)
	m.UpdatesRecovered()
	expect(unknown, unknown, "the end was another leader's to ask for")
}

func TestLagOfTheHistory(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	expect := func(want float64, why string) {
		t.Helper()
		_, _, seconds := lagsOf(t, m)
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(seconds), "%s: %v", why, seconds)
			return
		}
		require.InDelta(t, want, seconds, 60, why)
	}
	unknown := math.NaN()
	m.Leading("transactions", true)
	require.NotContains(t, strings.Join(ours(t, m), "\n"), "lag_offsets", "no updates are to be read")
	m.Leading("updates", false)
	expect(unknown, "nobody was asked")
	m.TransactionsResumed(7, false)
	expect(unknown, "resumed")
	m.TransactionStored(time.Now().Add(-time.Hour))
	m.TransactionsCommitted(9, false, 2)
	expect(3600, "there may be more")
	m.TransactionsCurrent()
	expect(0, "read to its end")
	m.SourceLost("transactions")
	expect(unknown, "the service has something to do first")
	m.TransactionsCurrent()
	m.Retrying("transactions", "database")
	expect(unknown, "the service failed")
	m.TransactionsCommitted(10, false, 1)
	expect(1, "everything was there just now")
	m.Leading("transactions", false)
	expect(unknown, "another process may lead")
	require.NotContains(t, strings.Join(ours(t, m), "\n"), "lag_seconds{stream=\"lookups\"")
}
