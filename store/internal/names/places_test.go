package names

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/hermetic"
)

// A name has one place, wherever its text is in memory, and names that begin in the same memory have one each.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := newPlaces[string]()
	text := strings.Clone("abc")
	elsewhere, shorter, none := strings.Clone(text), text[:2], ""
	require.NotSame(t, unsafe.StringData(text), unsafe.StringData(elsewhere))
	for range 2 {
		for place, name := range []string{text, shorter, none} {
			require.Equal(t, Place(place), p.add(name, name))
		}
		require.Equal(t, Place(0), p.add(elsewhere, elsewhere))
		require.Equal(t, []string{"abc", "ab", ""}, p.Keys)
		for place, name := range p.Keys {
			for _, name := range []string{name, strings.Clone(name)} {
				found, has := p.find(name, name)
				require.True(t, has)
				require.Equal(t, Place(place), found)
			}
		}
		_, has := p.find(text, "abd")
		require.False(t, has, "a guess is compared")
	}
	p.clear()
	_, has := p.find(text, text)
	require.False(t, has)
	require.Equal(t, Place(0), p.add(shorter, shorter))
}
