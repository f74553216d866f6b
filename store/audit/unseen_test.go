package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExtrasAreFound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var source, stored, extra []string
		for i := range random.IntN(3000) {
			key := fmt.Sprint("contract ", seed, i)
			switch random.IntN(40) {
			case 0: // not stored: the comparison of its page tells of it
			case 1:
				extra = append(extra, key)
				stored = append(stored, key)
			default:
				source, stored = append(source, key), append(stored, key)
			}
		}
		random.Shuffle(len(stored), func(i, j int) { stored[i], stored[j] = stored[j], stored[i] })
		var got []string
		err := extras(
			func(seen func(string)) error {
				for _, key := range source {
					seen(key)
				}
				return nil
			},
			func(each func(string, Difference) error) error {
				for _, key := range stored {
					if err := each(key, Difference{Row: key}); err != nil {
						return err
					}
				}
				return nil
			},
			func(key string, d Difference) error {
				require.Equal(t, key, d.Row)
				got = append(got, key)
				return nil
			},
		)
		require.NoError(t, err)
		slices.Sort(got)
		slices.Sort(extra)
		require.Equal(t, extra, got)
	}
}

func TestExtrasEndWithAnError(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	nothing := func(func(string)) error { return nil }
	one := func(each func(string, Difference) error) error { return each("a", Difference{}) }
	found := func(string, Difference) error { return failed }
	require.ErrorIs(t, extras(nothing, one, found), failed)
	require.ErrorIs(t, extras(func(func(string)) error { return failed }, one, found), failed)
	require.NoError(t, extras(func(seen func(string)) error { seen("a"); return nil }, one, found))
}

// A group holds no more keys than are to be in memory at once.
func TestSuspectsComeInGroups(t *testing.T) {
	t.Parallel()
	var x tally
	for i := range 10 {
		x.buckets[i] = tallyBucket{keys: suspectKeys / 2, low: 1}
	}
	x.buckets[20] = tallyBucket{keys: 5}
	groups := x.differing()
	require.Len(t, groups, 5)
	for _, group := range groups {
		require.Len(t, group, 2)
	}
}
