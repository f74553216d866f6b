package ingest

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"ledgerindexer/ledger"
)

// A poll that brings nothing although the ledger goes on does not make the stream look current: the end is asked for
// beside it, and what is there is read by its offsets.
func TestAPollThatStalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		var stalls atomic.Bool
		tail := l.source.tailUpdates
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			if stalls.Load() {
				<-ctx.Done()
				return ledger.Page{}, false, ctx.Err()
			}
			return tail(ctx, after, limit, idle)
		}
		var end atomic.Int64
		l.Watch.LedgerEnd = func(e ledger.Offset) { end.Store(int64(e)) }
		var log bytes.Buffer
		l.Logger = slog.New(slog.NewTextHandler(&log, nil))
		stop := l.run()
		pass(time.Minute)
		stalls.Store(true)
		pass(time.Minute) // nothing is missing
		require.NotContains(t, log.String(), "brings nothing")

		for range 5 {
			l.ledger.grow(3)
			pass(besideEvery)
			require.EqualValues(t, l.ledger.last(), end.Load(), "the lag counts")
			pass(2 * besideEvery)
			require.Equal(t, l.ledger.all(), l.memory.got())
			require.Contains(t, log.String(), "waiting for updates brings nothing, although the ledger's end has moved")
		}

		stalls.Store(false)
		l.ledger.grow(1) // the last poll that stalls is given up
		pass(time.Minute)
		l.ledger.grow(1)
		synctest.Wait()
		require.Equal(t, l.ledger.all(), l.memory.got(), "at once, as before")
		require.NoError(t, stop())
	})
}

// The end may move without an update that the scope shows, while a poll takes long: what the stream has is current
// again after it.
func TestTheEndMovesBesideALongPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		tail := l.source.tailUpdates
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			page, full, err := tail(ctx, after, limit, idle)
			Sleep(ctx, 18*time.Second-idle) // as long as a server takes that is under load
			return page, full, err
		}
		stop := l.run()
		pass(time.Minute)
		for range 20 {
			l.ledger.growUnseen(7)
			pass(time.Minute)
			require.Equal(t, l.ledger.last(), l.memory.reached())
		}
		require.NoError(t, stop())
	})
}

// A large update over a slow line takes minutes to come, and is read all the same.
func TestASlowLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLoop(t, 5)
		var slow atomic.Bool
		line := func(ctx context.Context) error {
			if slow.Load() {
				Sleep(ctx, 5*time.Minute)
			}
			return ctx.Err()
		}
		tail, read := l.source.tailUpdates, l.source.readUpdates
		l.source.tailUpdates = func(ctx context.Context, after ledger.Offset, limit int, idle time.Duration) (ledger.Page, bool, error) {
			page, full, err := tail(ctx, after, limit, idle)
			if len(page.Updates) > 0 && err == nil {
				err = line(ctx)
			}
			return page, full, err
		}
		l.source.readUpdates = func(ctx context.Context, after, to ledger.Offset) (ledger.Page, error) {
			page, err := read(ctx, after, to)
			if err == nil {
				err = line(ctx)
			}
			return page, err
		}
		stop := l.run()
		pass(time.Minute)
		slow.Store(true)
		for range 3 {
			l.ledger.grow(1)
			pass(6 * time.Minute)
			require.Equal(t, l.ledger.all(), l.memory.got())
		}
		require.NoError(t, stop())
	})
}
