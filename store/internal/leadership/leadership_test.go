package leadership

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ledgerindexer/store/internal/session"
)

// A leader notices that it has lost the lock before another one leads.
func TestTheLockIsWatchedClosely(t *testing.T) {
	t.Parallel()
	for _, role := range session.Roles {
		require.Less(t, 2*pingEvery, idleLimit(role))
		require.Less(t, pingEvery+pingTimeout(role), idleLimit(role))
		require.Less(t, raiseTimeout+pingEvery, idleLimit(role))
	}
}
