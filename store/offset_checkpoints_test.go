package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/rows"
	"ledgerindexer/store/internal/storetest"
)

// Checkpoints in any number, of more rows than go into a statement, come to the same as one row after another: the
// latest time of each synchronizer at each offset stays, the first of those that are the same, with what is exact of
// it.
func TestManyOffsetCheckpoints(t *testing.T) {
	t.Parallel()
	brief.Once(t)
	brief.Long(t, "writes very many rows")
	d := newDatabase(t)
	l := d.started()
	const synchronizers, offsets = 900, 9
	random := rand.New(rand.NewPCG(3, 14))
	type row struct {
		at   ledger.Time
		rest string // as it is expected in the database
	}
	want := map[string]row{}
	for range 3 {
		page := ledger.Page{From: 0, To: 0}
		for range 12 {
			c := ledger.OffsetCheckpoint{Offset: ledger.Offset(1 + random.IntN(offsets))}
			extra := fmt.Sprintf(`{"a": %d}`, random.IntN(1000))
			switch random.IntN(4) {
			case 0:
				extra = ""
			case 1:
				extra = fmt.Sprintf(`{"a":"\u0000%d"}`, random.IntN(1000)) // jsonb can't hold it
			}
			if extra != "" {
				c.Extra = ledger.JSON(extra)
			}
			for ordinal, i := range random.Perm(synchronizers) {
				said := storetest.Time(fmt.Sprintf("2025-01-01T00:00:0%d.12345600%dZ", random.IntN(5), random.IntN(2)))
				c.Times = append(c.Times, ledger.SynchronizerTime{SynchronizerID: fmt.Sprint("sync::", i), RecordTime: said})
				name := fmt.Sprintf("%d sync::%d", c.Offset, i)
				if before, ok := want[name]; !ok || before.at.Time.Before(said.Time) {
					want[name] = row{said, fmt.Sprintf(" %d %s %s", ordinal, extra, said.Exact)}
				}
			}
			page.Checkpoints = append(page.Checkpoints, c)
		}
		require.NoError(t, l.Append(t.Context(), storetest.Scope, []ledger.Page{page}))
	}

	got := d.Rows(`SELECT o.ledger_offset || ' ' || s.synchronizer_id || ' ' || o.ordinal || ' ' ||
		coalesce(o.exact->>'checkpoint_extra', o.extra::text, '') || ' ' || coalesce((o.exact->>'checkpoint_time')::jsonb #>> '{}', '')
		FROM indexer.offset_checkpoints o JOIN indexer.synchronizers s USING (synchronizer_ref)`)
	var expected []string
	for name, r := range want {
		expected = append(expected, name+r.rest)
	}
	require.Greater(t, len(expected), rows.CheckpointRowsAtOnce)
	slices.Sort(expected)
	slices.Sort(got)
	require.Equal(t, expected, got)
}

// Checkpoints without anything that they cover are kept, from the first offset on, and move nothing.
func TestOffsetCheckpointsAlone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.started()
	ctx := t.Context()
	alone := func(at ledger.Offset) []ledger.Page {
		return []ledger.Page{{From: at, To: at, Checkpoints: []ledger.OffsetCheckpoint{{Offset: at, Times: []ledger.SynchronizerTime{
			{SynchronizerID: "sync::1", RecordTime: storetest.Time("2025-01-01T00:00:00Z")},
		}}}}}
	}
	require.NoError(t, l.Append(ctx, storetest.Scope, alone(0)))
	require.Empty(t, d.Coverage())
	require.NoError(t, l.Append(ctx, storetest.Scope, storetest.OneCreation(0, 10)))
	require.NoError(t, l.Append(ctx, storetest.Scope, alone(10)))
	require.NoError(t, l.WriteAhead(ctx, storetest.Scope, alone(10)))
	require.Equal(t, []string{"0 10"}, d.Coverage())
	require.Equal(t, "10", d.Watermark())
	require.Equal(t, []string{"0", "10"}, d.Rows("SELECT ledger_offset FROM indexer.offset_checkpoints ORDER BY 1"))
}
