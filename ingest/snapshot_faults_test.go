package ingest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"ledgerindexer/ledger"
)

// disturbSnapshot puts faults around every call that the snapshot loop makes.
func (f *faults) disturbSnapshot(snapshot *Snapshot) {
	source, sink := snapshot.Source.(*fakeSnapshotSource), snapshot.Sink.(*fakeSnapshotSink)
	wasSource, wasSink := *source, *sink
	source.ledgerEnd = func(ctx context.Context) (end ledger.Offset, err error) {
		err = f.around(func() error { end, err = wasSource.ledgerEnd(ctx); return err })
		return end, err
	}
	source.readSnapshot = func(ctx context.Context, at ledger.Offset, token ledger.Token) (page ledger.SnapshotPage, err error) {
		time.Sleep(time.Duration(f.below(30)) * time.Millisecond)
		err = f.around(func() error { page, err = wasSource.readSnapshot(ctx, at, token); return err })
		return page, err
	}
	sink.unfinished = func(ctx context.Context) (progress *ledger.SnapshotProgress, err error) {
		err = f.around(func() error { progress, err = wasSink.unfinished(ctx); return err })
		return progress, err
	}
	sink.drop = func(ctx context.Context) error { return f.around(func() error { return wasSink.drop(ctx) }) }
	sink.begin = func(ctx context.Context, id string, scope ledger.Scope, at ledger.Offset) (progress ledger.SnapshotProgress, err error) {
		err = f.around(func() error { progress, err = wasSink.begin(ctx, id, scope, at); return err })
		return progress, err
	}
	sink.write = func(
		ctx context.Context, progress ledger.SnapshotProgress, order CommitOrder, page ledger.SnapshotPage,
	) (next ledger.SnapshotProgress, err error) {
		time.Sleep(time.Duration(f.below(30)) * time.Millisecond)
		err = f.around(func() error { next, err = wasSink.write(ctx, progress, order, page); return err })
		return next, err
	}
}

// Stopped at any point and started again, with anything failing before or after it had its effect: in the end every
// entry is there exactly once, and the run that finished says so.
func TestSnapshotExactlyOnceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		often := rapid.Float64Range(0, 0.4).Draw(rt, "often")
		c := contracts{
			n:        rapid.IntRange(0, 100).Draw(rt, "entries"),
			pageSize: rapid.IntRange(0, 20).Draw(rt, "page size"),
			empty:    rapid.Bool().Draw(rt, "empty last page"),
			end:      50,
		}
		if c.pageSize == 0 {
			c.empty = false // without tokens everything comes at once
		}
		restart := rapid.Bool().Draw(rt, "restart")
		stops := rapid.IntRange(0, 4).Draw(rt, "stops")
		var s shelf
		var failed error
		var progress ledger.SnapshotProgress
		synctest.Test(t, func(t *testing.T) {
			f := newFaults(seed, often)
			for i := range stops + 1 {
				snapshot := snapshotOf(&c, &s)
				snapshot.Restart = restart && i == 0
				f.disturbSnapshot(snapshot)
				ctx, cancel := context.WithCancel(t.Context())
				if i < stops {
					time.AfterFunc(time.Duration(f.below(500))*time.Millisecond, cancel)
				}
				progress, failed = snapshot.Run(ctx)
				stopped := ctx.Err() != nil
				cancel()
				if failed == nil || !stopped {
					return
				}
			}
		})
		require.NoError(rt, failed)
		if !progress.Finished { // by a run before that did not hear of it
			require.Equal(rt, ledger.SnapshotProgress{At: 50, Entries: int64(c.n)}, progress)
		}
		require.Equal(rt, c.entries(), s.entries)
		require.EqualValues(rt, 50, *s.watermark)
	})
}

func TestAFinishedSnapshotIsDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 20, end: 50}
		at := ledger.Offset(50)
		s := shelf{watermark: &at}
		progress, err := snapshotOf(&c, &s).Run(t.Context())
		require.NoError(t, err)
		require.True(t, progress.Finished)
		require.Zero(t, c.reads)
	})
}

// A page without a token would make the next run begin from the start and store everything twice.
func TestSnapshotRefusesAPageThatLeadsNowhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 20, pageSize: 5, end: 50}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		source := snapshot.Source.(*fakeSnapshotSource)
		source.readSnapshot = func(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
			page, err := c.read(ctx, at, token)
			page.Next = ledger.Token{}
			return page, err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := snapshot.Run(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, s.entries)
	})
}

func TestTheOffsetOfASnapshot(t *testing.T) {
	at := func(n ledger.Offset) *ledger.Offset { return &n }
	for name, c := range map[string]struct {
		contracts contracts
		at        *ledger.Offset
		shelf     *shelf
		what, do  string
	}{
		"above the end": {contracts{end: 50}, at(51), &shelf{}, "offset 51 is above the ledger's end 50", "--at-offset"},
		"pruned": {contracts{end: 50, pruned: 30}, at(29), &shelf{},
			"the participant is pruned up to offset 30, which is above offset 29", "--at-offset"},
		"the end is not known": {contracts{blind: true}, nil, &shelf{},
			"the server does not report its ledger end, so the offset can't be chosen", "--at-offset"},
		"another was begun": {contracts{end: 50}, at(40), &shelf{progress: &ledger.SnapshotProgress{At: 30}},
			"an unfinished snapshot of another offset", ""},
		"in use":                   {contracts{end: 50}, nil, &shelf{watermark: at(40)}, "the database already holds the ledger", ""},
		"taken: below the end":     {contracts{n: 5, end: 50}, at(40), &shelf{}, "", ""},
		"taken: where it is cut":   {contracts{n: 5, end: 50, pruned: 40}, at(40), &shelf{}, "", ""},
		"taken: on a blind server": {contracts{n: 5, blind: true}, at(40), &shelf{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				snapshot := snapshotOf(&c.contracts, c.shelf)
				snapshot.At = c.at
				_, err := snapshot.Run(t.Context())
				if c.what == "" {
					require.NoError(t, err)
					require.Equal(t, *c.at, *c.shelf.watermark)
					return
				}
				var problem *ledger.Problem
				require.ErrorAs(t, err, &problem)
				require.Equal(t, c.what, problem.What)
				require.Contains(t, problem.Do, c.do)
				require.Zero(t, c.contracts.reads)
			})
		})
	}
}

func TestSnapshotLastingErrorsEndTheRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := contracts{n: 100, pageSize: 10, end: 50}
		var s shelf
		snapshot := snapshotOf(&c, &s)
		source := snapshot.Source.(*fakeSnapshotSource)
		bad := &ledger.DecodeError{Element: 3, Err: errAway}
		source.readSnapshot = func(ctx context.Context, at ledger.Offset, token ledger.Token) (ledger.SnapshotPage, error) {
			if token.Value == "50/30" {
				return ledger.SnapshotPage{}, bad
			}
			return c.read(ctx, at, token)
		}
		progress, err := snapshot.Run(t.Context())
		require.ErrorIs(t, err, bad)
		require.Equal(t, c.entries()[:30], s.entries, "what was read before is stored")
		require.EqualValues(t, 30, progress.Entries)
	})
}
