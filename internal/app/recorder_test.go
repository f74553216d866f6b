package app

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
	"ledgerindexer/ledger"
	"ledgerindexer/store"
)

// What is told is shown at once and recorded beside the work: that it began or ended without delay, and whatever is
// left when the leader's term ends.
func TestProgressIsRecorded(t *testing.T) {
	t.Parallel()
	db, err := store.Open(store.Config{URL: throwaway.Migrated(t, migrate), Holder: "test"})
	require.NoError(t, err)
	defer db.Close()
	leader, ok, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	defer leader.Close()
	recorded := func() (list []int64) {
		t.Helper()
		status, err := db.Status(t.Context())
		require.NoError(t, err)
		for _, p := range status.Progress {
			list = append(list, p.Position)
		}
		return list
	}
	at := ledger.Progress{Stream: "updates", Unit: "updates", BeganAt: time.Now(), Position: 7, End: 100}

	until := func(wanted []int64) {
		t.Helper()
		eventually(t, fmt.Sprint("recorded: ", wanted), func() bool { return slices.Equal(wanted, recorded()) })
	}
	report, end := startRecording(t.Context(), leader.RecordProgress, testLogger(t))
	report(at)
	until([]int64{7})
	at.Position = 9
	report(at)
	end()
	require.Equal(t, []int64{9}, recorded(), "what was not recorded when the work ended")

	report, end = startRecording(t.Context(), leader.RecordProgress, testLogger(t))
	defer end()
	report(at)
	at.Ended = true
	report(at)
	until(nil)
}

// Nothing waits for a database that does not take the progress.
func TestProgressThatCantBeRecorded(t *testing.T) {
	t.Parallel()
	db, err := store.Open(store.Config{URL: throwaway.Migrated(t, migrate), Holder: "test"})
	require.NoError(t, err)
	defer db.Close()
	leader, _, err := db.LeadUpdates(t.Context())
	require.NoError(t, err)
	leader.Close()
	report, end := startRecording(t.Context(), leader.RecordProgress, testLogger(t))
	report(ledger.Progress{Stream: "updates", Position: 7})
	end()
	status, err := db.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, status.Progress)
}

// The end of a term ends the writing of a report. That the work has ended is written all the same, or it would seem to
// be under way for ever.
func TestTheEndOfWorkIsRecordedAtTheEndOfATerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var written []ledger.Progress
		write := func(ctx context.Context, p ledger.Progress) error {
			if p.Ended && len(written) == 1 {
				written = append(written, ledger.Progress{})
				<-ctx.Done()
				return ctx.Err()
			}
			written = append(written, p)
			return nil
		}
		report, end := startRecording(t.Context(), write, testLogger(t))
		under := ledger.Progress{Stream: "updates", Position: 7}
		report(under)
		synctest.Wait()
		ended := under
		ended.Ended = true
		report(ended)
		synctest.Wait() // it is being written
		end()
		require.Equal(t, []ledger.Progress{under, {}, ended}, written)
	})
}
