package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// takeTurn is what one who stores does with its turn; nil: it is alone.
func takeTurn(ctx context.Context, order CommitOrder) error {
	if order == nil {
		return nil
	}
	if err := order.Begin(ctx); err != nil {
		return err
	}
	order.Began()
	return order.Wait(ctx)
}

// However long each takes to begin and to write: transactions begin in their order, several are open at a time, and
// what is stored is stored in its order. Behind one that fails, before or after it has begun, nothing is.
func TestWritesTakeTurns(t *testing.T) {
	t.Parallel()
	overlapped := false
	rapid.Check(t, func(rt *rapid.T) {
		takes := rapid.SliceOfN(rapid.IntRange(0, 50), 30, 30)
		before, after := takes.Draw(rt, "before"), takes.Draw(rt, "after")
		failing := rapid.IntRange(0, 40).Draw(rt, "failing") // none from 30 on
		failsBegun := rapid.Bool().Draw(rt, "begun")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		var mu sync.Mutex
		var begun, stored []int
		errs := make([]error, len(before))
		away := errors.New("away")
		synctest.Test(t, func(t *testing.T) {
			var group sync.WaitGroup
			writes := newOrderedCommits()
			for i := range before {
				this := writes.add()
				group.Go(func() {
					this.run(func(order CommitOrder) error {
						time.Sleep(time.Duration(before[i]) * time.Millisecond)
						if i == failing && !failsBegun {
							return away
						}
						if err := order.Begin(t.Context()); err != nil {
							return err
						}
						mu.Lock()
						begun = append(begun, i)
						overlapped = overlapped || len(begun) > len(stored)+1
						mu.Unlock()
						order.Began()
						time.Sleep(time.Duration(after[i]) * time.Millisecond)
						if i == failing {
							return away
						}
						if err := order.Wait(t.Context()); err != nil {
							return err
						}
						mu.Lock()
						defer mu.Unlock()
						stored = append(stored, i)
						return nil
					})
					errs[i] = this.err
				})
				time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
			}
			group.Wait()
		})
		for i, at := range begun {
			require.Equal(rt, i, at)
		}
		require.Len(rt, stored, min(failing, len(before)))
		for i, at := range stored {
			require.Equal(rt, i, at)
		}
		for i, err := range errs {
			switch {
			case i < failing:
				require.NoError(rt, err)
			case i == failing:
				require.ErrorIs(rt, err, away)
			default:
				require.ErrorIs(rt, err, errBefore)
			}
		}
	})
	require.True(t, overlapped)
}

// What waits for its turn keeps nothing from being written, up to a bound; what is not full waits until nothing is
// written.
func TestCommitsAreTakenWhileOthersWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := newOrderedCommits()
		var group sync.WaitGroup
		add := func() (write, store func()) {
			w := writes.add()
			written, stored := make(chan struct{}), make(chan struct{})
			group.Go(func() {
				w.run(func(order CommitOrder) error {
					<-written
					err := takeTurn(t.Context(), order)
					<-stored
					return err
				})
			})
			return func() { close(written); synctest.Wait() }, func() { close(stored); synctest.Wait() }
		}
		takes := func(full, partly bool) {
			t.Helper()
			require.Equal(t, full, writes.takes(true), "a full one")
			require.Equal(t, partly, writes.takes(false), "one that is not full")
		}
		takes(true, true)
		writeA, storeA := add()
		takes(true, false)
		writeB, storeB := add()
		takes(false, false)
		writeA()
		takes(true, false)
		writeC, storeC := add()
		takes(false, false)
		writeB()
		writeC()
		takes(true, true)
		writeD, storeD := add()
		takes(false, false) // so many may be open
		storeA()
		takes(true, false)
		writeD()
		takes(true, true)
		storeB()
		storeC()
		storeD()
		group.Wait()
		<-writes.moved
		takes(true, true)
		require.Empty(t, writes.open)
	})
}
