package leadership

import (
	"testing"

	"github.com/stretchr/testify/require"

	_ "ledgerindexer/internal/tools/hermetic"
	"ledgerindexer/store/internal/session"
)

// A leader notices that it has lost the lock before another one leads.
func TestTheLockIsWatchedClosely(t *testing.T) {
	t.Parallel()
	require.Less(t, 2*pingEvery, lockIdleLimit)
	require.LessOrEqual(t, pingEvery+session.PingTimeout, lockIdleLimit)
	require.Less(t, raiseTimeout+pingEvery, lockIdleLimit)
}
