package throwaway

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// In each mode it is what it says to be: two clients have two sessions, or share one, or have no transactions.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	for mode, shared := range map[string]bool{PoolSessions: false, PoolTransactions: true, PoolStatements: true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			url := PgBouncer(t, Database(t), mode)
			sessions := map[uint32]bool{}
			var conns [2]*pgx.Conn
			for i := range conns {
				conn, err := pgx.Connect(t.Context(), url)
				require.NoError(t, err)
				t.Cleanup(func() { closeConn(conn) })
				var session uint32
				require.NoError(t, conn.QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&session))
				sessions[session], conns[i] = true, conn
			}
			_, err := conns[0].Exec(t.Context(), "BEGIN")
			require.Equal(t, mode == PoolStatements, err != nil, err)
			require.Equal(t, shared, len(sessions) == 1)
		})
	}
}
