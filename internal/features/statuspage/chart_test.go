package statuspage

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/features/status"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

func lagOf(s Sample) Measured { return s.Lag }

// A chart has its time and its scale, and a gap where nothing is known.
func TestChart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration, lag Measured) Sample { return Sample{At: now.Add(-ago), Lag: lag} }
	for name, c := range map[string]struct {
		samples    []Sample
		line, area string
		most, now  string
	}{
		"nothing":      {nil, "", "", "10 s", "not known"},
		"unknown":      {[]Sample{at(time.Minute, unknown)}, "", "", "10 s", "not known"},
		"a line":       {[]Sample{at(15*time.Second, 20), at(0, 5)}, "M597.5 0.0L600.0 75.0", "M597.5 0.0L600.0 75.0L600.0 100.0L597.5 100.0Z", "20 s", "5 s"},
		"a gap":        {[]Sample{at(30*time.Minute, 10), at(0, 0)}, "M300.0 0.0M600.0 100.0", "M300.0 0.0L300.0 100.0L300.0 100.0ZM600.0 100.0L600.0 100.0L600.0 100.0Z", "10 s", "0 s"},
		"unknown last": {[]Sample{at(15*time.Second, 10), at(0, unknown)}, "M597.5 0.0", "M597.5 0.0L597.5 100.0L597.5 100.0Z", "10 s", "not known"},
		"older":        {[]Sample{at(2*time.Hour, 10)}, "M0.0 0.0", "M0.0 0.0L0.0 100.0L0.0 100.0Z", "10 s", "10 s"},
	} {
		chart := newChart("lag", "Lag", c.samples, now, 10, lagOf, lagText)
		require.Equal(t, []string{c.line, c.area, c.most, c.now}, []string{chart.Line, chart.Area, chart.Most, chart.Now}, name)
	}
}

func TestRoundUp(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]float64{0.3: 0.5, 1: 1, 1.1: 2, 2: 2, 4: 5, 7: 10, 10: 10, 21000: 50000} {
		require.InEpsilon(t, want, roundUp(value), 1e-9, value)
	}
}

func TestRoundUpTime(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]float64{7: 10, 45: 50, 70: 120, 400: 600, 4000: 7200, 90_000: 172_800, 40_000_000: 43_200_000} {
		require.InEpsilon(t, want, roundUpTime(value), 1e-9, value)
	}
}

// The bar shows what is missing, too, and where it begins.
func TestBar(t *testing.T) {
	t.Parallel()
	floor := ledger.Offset(500)
	s := status.Stream{
		Watermark: 800, Frontier: 800, HistoryFloor: 500, StateFloor: &floor, FirstUpdate: 510,
		Coverage: []ledger.Range{{From: 500, To: 900}, {From: 950, To: 960}},
	}
	verified := &status.Verified{Verified: store.Verified{Offset: 600}}
	b := newBar(s, verified, 1000, false)
	require.Equal(t, []part{{500, 300, "shown"}, {800, 100, "ahead"}, {950, 10, "ahead"}}, b.Parts)
	require.Equal(t, &part{500, 100, "verified"}, b.Verified)
	require.Equal(t, []mark{{500, "state"}}, b.Marks)
	require.Equal(t, "Of the offsets 0 to 1,000 41% are stored", b.Label)

	b = newBar(s, nil, 0, true)
	require.Equal(t, "Of the offsets 509 to 960 88.9% are stored", b.Label, "offsets that are times begin with what is stored")
	require.Nil(t, b.Verified)
	s.PrunedTo = 500
	require.Equal(t, "Of the offsets 500 to 960 89.1% are stored", newBar(s, nil, 0, false).Label, "what was pruned is no gap")
	s = status.Stream{Watermark: 1_000_000, Frontier: 1_000_000, FirstUpdate: 1, Coverage: []ledger.Range{{From: 0, To: 1_000_000}}}
	require.Equal(t, "Of the offsets 0 to 1,000,001 99.9% are stored", newBar(s, nil, 1_000_001, false).Label, "what is missing is not rounded away")
	s.Coverage = []ledger.Range{{From: 999_999, To: 1_000_000}}
	require.Equal(t, []part{{997, 3, "shown"}}, newBar(s, nil, 0, false).Parts, "what is narrow can be seen")
}

func TestTheLastAreKept(t *testing.T) {
	t.Parallel()
	var kept []int
	for i := range 5 {
		kept = withLast(kept, i, 3)
	}
	require.Equal(t, []int{2, 3, 4}, kept)
}

// The journal keeps the last warnings and errors, also those that the log leaves out, and counts those that repeat.
func TestJournal(t *testing.T) {
	t.Parallel()
	var j Journal
	logger := slog.New(j.Handler(slog.DiscardHandler)).With("ledger", "network")
	logger.Info("nothing to see")
	logger.Warn("first", "wait", 3)
	for i := range noticesKept {
		logger.Error("again", "task", fmt.Sprint(i%2), "reason", fmt.Sprintf("failed at offset %d; what to do: mend it", 10+i))
	}
	notices := j.Notices()
	require.Len(t, notices, 3)
	for i := range notices {
		require.False(t, notices[i].At.IsZero())
		notices[i].At = time.Time{}
	}
	require.Equal(t, []Notice{
		{Times: 6, Level: "ERROR", Of: "network, 1", What: "again", Detail: "failed at offset 21", Do: "mend it"},
		{Times: 6, Level: "ERROR", Of: "network, 0", What: "again", Detail: "failed at offset 20", Do: "mend it"},
		{Times: 1, Level: "WARN", Of: "network", What: "first"},
	}, notices)
	for i := range 2 * noticesKept {
		logger.Warn(fmt.Sprint(i)) //nolint:sloglint // other messages
	}
	require.Len(t, j.Notices(), noticesKept)
	require.Equal(t, fmt.Sprint(2*noticesKept-1), j.Notices()[0].What)
}
