package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/store/internal/pg"
	"ledgerindexer/store/internal/storetest"
)

// Who waits for a lock that others hold stops waiting with the command.
func TestWaitingForALockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locked := &pgconn.PgError{Code: pg.LockNotAvailable}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, pg.Wait(ctx, time.Hour), context.DeadlineExceeded)
		require.ErrorIs(t, patiently(ctx, time.Hour, func() error { return locked }), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))

		start = time.Now()
		require.NoError(t, pg.Wait(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(start))
		storetest.RequireProblem(t, patiently(t.Context(), time.Second, func() error { return locked }), "at each of 60 tries", "pg_stat_activity")
		require.NoError(t, patiently(t.Context(), time.Second, func() error { return nil }))
	})
}
