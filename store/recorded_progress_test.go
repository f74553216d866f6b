package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// What is under way is told until it has ended, or was not heard of for a while.
func TestProgress(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.leadUpdates(d.store())
	ctx := t.Context()
	underWay := func() (list []ledger.Progress) {
		t.Helper()
		status, err := l.store.Status(ctx)
		require.NoError(t, err)
		for _, p := range status.Progress {
			require.False(t, p.RecordedAt.IsZero())
			require.GreaterOrEqual(t, p.Age, time.Duration(0))
			p.BeganAt = p.BeganAt.UTC()
			list = append(list, p.Progress)
		}
		return list
	}
	require.Empty(t, underWay())

	began := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	updates := ledger.Progress{
		Stream: "updates", Unit: "updates", BeganAt: began, Start: 10, Position: 200, End: 3000, UnitsDone: 150, Rate: 12.5, TimeLeft: 40 * time.Hour,
	}
	snapshot := ledger.Progress{Stream: "snapshot", Unit: "contracts", BeganAt: began, Position: 5}
	require.NoError(t, l.RecordProgress(ctx, updates))
	require.NoError(t, l.RecordProgress(ctx, snapshot))
	require.Equal(t, []ledger.Progress{snapshot, updates}, underWay())

	updates.Position, updates.End, updates.TimeLeft = 300, 0, 0
	require.NoError(t, l.RecordProgress(ctx, updates))
	require.NoError(t, l.RecordProgress(ctx, ledger.Progress{Stream: "snapshot", Ended: true}))
	require.Equal(t, []ledger.Progress{updates}, underWay())

	d.Exec(`UPDATE indexer.progress SET updated_at = now() - interval '31 seconds'`)
	require.Empty(t, underWay(), "whoever worked is gone, or waits")
	d.Exec(`UPDATE indexer.progress SET updated_at = now() + interval '1 hour'`)
	require.Empty(t, underWay(), "the clock was set back since")
	require.NoError(t, l.RecordProgress(ctx, updates))
	d.Exec(`UPDATE indexer.progress SET updated_at = now() - interval '25 seconds'`)
	status, err := l.store.Status(ctx)
	require.NoError(t, err)
	require.Len(t, status.Progress, 1)
	require.GreaterOrEqual(t, status.Progress[0].Age, 25*time.Second)
}
