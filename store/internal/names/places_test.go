package names

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
)

// A name has one number, and a list of parties one place, wherever their texts are in memory.
func TestPlaces(t *testing.T) {
	t.Parallel()
	n := NewReferences()
	text := strings.Clone("abc")
	elsewhere, shorter := strings.Clone(text), text[:2]
	require.NotSame(t, unsafe.StringData(text), unsafe.StringData(elsewhere))
	for range 2 {
		for _, name := range []string{text, shorter, ""} {
			number := n.Synchronizer(name)
			require.Same(t, number, n.Synchronizer(strings.Clone(name)))
			require.Same(t, number, n.Synchronizers.Numbers[n.Synchronizers.byKey[name]])
		}
		for place, list := range [][]string{{text, shorter}, {text}, {}, {shorter, text}} {
			require.Equal(t, ListPlace(place), n.List(list))
		}
		require.Equal(t, ListPlace(0), n.List([]string{elsewhere, strings.Clone(shorter)}))
		require.Equal(t, NoList, n.List(nil))
		require.Nil(t, n.Parties(nil))
	}
	require.Equal(t, []string{"abc", "ab", ""}, n.Synchronizers.Keys)
	require.Len(t, n.Lists, 4)
}

// Lists of one hash are told apart.
func TestListsOfOneHash(t *testing.T) {
	t.Parallel()
	n := NewReferences()
	first := n.List([]string{"a"})
	n.places[hashOf([]string{"b"})] = first
	second := n.List([]string{"b"})
	require.NotEqual(t, first, second)
	require.Equal(t, second, n.List([]string{"b"}))
	require.Equal(t, first, n.List([]string{"a"}))
}

// Numbers are not those of a batch before, whose rows may still have them.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	n := NewReferences()
	kept := n.Parties([]string{"a"})
	*kept = 7
	n.Release()
	for range 2 * numbersAtOnce {
		require.NotSame(t, kept, n.number())
	}
	require.EqualValues(t, 7, *kept)
}
