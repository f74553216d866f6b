package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

func TestTasks(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	tasks := func() []Task {
		t.Helper()
		status, err := l.store.Status(ctx)
		require.NoError(t, err)
		return status.Tasks
	}
	require.Empty(t, tasks())

	require.NoError(t, l.RecordTask(ctx, "packages", "no\x00 right, \xff"))
	failed := tasks()
	require.Len(t, failed, 1)
	require.Equal(t, "no? right, ?", failed[0].Failure)
	require.False(t, failed[0].FailedAt.IsZero())
	require.True(t, failed[0].SucceededAt.IsZero())

	require.NoError(t, l.RecordTask(ctx, "packages", ""))
	require.NoError(t, l.RecordTask(ctx, "lookups", ""))
	worked := tasks()
	require.Len(t, worked, 2)
	require.Equal(t, Task{Name: "lookups", SucceededAt: worked[0].SucceededAt}, worked[0])
	require.True(t, worked[1].SucceededAt.After(worked[1].FailedAt))
	require.Equal(t, Task{"packages", worked[1].SucceededAt, failed[0].FailedAt, failed[0].Failure}, worked[1], "a success clears nothing")

	require.NoError(t, l.RecordTask(ctx, "packages", "no connection"))
	again := tasks()
	require.True(t, again[1].FailedAt.After(again[1].SucceededAt))
	require.Equal(t, Task{"packages", worked[1].SucceededAt, again[1].FailedAt, "no connection"}, again[1])

	d.Exec("UPDATE indexer.tasks SET succeeded_at = succeeded_at + interval '1 hour', failed_at = failed_at + interval '1 hour'")
	require.NoError(t, l.RecordTask(ctx, "packages", ""))
	back := tasks()
	require.True(t, back[1].SucceededAt.After(back[1].FailedAt), "the clock was set back, and it works now")
	require.NoError(t, l.RecordTask(ctx, "packages", "no connection"))
	back = tasks()
	require.True(t, back[1].FailedAt.After(back[1].SucceededAt))
}

func TestStatusCountsWhatTheTasksBrought(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	outcomes := everyOutcome(t, d, l)
	status, err := l.store.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, Lookups{Wanted: 3}, status.Lookups)
	require.Equal(t, Packages{Known: 1}, status.Packages, "of the template id")

	require.NoError(t, l.SaveLookups(ctx, outcomes[:2]))
	_, err = l.SaveVettedPackages(ctx, []ledger.VettedPackages{vettedOn("sync::1", 1, "p", "q"), vettedOn("sync::2", 1, "p")})
	require.NoError(t, err)
	_, err = l.SaveVettedPackages(ctx, []ledger.VettedPackages{vettedOn("sync::1", 1, "p", "q")})
	require.NoError(t, err)
	status, err = l.store.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, Lookups{Wanted: 1, Found: 1, NotFound: 1}, status.Lookups)
	require.Equal(t, Packages{Known: 4, Vetted: 2, Synchronizers: 1, Changes: 4}, status.Packages)
	require.NoError(t, l.SaveLookups(ctx, outcomes))
	status, err = l.store.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, Lookups{Found: 1, NotFound: 1, Unusable: 1}, status.Lookups)
}

// A database whose unfinished snapshot is dropped is as empty as before: it may be used for another participant.
func TestDropSnapshotForgetsWhatTheTasksBrought(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	_, err := l.BeginSnapshot(ctx, "participant::1", storetest.Scope, 10)
	require.NoError(t, err)
	_, err = l.SaveVettedPackages(ctx, []ledger.VettedPackages{vettedOn("sync::1", 7, "p")})
	require.NoError(t, err)
	require.NoError(t, l.RecordTask(ctx, "packages", ""))
	require.NoError(t, l.DropSnapshot(ctx))
	status, err := l.store.Status(ctx)
	require.NoError(t, err)
	require.Empty(t, status.Packages)
	require.Empty(t, status.Tasks)

	list := []ledger.VettedPackages{vettedOn("sync::1", 1, "p")}
	list[0].ParticipantID = "participant::2"
	changes, err := l.SaveVettedPackages(ctx, list)
	require.NoError(t, err)
	require.Equal(t, 1, changes)
}
