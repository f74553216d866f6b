package names

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is remembered has a bound, and what is asked for all the time stays.
func TestKnownListsAreBounded(t *testing.T) {
	t.Parallel()
	var c listCache
	one := func(key listKey) map[listKey]wantedList { return map[listKey]wantedList{key: {}} }
	keep := func(key listKey, ref int32) { c.keep([]listKey{key}, one(key), []*int32{&ref}) }
	keep("hot", -1)
	for i := range int32(40_000) {
		key := fmt.Sprintf("%0400d", i)
		keep(key, i)
		found := make([]*int32, 1)
		require.Empty(t, c.find(one("hot"), found))
		require.EqualValues(t, -1, *found[0])
		require.Empty(t, c.find(one(key), found))
		require.Equal(t, i, *found[0])
	}
	keep(strings.Repeat("x", knownListBytes/2), 1)
	bytes := 0
	for _, generation := range []map[listKey]*int32{c.younger, c.older} {
		for key := range generation {
			bytes += len(key) + knownListCosts
		}
	}
	require.LessOrEqual(t, bytes, knownListBytes)
	require.Greater(t, bytes, knownListBytes/2)
}
