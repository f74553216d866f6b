package config

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// At least one request is in flight, and not more than a participant in production bears; a rate that is no rate is
// refused.
func TestPacesOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []RequestLimits{{1, 0}, {8, 0}, {32, 0}, {8, 0.1}, {8, 0.5}, {8, 1e6}} {
		require.NoError(t, p.Validate(), "%v", p)
	}
	for _, n := range []int{-1, 0, 33, math.MaxInt} {
		require.ErrorContains(t, RequestLimits{MaxRequests: n}.Validate(), "--max-requests must be 1 to 32, not ", "%v", n)
	}
	for _, rate := range []float64{math.NaN(), math.Inf(-1), -1, -0.1, 0.099, math.SmallestNonzeroFloat64} {
		require.ErrorContains(t, RequestLimits{MaxRequests: 8, MaxRate: rate}.Validate(), "--max-rate must be at least 0.1 a second, or 0 for no limit, not ", "%v", rate)
	}
}

func TestAPaceOutOfRangeIsAUsageError(t *testing.T) {
	t.Parallel()
	var flags struct {
		Run struct{ RequestLimits } `cmd:""`
		Log
	}
	for _, args := range [][]string{{"--max-requests=0"}, {"--max-requests=33"}, {"--max-rate=0.01"}, {"--max-rate=NaN"}} {
		var usage *UsageError
		require.ErrorAs(t, parseInto(t, &flags, nil, append([]string{"run"}, args...)...), &usage)
		require.ErrorContains(t, usage, args[0][:len("--max-r")])
	}
	require.NoError(t, parseInto(t, &flags, nil, "run"))
	require.Equal(t, RequestLimits{MaxRequests: 8}, flags.Run.RequestLimits)
	require.NoError(t, parseInto(t, &flags, map[string]string{"INDEXER_MAX_REQUESTS": "3", "INDEXER_MAX_RATE": "2.5"}, "run"))
	require.Equal(t, RequestLimits{MaxRequests: 3, MaxRate: 2.5}, flags.Run.RequestLimits)
}
