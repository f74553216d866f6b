package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
	"ledgerindexer/ledger"
	"ledgerindexer/store/internal/storetest"
)

// appending is a leader that appends one update after the other, as fast as it can, until another one leads. The
// workflow id of its updates is its epoch.
type appending struct {
	leader    *UpdatesWriter
	committed atomic.Int64 // batches
	last      ledger.Offset
	err       error
	done      chan struct{}
}

func startWriting(ctx context.Context, l *UpdatesWriter) *appending {
	w := &appending{leader: l, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for !errors.Is(w.err, ErrNotLeader) {
			var at ledger.Offset
			if at, _, w.err = l.store.Watermark(ctx); w.err != nil {
				return
			}
			page := storetest.OneCreation(at, at+1)
			page[0].Updates[0].WorkflowID = new(fmt.Sprint(l.term.Epoch()))
			if w.err = l.Append(ctx, storetest.Scope, page); w.err == nil {
				w.last = at + 1
				w.committed.Add(1)
			}
		}
	}()
	return w
}

// The lead changes again and again while batches, and their commits, are under way, and two try to get it each time:
// what one leader stored lies before what the next one stored, nothing that was told to be committed is missing, and
// nothing of a leader comes after its term.
func TestLeadershipChangesBesideCommits(t *testing.T) {
	t.Parallel()
	brief.Long(t, "changes leaders again and again beside commits")
	d := newDatabase(t)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(11, 12))
	terms := []*appending{startWriting(ctx, d.started())}
	standbys := []*Store{d.store(), d.store()}
	takeOver := func() *UpdatesWriter {
		d.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'ledgerindexer updates lock'")
		var (
			mu    sync.Mutex
			taken []*UpdatesWriter
			tries sync.WaitGroup
		)
		for _, s := range standbys {
			tries.Go(func() {
				for over := false; !over; {
					l, ok, err := s.LeadUpdates(ctx) // its connection may have been ended with the leader's
					mu.Lock()
					if ok {
						taken = append(taken, l)
					}
					over = len(taken) > 0 || err != nil && ctx.Err() != nil
					mu.Unlock()
				}
			})
		}
		tries.Wait()
		require.Len(t, taken, 1)
		t.Cleanup(taken[0].Close)
		return taken[0]
	}
	for range 25 {
		w := terms[len(terms)-1]
		for enough := w.committed.Load() + 1 + random.Int64N(4); w.committed.Load() < enough; {
			select {
			case <-w.done:
				t.Fatal("nobody else leads, and it has ended:", w.err)
			case <-time.After(100 * time.Microsecond):
			}
		}
		terms = append(terms, startWriting(ctx, takeOver()))
	}
	takeOver()
	for _, w := range terms {
		<-w.done
		require.ErrorIs(t, w.err, ErrNotLeader)
		if w.last > 0 {
			require.Equal(t, fmt.Sprint(w.leader.term.Epoch()), d.Row("SELECT workflow_id FROM indexer.updates WHERE ledger_offset = $1", int64(w.last)))
		}
	}
	last := d.Watermark()
	require.Equal(t, []string{"0 " + last}, d.Coverage())
	require.Equal(t, last, d.Row("SELECT count(*) FROM indexer.updates"))
	require.Equal(t, last, d.Row("SELECT count(*) FROM indexer.created"))
	require.Equal(t, last, d.Row("SELECT count(*) FROM indexer.active_contracts"))
	require.Empty(t, d.Rows(`SELECT ledger_offset FROM (SELECT ledger_offset, workflow_id::bigint AS epoch,
		lag(workflow_id::bigint) OVER (ORDER BY ledger_offset) AS before FROM indexer.updates) u WHERE epoch < before`))
}
