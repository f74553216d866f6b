package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// marksAt makes marks of the seqs at places from 0; 0 stands for a record that was not recognised.
func marksAt(seqs ...int64) []historyMark {
	var marks []historyMark
	for i, seq := range seqs {
		if seq != 0 {
			marks = append(marks, historyMark{int64(i), seq})
		}
	}
	return marks
}

// The seq that a record should have follows from those around it, or can't be told.
func TestSeqsFollowFromPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		seqs, wanted []int64
	}{
		{"in order", []int64{1, 2, 3, 4}, []int64{1, 2, 3, 4}},
		{"not recognised", []int64{1, 2, 0, 0, 5, 6}, []int64{1, 2, 3, 4, 5, 6}},
		{"neighbours swapped", []int64{1, 2, 4, 3, 5, 6, 7, 8}, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		{"swapped", []int64{1, 7, 3, 4, 5, 6, 2, 8}, []int64{1, 2, 3, 4, 5, 6, 7, 8}},
		{"never stored", []int64{1, 2, 3, 0, 4, 5, 6}, []int64{1, 2, 3, 0, 4, 5, 6}},
		{"one too many", []int64{1, 2, 3, 5, 6, 7}, []int64{1, 2, 3, 5, 6, 7}},
		{"behind the last", []int64{5, 6, 7, 0, 0, 0, 0}, []int64{5, 6, 7, 8, 9, 0, 0}},
		{"before the first", []int64{0, 6, 7}, []int64{0, 6, 7}},
		{"another order", []int64{4, 2, 1, 3, 8, 7, 6, 5}, []int64{0, 0, 0, 0, 0, 0, 0, 0}},
		{"nothing", []int64{0, 0}, []int64{0, 0}},
	} {
		order := backbone(marksAt(c.seqs...))
		got := make([]int64, len(c.seqs))
		for i := range got {
			got[i] = seqAt(order, int64(i), 9)
		}
		require.Equal(t, c.wanted, got, c.name)
	}
}

func TestBitset(t *testing.T) {
	t.Parallel()
	b := bitset{}
	numbers := []int64{0, 1, 63, 64, bitsetChunk - 1, bitsetChunk, 1 << 40, 1<<63 - 1}
	for _, n := range numbers {
		require.False(t, b.has(n))
		b.set(n)
		require.True(t, b.has(n))
	}
	require.False(t, b.has(2))
	for _, n := range numbers {
		b.clear(n)
		require.False(t, b.has(n))
	}
	b.clear(1 << 50)
}
