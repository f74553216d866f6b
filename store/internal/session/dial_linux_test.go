package session

import (
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Whoever makes a connection, it ends when the server's system does not answer any more.
func TestConnectionsToAServerThatIsGoneEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	d, err := Open(Config{URL: "postgres://u@" + listener.Addr().String() + "/d"})
	require.NoError(t, err)
	t.Cleanup(d.Close)
	for name, dial := range map[string]pgconn.DialFunc{
		"of the pool": d.Pool.Config().ConnConfig.DialFunc, "of a leader's": d.Settled(d.Conn.Copy()).DialFunc,
	} {
		conn, err := dial(t.Context(), "tcp", listener.Addr().String())
		require.NoError(t, err, name)
		defer conn.Close()
		raw, err := conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		got := map[string]int{}
		require.NoError(t, raw.Control(func(socket uintptr) {
			for option, number := range map[string]int{
				"user timeout": unix.TCP_USER_TIMEOUT, "idle": unix.TCP_KEEPIDLE, "interval": unix.TCP_KEEPINTVL, "count": unix.TCP_KEEPCNT,
			} {
				got[option], err = unix.GetsockoptInt(int(socket), syscall.IPPROTO_TCP, number)
				require.NoError(t, err)
			}
		}))
		require.Equal(t, map[string]int{"user timeout": 30_000, "idle": 15, "interval": 5, "count": 3}, got, name)
	}
}
