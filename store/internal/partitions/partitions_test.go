package partitions

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestPartitionsFirstMissing(t *testing.T) {
	t.Parallel()
	spans := []span{{0, 10}, {10, 20}, {50, 60}}
	for _, c := range []struct {
		offsets []int64
		missing int64
		found   bool
	}{
		{nil, 0, false},
		{[]int64{0, 9, 10, 19, 50, 59}, 0, false},
		{[]int64{5, 20, 60}, 20, true},
		{[]int64{49}, 49, true},
		{[]int64{60}, 60, true},
		{[]int64{math.MaxInt64}, math.MaxInt64, true},
	} {
		missing, found := firstMissing(spans, c.offsets)
		require.Equal(t, c.found, found, c.offsets)
		require.Equal(t, c.missing, missing, c.offsets)
	}
	_, found := firstMissing(nil, []int64{0})
	require.True(t, found)
}

func TestPartitionsNext(t *testing.T) {
	t.Parallel()
	const m = FirstWidth
	many := make([]span, WidthStep)
	for i := range many {
		many[i] = span{int64(i) * m, int64(i+1) * m}
	}
	for _, c := range []struct {
		spans  []span
		offset int64
		want   span
	}{
		{nil, 0, span{0, m}},
		{nil, m - 1, span{0, m}},
		{nil, m, span{m, 2 * m}},
		{nil, math.MaxInt64 - 1, span{math.MaxInt64 - math.MaxInt64%m, math.MaxInt64}},
		{many, 16 * m, span{16 * m, 20 * m}},
		{many, 23 * m, span{20 * m, 24 * m}},
		{append([]span{{18 * m, 19 * m}}, many...), 17 * m, span{16 * m, 18 * m}},
		{append([]span{{18 * m, 19 * m}}, many...), 19 * m, span{19 * m, 20 * m}},
	} {
		require.Equal(t, c.want, nextPartition(c.spans, c.offset, m), c.offset)
	}
}

// Wherever rows come, partitions hold them, do not overlap, and are few: 64 hold 1.3 billion offsets.
func TestPartitionsGrow(t *testing.T) {
	t.Parallel()
	var spans []span
	end := int64(0)
	for n := 1; n <= 64; n++ {
		next := nextPartition(spans, end, FirstWidth)
		require.Equal(t, end, next.from, "no holes in a ledger without gaps")
		spans = append(spans, next)
		end = next.to
	}
	require.Greater(t, end, int64(1_300_000_000))

	rapid.Check(t, func(t *rapid.T) {
		var spans []span
		for _, offset := range rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64-1), 1, 100).Draw(t, "offsets") {
			offset >>= rapid.IntRange(0, 62).Draw(t, "shift")
			missing, found := firstMissing(spans, []int64{offset})
			if !found {
				continue
			}
			require.Equal(t, offset, missing)
			next := nextPartition(spans, offset, FirstWidth)
			require.LessOrEqual(t, next.from, offset)
			require.Greater(t, next.to, offset)
			spans = insertSpan(spans, next)
			for i := 1; i < len(spans); i++ {
				require.LessOrEqual(t, spans[i-1].to, spans[i].from, "overlap")
			}
			_, found = firstMissing(spans, []int64{offset})
			require.False(t, found)
		}
	})
}

// A network's updates are a second apart, which is a million offsets. Ten years of them, after a migration, need few
// partitions.
func TestPartitionsOfASparseLedger(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * 3600 * 1_000_000
	apart := int64(1_000_000)
	var spans []span
	for _, migration := range []int64{0, 1, 3} {
		begin := migration<<52 + 54*year
		for offset := begin; offset < begin+10*year; offset += year / 500 {
			if missing, found := firstMissing(spans, []int64{offset}); found {
				spans = insertSpan(spans, nextPartition(spans, missing, apart*FirstWidth))
			}
		}
	}
	require.Less(t, len(spans), 75)
	for i := 1; i < len(spans); i++ {
		require.LessOrEqual(t, spans[i-1].to, spans[i].from)
	}
	require.Equal(t, []int64{apart*FirstWidth + 7}, needed([]int64{apart*FirstWidth + 3}, apart*FirstWidth+7, apart*FirstWidth))
}

// FuzzNextPartition makes partitions for offsets in any order: each holds its offset and none holds what another does.
func FuzzNextPartition(f *testing.F) {
	f.Add(int64(0), int64(1), int64(math.MaxInt64-1), int64(5_000_000))
	f.Add(int64(999_999), int64(1_000_000), int64(16_000_000), int64(64_000_000))
	f.Fuzz(func(t *testing.T, a, b, c, d int64) {
		var spans []span
		for i := range int64(80) {
			for _, seed := range []int64{a, b, c, d} {
				offset := (seed&math.MaxInt64)/(i+1) + i*i*i*1_000_003
				if offset < 0 || offset == math.MaxInt64 {
					continue
				}
				if _, missing := firstMissing(spans, []int64{offset}); !missing {
					continue
				}
				next := nextPartition(spans, offset, FirstWidth)
				require.True(t, next.from <= offset && offset < next.to, "%v for %d", next, offset)
				spans = insertSpan(spans, next)
			}
		}
		for i := 1; i < len(spans); i++ {
			require.LessOrEqual(t, spans[i-1].to, spans[i].from)
		}
	})
}
