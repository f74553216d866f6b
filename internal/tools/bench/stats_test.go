package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Zero(t, median(nil))
	require.Equal(t, 3.0, median([]float64{9, 3, 1}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	values := []float64{3, 1, 2}
	median(values)
	require.Equal(t, []float64{3, 1, 2}, values, "they are not sorted in place")
}

func TestPercentile(t *testing.T) {
	require.Zero(t, percentile(nil, 99))
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(200-i))
	}
	require.Equal(t, time.Duration(100), percentile(values, 50))
	require.Equal(t, time.Duration(198), percentile(values, 99))
	require.Equal(t, time.Duration(200), percentile(values, 100))
	require.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 1))
}

func TestDelays(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	arrived := []arrival{{3, at(0)}, {5, at(10)}, {6, at(20)}, {9, at(30)}}
	seen := []arrival{{2, at(1)}, {5, at(40)}, {8, at(45)}, {12, at(60)}}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{40 * ms, 30 * ms, 25 * ms, 30 * ms}, delays(arrived, seen))
	require.Len(t, delays(arrived, seen[:3]), 3, "the last one was not seen")
}

func TestTenths(t *testing.T) {
	began := time.Now()
	data := &dataset{}
	var seen []arrival
	seen = append(seen, arrival{Offset: 999, At: began})
	for i := range 1000 {
		data.offsets = append(data.offsets, int64(1000+i))
		data.ends = append(data.ends, 0)
	}
	// A second for each of the first nine tenths, with several sightings in some, and two for the last one.
	for tenth := range 9 {
		if tenth%2 == 0 {
			seen = append(seen, arrival{Offset: int64(999 + 100*tenth + 50), At: began.Add(time.Duration(tenth)*time.Second + time.Second/2)})
		}
		seen = append(seen, arrival{Offset: int64(999 + 100*(tenth+1)), At: began.Add(time.Duration(tenth+1) * time.Second)})
	}
	seen = append(seen, arrival{Offset: 1999, At: began.Add(11 * time.Second)})
	rates := tenths(data, seen)
	require.Len(t, rates, 10)
	for _, r := range rates[:9] {
		require.InDelta(t, 100, r, 0.01)
	}
	require.InDelta(t, 50, rates[9], 0.01)
}
