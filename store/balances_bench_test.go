package store

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchTransfers is how many transfers BenchmarkTransfers is about, with two balance changes each. STORE_BENCH_TRANSFERS
// sets it: the goals are for 2,000,000.
func benchTransfers(b *testing.B) int {
	b.Helper()
	text := os.Getenv("STORE_BENCH_TRANSFERS")
	if text == "" {
		return 20_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// question is what analysts ask, and what they would have to ask without what is derived from transfers. Where there is
// a $1, it is the party.
type question struct{ name, query, naive string }

func questions() []question {
	const (
		either  = "FROM ledger.transfers x JOIN ledger.transfer_receivers r USING (seq) WHERE (x.sender = $1 OR r.party = $1) "
		columns = "SELECT x.seq, x.date, x.sender, x.description, x.transfer_kind, x.event_id, r.party, r.amount "
		latest  = columns + either + "ORDER BY x.date DESC, x.seq DESC LIMIT 100"
		day     = "AND date >= '2025-01-20Z' AND date < '2025-01-21Z' "
		balance = "sum(change_to_initial_amount_as_of_round_zero) - sum(change_to_holding_fees_rate) * (3500 + 1)"
	)
	theDay := strings.ReplaceAll(day, "date", "x.date")
	return []question{
		{"latest 100 transfers", "SELECT * FROM ledger.party_transfers WHERE party = $1 LIMIT 100", latest},
		{"latest 100 transfers, in order", "SELECT * FROM ledger.party_transfers WHERE party = $1 ORDER BY date DESC, seq DESC LIMIT 100", latest},
		{"latest 100 amounts", "SELECT date, direction, amount, fee FROM ledger.party_transfers WHERE party = $1 LIMIT 100", latest},
		{"transfers of a day", "SELECT * FROM ledger.party_transfers WHERE party = $1 " + day, columns + either + theDay},
		{
			"sums of a day", "SELECT direction, count(*), sum(amount) FROM ledger.party_transfers WHERE party = $1 " + day + "GROUP BY 1",
			"SELECT x.sender = $1, count(*), sum(r.amount) " + either + theDay + "GROUP BY 1",
		},
		{
			"balance of a party", "SELECT ledger.reported_balance_at($1, 3500)",
			"SELECT " + balance + " FROM ledger.balance_changes WHERE party = $1 AND round <= 3500",
		},
		{
			"top 100 balances", "SELECT * FROM ledger.reported_balances_at(3500) ORDER BY balance DESC NULLS LAST, party LIMIT 100",
			"SELECT party, " + balance + " FROM ledger.balance_changes WHERE round <= 3500 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100",
		},
		{
			"top 100 balances, newest round", "SELECT * FROM ledger.reported_balances_at(4000) ORDER BY balance DESC NULLS LAST, party LIMIT 100",
			"SELECT party, " + strings.ReplaceAll(balance, "3500", "4000") + " FROM ledger.balance_changes GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100",
		},
	}
}

// Questions about a party that takes part in a tenth of all transfers and balance changes, and about all parties; and what
// it takes to derive what answers them, for 1,000 transfers behind all others. Times are medians.
func BenchmarkTransfers(b *testing.B) {
	h := newHistory(b)
	n := benchTransfers(b)
	heavy := h.fillTransfers(n)
	h.Exec("SET jit = off") // forms of a question are compared, not what compiling them takes
	for _, q := range questions() {
		var args []any
		if strings.Contains(q.query, "$1") {
			args = []any{heavy}
		}
		b.Run(strings.NewReplacer(" ", "-", ",", "").Replace(q.name), func(b *testing.B) {
			require.Len(b, h.Rows(q.query, args...), len(h.Rows(q.naive, args...)), "both forms have as many rows")
			timed := func(query string) time.Duration {
				started := time.Now()
				h.Exec(query, args...)
				return time.Since(started)
			}
			var times, naive []time.Duration
			for b.Loop() {
				times = append(times, timed(q.query))
			}
			for range 5 {
				naive = append(naive, timed(q.naive))
			}
			reportMedian(b, times)
			b.ReportMetric(float64(median(naive))/float64(median(times)), "x-faster")
		})
	}
}

func reportMedian(b *testing.B, times []time.Duration) {
	b.ReportMetric(0, "ns/op") // the mean, and preparations in it
	b.ReportMetric(float64(median(times).Nanoseconds())/1e6, "ms")
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
