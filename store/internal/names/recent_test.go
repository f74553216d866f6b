package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is remembered has a bound, and what is asked for all the time stays.
func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	var r recent[int, int]
	const hot = -1
	r.put(hot, 7)
	for key := range 3 * mostOfAGeneration {
		_, known := r.get(key)
		require.False(t, known)
		r.put(key, key)
		value, known := r.get(hot)
		require.True(t, known)
		require.Equal(t, 7, value)
		value, known = r.get(key)
		require.True(t, known)
		require.Equal(t, key, value)
		require.LessOrEqual(t, len(r.younger), mostOfAGeneration)
		require.LessOrEqual(t, len(r.older), mostOfAGeneration)
	}
	require.Greater(t, len(r.younger)+len(r.older), mostOfAGeneration)
	_, known := r.get(0)
	require.False(t, known)
}
