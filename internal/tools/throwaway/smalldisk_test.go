package throwaway

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// A server on a small disk finds it full, and works again when there is room, after a restart where it needs one.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	NeedPrograms(t)
	disk, err := NewSmallDisk(160 << 20)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(disk.Close)
	var s *Server
	require.NoError(t, disk.Run(func() (err error) {
		s, err = Start(t.Context(), Options{Kind: Local, TCP: true, Settings: map[string]string{"shared_buffers": "16MB", "max_wal_size": "48MB", "min_wal_size": "32MB"}})
		return err
	}))
	t.Cleanup(func() { require.NoError(t, disk.Run(s.Stop)) })
	require.NoDirExists(t, s.cluster.folder, "it is on the disk, which nobody else sees")

	conn := connect(t, s.URL(""))
	_, err = conn.Exec(t.Context(), "CREATE TABLE t (s text)")
	require.NoError(t, err)
	require.NoError(t, disk.Fill())
	_, err = conn.Exec(t.Context(), "INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
	var failed *pgconn.PgError
	if errors.As(err, &failed) { // else the server has ended itself, which it does where it can't write its log
		require.Equal(t, codeDiskFull, failed.Code)
	}
	require.Error(t, err)
	require.NoError(t, disk.Free())
	require.NoError(t, disk.Run(func() error { return s.Restart(t.Context()) }))
	_, err = connect(t, s.URL("")).Exec(t.Context(), "INSERT INTO t VALUES ('x')")
	require.NoError(t, err)
}

// The rows of a commit are there when the first process of the server was killed, and others may be.
func TestCrash(t *testing.T) {
	t.Parallel()
	brief.Long(t, "starts a database server of its own")
	s := LocalServer(t, Options{})
	conn := connect(t, s.URL(""))
	_, err := conn.Exec(t.Context(), "CREATE TABLE t AS SELECT 1 AS n")
	require.NoError(t, err)
	require.NoError(t, s.Crash())
	require.NoError(t, s.Crash(), "a second time")
	require.Eventually(t, func() bool { return s.Restart(t.Context()) == nil }, 5*time.Minute, 50*time.Millisecond)
	require.Equal(t, 1, rowsIn(t, connect(t, s.URL(""))))
	_, err = os.Stat(s.cluster.folder)
	require.NoError(t, err)
}
