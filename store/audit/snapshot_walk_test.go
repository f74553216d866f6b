package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// walkOver is a walk over pages of up to a hundred keys, before keys that are stored.
func walkOver(source, stored []string) *snapshotWalk {
	var pages [][]string
	for page := range slices.Chunk(source, 100) {
		pages = append(pages, page)
	}
	return &snapshotWalk{
		read: func(_ context.Context, token ledger.Token) (ledger.SnapshotPage, error) {
			n := len(token.Value)
			if len(pages) == 0 {
				return ledger.SnapshotPage{Last: true}, nil
			}
			next := ledger.Token{Value: token.Value + "x"}
			return ledger.SnapshotPage{Entries: make([]ledger.ContractEntry, len(pages[n])), Next: next, Last: n == len(pages)-1}, nil
		},
		compare: func(_ context.Context, before int64, entries []ledger.ContractEntry, _ bool) (keys []EntryKey, err error) {
			for _, key := range source[before : before+int64(len(entries))] {
				keys = append(keys, EntryKey{contractID: key})
			}
			return keys, nil
		},
		stored: func(_ context.Context, each EachStored) error {
			for _, key := range stored {
				each(EntryKey{contractID: key}, Difference{Row: key})
			}
			return nil
		},
	}
}

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
		w := walkOver(source, stored)
		w.extra = func(key EntryKey, d Difference) {
			require.Equal(t, key.contractID, d.Row)
			got = append(got, d.Row)
		}
		require.NoError(t, w.all(t.Context()))
		slices.Sort(got)
		slices.Sort(extra)
		require.Equal(t, extra, got)
	}
}

// A walk continues where it failed, whatever failed: each page is compared once in a pass, and what is besides is told.
func TestAWalkGoesOnWhereItFailed(t *testing.T) {
	t.Parallel()
	var source []string
	for i := range 450 {
		source = append(source, fmt.Sprint("contract ", i))
	}
	w := walkOver(source, append(slices.Clone(source), "another"))
	failures, calls := 0, 0
	fails := func() error { // of five calls the first and the third
		if calls++; calls%5 == 1 || calls%5 == 3 {
			failures++
			return errors.New("failed")
		}
		return nil
	}
	read, compare, stored := w.read, w.compare, w.stored
	w.read = func(ctx context.Context, token ledger.Token) (ledger.SnapshotPage, error) {
		page, err := read(ctx, token)
		return page, errors.Join(err, fails())
	}
	var first, again int
	w.compare = func(ctx context.Context, before int64, entries []ledger.ContractEntry, twice bool) ([]EntryKey, error) {
		keys, err := compare(ctx, before, entries, twice)
		if err = errors.Join(err, fails()); err == nil && twice {
			again++
		} else if err == nil {
			first++
		}
		return keys, err
	}
	w.stored = func(ctx context.Context, each EachStored) error {
		return errors.Join(stored(ctx, each), fails())
	}
	var got []string
	w.extra = func(_ EntryKey, d Difference) { got = append(got, d.Row) }
	for done := false; !done; {
		done, _ = w.step(t.Context())
	}
	require.Equal(t, []int{5, 5}, []int{first, again})
	require.Positive(t, failures)
	require.Contains(t, got, "another")
	require.EqualValues(t, len(source), w.before)
}

func TestWalksEndWithAnError(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	w := walkOver(nil, []string{"a"})
	w.stored = func(context.Context, EachStored) error { return failed }
	require.ErrorIs(t, w.all(t.Context()), failed)
	w = walkOver(nil, nil)
	w.read = func(context.Context, ledger.Token) (ledger.SnapshotPage, error) { return ledger.SnapshotPage{}, failed }
	require.ErrorIs(t, w.all(t.Context()), failed)
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
