package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// A task that is to finish does what has come until then, and ends, however long it would have rested.
func TestTasksFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		shelf := newPackageShelf(map[string]error{"a": nil})
		types := PackageContents{Source: shelf, Sink: shelf, Read: shelf.read, Logger: shelf.logger(), Finish: finish}
		packages := newPackages(t)
		packages.Finish = finish
		lookups := newLookups(t, ids(1)...)
		lookups.Finish = finish
		ended := make(chan error, 3)
		for _, run := range []func(context.Context) error{types.Run, packages.Run, lookups.Run} {
			go func() { ended <- run(t.Context()) }()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second) // all rest now
		require.Empty(t, ended)
		shelf.wanted = append(shelf.wanted, "b")
		lookups.memory.want("contract-late")
		began := time.Now()
		close(finish)
		for range 3 {
			require.NoError(t, <-ended)
		}
		require.Less(t, time.Since(began), 10*time.Second) // of the bubble's time
		require.Len(t, shelf.stored, 2)
		require.Len(t, lookups.memory.outcomes(), 2)
		reads, _ := packages.count()
		require.Equal(t, 2, reads) // what is vetted may have changed
	})
}

// What may pass is waited for, what an operator must cure ends the task with the reason, and what the source does not
// offer is not missing.
func TestTasksThatFailFinish(t *testing.T) {
	t.Parallel()
	problem := &ledger.Problem{What: "no right", Do: "grant it"}
	for name, c := range map[string]struct {
		err      error
		passes   bool
		returned error
	}{
		"passes":      {err: errors.New("away"), passes: true},
		"problem":     {err: problem, returned: problem},
		"not offered": {err: ledger.ErrNotOffered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				finish := make(chan struct{})
				var memory told
				var cured atomic.Bool
				ended := make(chan error, 1)
				go func() {
					ended <- RunEvery(t.Context(), TaskReport{Sink: &memory, Logger: memory.logger(), Finish: finish}, time.Hour,
						func(context.Context) error {
							if cured.Load() {
								return nil
							}
							return c.err
						})
				}()
				synctest.Wait()
				close(finish)
				if c.passes {
					time.Sleep(time.Hour)
					require.Empty(t, ended)
					cured.Store(true)
				}
				require.ErrorIs(t, <-ended, c.returned)
			})
		})
	}
}
