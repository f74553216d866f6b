package throwaway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// newWire stands before a database with an empty table t, and returns a connection through the wire and one beside it.
func newWire(t *testing.T) (w *Wire, through, beside *pgx.Conn) {
	t.Helper()
	database := Database(t)
	beside = connect(t, database)
	_, err := beside.Exec(t.Context(), "CREATE TABLE t (n int)")
	require.NoError(t, err)
	w, err = NewWire(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return w, connect(t, w.URL()), beside
}

// copyInto COPYs rows into t in a transaction.
func copyInto(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	rows := make([][]any, 20_000) // in several messages
	for i := range rows {
		rows[i] = []any{i}
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"n"}, pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func rowsIn(t *testing.T, conn *pgx.Conn) (rows int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&rows))
	return rows
}

func TestWireFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault WireFault
		rows  int    // that are stored then
		code  string // SQLSTATE of the error; empty: the connection ends without one
		lives bool   // the connection, afterwards
	}{
		"before COMMIT":     {CutBeforeCommit, 0, "", false},
		"after COMMIT":      {CutAfterCommit, 20_000, "", false},
		"within a COPY":     {CutCopy, 0, "", false},
		"session ended":     {EndSession, 0, "57P01", false},
		"disk full in COPY": {DiskFull, 0, "53100", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, through, beside := newWire(t)
			delivered := w.Order(c.fault)
			err := copyInto(t.Context(), through)
			require.Error(t, err)
			require.True(t, delivered(t.Context()))
			var failed *pgconn.PgError
			if errors.As(err, &failed) {
				require.Equal(t, c.code, failed.Code)
			} else {
				require.NotEqual(t, "53100", c.code, "the error is the server's")
			}
			require.Eventually(t, func() bool { return rowsIn(t, beside) == c.rows }, 5*time.Minute, time.Millisecond)
			require.Equal(t, !c.lives, through.IsClosed())
			if c.lives {
				require.NoError(t, copyInto(t.Context(), through), "the next COPY over the same connection")
			}
			require.NoError(t, copyInto(t.Context(), connect(t, w.URL())), "one fault, once")
			require.Zero(t, w.SawDiskFull(), "that was not the server's")
		})
	}
}

// A COMMIT that rolls back, because its transaction has failed, is no fault that took effect.
func TestWireCountsNoCommitThatRollsBack(t *testing.T) {
	t.Parallel()
	w, through, _ := newWire(t)
	_, err := through.Exec(t.Context(), "begin")
	require.NoError(t, err)
	_, err = through.Exec(t.Context(), "SELECT 1/0")
	require.Error(t, err)
	require.Equal(t, 1, w.Saw("22012"))
	delivered := make(chan bool, 1)
	go func() { delivered <- w.Disturb(t.Context(), CutAfterCommit) }()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.next != nil
	}, 5*time.Minute, time.Millisecond)
	_, err = through.Exec(t.Context(), "commit")
	require.Error(t, err)
	require.False(t, <-delivered)
}

func TestWireWithoutAnOccasion(t *testing.T) {
	t.Parallel()
	w, through, beside := newWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, w.Disturb(ctx, CutBeforeCommit))
	require.NoError(t, copyInto(t.Context(), through), "what was given up disturbs nobody")
	require.Equal(t, 20_000, rowsIn(t, beside))
}

func TestWireStallsAndDrops(t *testing.T) {
	t.Parallel()
	w, through, beside := newWire(t)
	resume := w.Stall()
	done := make(chan error, 1)
	go func() { done <- copyInto(context.Background(), through) }()
	require.Zero(t, rowsIn(t, beside))
	select {
	case err := <-done:
		t.Fatalf("it passed a stalled wire: %v", err)
	default:
	}
	resume()
	require.NoError(t, <-done)
	require.Equal(t, 20_000, rowsIn(t, beside))

	require.Equal(t, 1, w.Lose())
	go func() { done <- copyInto(context.Background(), through) }()
	require.NoError(t, copyInto(t.Context(), connect(t, w.URL())))
	select {
	case err := <-done:
		t.Fatalf("it passed a line that is lost: %v", err)
	default:
	}

	require.Positive(t, w.Drop())
	require.Error(t, <-done)
	require.NoError(t, copyInto(t.Context(), connect(t, w.URL())))
}
